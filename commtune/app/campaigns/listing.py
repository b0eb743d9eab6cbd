"""Lists stored systems and stacks, and the trials and runs of a campaign."""

from __future__ import annotations

from commtune.db.connection.location import database_url
from commtune.db.queries import listing
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.listing import RunLine as RunLine
from commtune.db.queries.listing import TrialLine as TrialLine
from commtune.db.records import StackRecord, SystemRecord
from commtune.errors import UnknownName


def list_systems(db: str | None = None) -> list[tuple[SystemRecord, int]]:
    """Returns all machines, newest first, each with its number of campaigns.

    Raises:
        NoAnswer: there is no database yet.
    """
    return listing.list_systems(database_url(db))


def list_stacks(db: str | None = None) -> list[tuple[StackRecord, int]]:
    """Returns all communication software, newest first, each with its number of campaigns.

    Raises:
        NoAnswer: there is no database yet.
    """
    return listing.list_stacks(database_url(db))


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
    url = database_url(db)
    number = describe_campaign(url, campaign).id
    return listing.list_runs(url, number, before=before, limit=limit, phase=phase, outcome=outcome)


def list_trials(
    campaign: str, db: str | None = None, *, first: int = 0, limit: int
) -> list[TrialLine]:
    """Returns at most ``limit`` configurations of a campaign by number, from ``first`` on.

    Raises:
        UnknownName: there is no such campaign.
    """
    url = database_url(db)
    return listing.list_trials(url, describe_campaign(url, campaign).id, first=first, limit=limit)


def find_run(campaign: str, run: str, db: str | None = None) -> RunLine:
    """Returns a run of a campaign by its name, with the end of its output.

    Raises:
        UnknownName: there is no such campaign, or no such run in it.
    """
    url = database_url(db)
    found = listing.list_runs(url, describe_campaign(url, campaign).id, limit=1, run=run)
    if not found:
        raise UnknownName(f"campaign {campaign} has no run {run}", hint="its runs are listed")
    return found[0]
