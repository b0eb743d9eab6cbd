"""Lists the activity of campaigns since a given time, such as for a summary every morning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from commtune.app.campaigns.stored import (
    CampaignState,
    CampaignSummary,
    ask_schedulers,
    last_words,
    list_campaigns,
    stuck_jobs,
)
from commtune.db.connection.reader import read_stored
from commtune.db.queries.profiles import find_profiles
from commtune.db.records import StoredProfile
from commtune.model import Outcome

_RUNS = """
SELECT campaign_id, outcome, count(*) AS runs, sum(wall_s) AS wall_s FROM runs
WHERE state = 'stored' AND started_at >= :since GROUP BY campaign_id, outcome
"""


class Need(StrEnum):
    """The reason why a campaign needs attention."""

    NOTHING = ""
    STOPPED = "stopped before its end"
    NO_GOOD_RUN = "no run succeeded"
    STUCK = "its job does not start by itself"


@dataclass(frozen=True)
class RecentCampaign:
    """A campaign that was active since a given time.

    Attributes:
        campaign: its summary, with only the runs, outcomes and wall time since then.
        profiles: the profiles that it made since then.
        words: why no job continues, by the output of the newest one; empty if unknown.
    """

    campaign: CampaignSummary
    profiles: tuple[StoredProfile, ...]
    words: str = ""

    @property
    def need(self) -> Need:
        one = self.campaign
        if one.state is CampaignState.STOPPED:
            return Need.STOPPED
        if one.runs and not one.outcomes.get(Outcome.OK):
            return Need.NO_GOOD_RUN
        if stuck_jobs(one):
            return Need.STUCK
        return Need.NOTHING


def list_recent(since: float, db: str | None = None) -> list[RecentCampaign]:
    """Returns the campaigns that were active since a time, or are running now, newest first.

    Args:
        since: seconds since 1970.
    """
    own = [campaign for campaign in list_campaigns(db) if not campaign.site]
    if not own:
        return []
    totals = _totals(db, since)
    made: defaultdict[str, list[StoredProfile]] = defaultdict(list)
    for profile in find_profiles(db):
        if profile.created >= since:
            made[profile.campaign].append(profile)
    return [
        RecentCampaign(
            replace(one, **totals.get(one.id, {"outcomes": {}, "wall_s": 0.0})),
            tuple(made[one.name]),
            last_words(one),
        )
        for one, _ in ask_schedulers(own)
        if one.id in totals or _was_active(one, since)
    ]


def _was_active(campaign: CampaignSummary, since: float) -> bool:
    moments = (campaign.created, campaign.finished or 0.0)
    return max(moments) >= since or bool(campaign.locked_by or campaign.jobs)


def _totals(db: str | None, since: float) -> Mapping[int, dict[str, Any]]:
    """Returns the number of runs by outcome, and their wall time (seconds), by campaign."""
    found: dict[int, dict[str, Any]] = defaultdict(lambda: {"outcomes": {}, "wall_s": 0.0})
    for row in read_stored(db, _RUNS, {"since": since}, "runs of campaign", "campaign_id"):
        total = found[row["campaign_id"]]
        total["outcomes"][row["outcome"]] = row["runs"]
        total["wall_s"] += row["wall_s"] or 0.0
    return dict(found)
