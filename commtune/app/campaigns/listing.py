"""Lists stored systems and stacks, and the trials and runs of a campaign."""

from __future__ import annotations

from commtune.db.queries import listing
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.listing import RunLine as RunLine
from commtune.db.queries.listing import TrialLine as TrialLine
from commtune.db.queries.listing import list_stacks as list_stacks
from commtune.db.queries.listing import list_systems as list_systems
from commtune.errors import UnknownName


def list_runs(
    campaign: str,
    db: str | None = None,
    *,
    before: int | None = None,
    limit: int,
    phase: str | None = None,
    outcome: str | None = None,
) -> list[RunLine]:
    """Returns runs of a campaign, newest first.

    Args:
        before: only runs older than the one of this number (``RunLine.id``).

    Raises:
        UnknownName: there is no such campaign.
    """
    number = describe_campaign(db, campaign).id
    return listing.list_runs(db, number, before=before, limit=limit, phase=phase, outcome=outcome)


def list_trials(
    campaign: str, db: str | None = None, *, first: int = 0, limit: int
) -> list[TrialLine]:
    """Returns at most ``limit`` configurations of a campaign by number, from ``first`` on.

    Raises:
        UnknownName: there is no such campaign.
    """
    return listing.list_trials(db, describe_campaign(db, campaign).id, first=first, limit=limit)


def find_run(campaign: str, run: str, db: str | None = None) -> RunLine:
    """Returns a run of a campaign by its name, with the end of its output.

    Raises:
        UnknownName: there is no such campaign, or no such run in it.
    """
    found = listing.list_runs(db, describe_campaign(db, campaign).id, limit=1, run=run)
    if not found:
        raise UnknownName(f"campaign {campaign} has no run {run}", hint="its runs are listed")
    return found[0]
