"""Lists stored systems and stacks, and the trials and runs of a campaign."""

from __future__ import annotations

from commtune.db.queries.listing import RunLine as RunLine
from commtune.db.queries.listing import list_runs as list_runs
from commtune.db.queries.listing import list_stacks as list_stacks
from commtune.db.queries.listing import list_systems as list_systems
from commtune.db.queries.listing import list_trials as list_trials
from commtune.errors import UnknownName


def find_run(campaign: str, run: str, db: str | None) -> RunLine:
    """Returns a run of a campaign by its name, with the end of its output.

    Raises:
        UnknownName: there is no such campaign, or no such run in it.
    """
    found, _ = list_runs(db, campaign, limit=1, run=run)
    if not found:
        raise UnknownName(f"campaign {campaign} has no run {run}", hint="its runs are listed")
    return found[0]
