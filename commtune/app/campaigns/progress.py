"""Reads the progress of a campaign from the database, for its live page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from commtune.campaign.plan import BUDGETS
from commtune.db.connection.reader import keep_open
from commtune.db.damage import DamagedRows
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.listing import RunLine, best_single_run, count_phases, list_runs
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignState, CampaignSummary

#: The number of latest runs that are listed, and used for the pace.
_RECENT = 20
#: Pauses between two runs that are at least this long don't count for the pace, seconds.
_PAUSE_S = 600.0


@dataclass(frozen=True)
class PhaseProgress:
    """The progress of a phase of a campaign.

    Attributes:
        measured_s: total time of its runs, without pauses between them, seconds.
        budget_s: its budget of wall time, seconds; ``None`` if it has none of its own.
    """

    phase: str
    runs: int
    measured_s: float
    budget_s: float | None


@dataclass(frozen=True)
class CampaignProgress:
    """The progress of a campaign.

    Attributes:
        phase: phase of its newest run; empty before the first.
        runs_a_minute: pace of its newest runs; ``None`` for too few, or without a controller.
        single_run: size (bytes) and ratio of the search's best run: a score, no speedup.
        recent: its newest runs, newest first.
    """

    summary: CampaignSummary
    phase: str
    phases: tuple[PhaseProgress, ...]
    runs_a_minute: float | None
    single_run: tuple[int, float] | None
    recent: tuple[RunLine, ...]


def read_progress(name: str, db: str | None = None) -> CampaignProgress:
    """Returns the progress of a campaign; starts no program and asks no scheduler.

    Raises:
        UnknownName: there is none of this name; the hint lists similar ones.
        DatabaseFault: the database can't be read, or the campaign is damaged.
    """
    with keep_open(db):
        campaign = describe_campaign(db, name)
        listed = list_summaries(db, campaign.id)
        if not listed:  # the campaign is damaged, which was reported
            raise DamagedRows(f"campaign {name}")
        recent, _ = list_runs(db, name, limit=_RECENT)
        phases, single_run = count_phases(db, campaign.id), best_single_run(db, campaign)
    (summary,) = listed
    return CampaignProgress(
        summary=summary,
        phase=recent[0].phase if recent else "",
        phases=tuple(
            PhaseProgress(phase, runs, wall_s, _budget(summary.settings, phase))
            for phase, (runs, wall_s) in phases.items()
        ),
        runs_a_minute=_pace(recent) if summary.state is CampaignState.RUNNING else None,
        single_run=single_run,
        recent=tuple(recent),
    )


def _budget(settings: Mapping[str, Any], phase: str) -> float | None:
    found = (settings.get("budget") or {}).get(BUDGETS.get(phase, ""))
    return float(found) if isinstance(found, int | float) else None


def _pace(newest_first: Sequence[RunLine]) -> float | None:
    gaps = [
        later.started_at - earlier.started_at
        for later, earlier in pairwise(newest_first)
        if 0 <= later.started_at - earlier.started_at < _PAUSE_S
    ]
    return 60 * len(gaps) / sum(gaps) if gaps and sum(gaps) > 0 else None
