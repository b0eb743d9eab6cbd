"""Lists runs and trials of a campaign page by page, its phases, and all systems and stacks.

All functions raise DatabaseFault if the database can't be read, and NoAnswer if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from commtune.db.connection.reader import open_for_reading, read_stored
from commtune.db.damage import read_rows
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import LARGEST, write_numbers
from commtune.db.records import CampaignDescription, StackRecord, SystemRecord, time_column
from commtune.db.verified import VERIFIED
from commtune.model import Outcome, Phase

_RUNS = """
SELECT r.id, r.run_id, r.phase, r.block, r.position, r.operation, r.state, r.outcome,
       r.started_at, r.wall_s, r.exit_code, r.detail, r.nodes, t.number AS trial, g.environment
       {more}
FROM runs r JOIN trials t ON t.id = r.trial_id
JOIN configurations g ON g.id = r.configuration_id
WHERE r.campaign_id = :campaign AND r.id < :before {filters}
ORDER BY r.id DESC LIMIT :limit
"""
_FILTERS = {
    "run": "r.run_id = :run",
    "phase": "r.phase = :phase",
    "outcome": "r.outcome = :outcome",
}

#: Configurations with their number in the campaign (0 is the default), their source (such as
#: ``sampler``), when they were added, and the numbers of their stored and successful runs.
_TRIALS = """
SELECT t.number, t.origin, t.created, g.environment,
       COALESCE(n.runs, 0) AS runs, COALESCE(n.runs_ok, 0) AS runs_ok
FROM trials t JOIN configurations g ON g.id = t.configuration_id
LEFT JOIN (
  SELECT trial_id, COUNT(*) AS runs, SUM(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END) AS runs_ok
  FROM runs WHERE campaign_id = :campaign AND state = 'stored' GROUP BY trial_id
) n ON n.trial_id = t.id
WHERE t.campaign_id = :campaign AND t.number >= :first ORDER BY t.number LIMIT :limit
"""

_PHASES = """
SELECT phase, COUNT(*) AS runs, SUM(wall_s) AS wall_s FROM runs
WHERE campaign_id = :campaign AND state = 'stored' GROUP BY phase ORDER BY MIN(id)
"""

#: The shortest times of the default and of all other configurations, by size. Means would depend
#: on how often the machine was busy.
_SINGLE_RUNS = """
SELECT m.bytes, MIN(CASE WHEN t.number = 0 THEN m.{time} END) AS default_s,
       MIN(CASE WHEN t.number <> 0 THEN m.{time} END) AS shortest_s
FROM runs r JOIN trials t ON t.id = r.trial_id JOIN measurements m ON m.run_id = r.id
WHERE r.campaign_id = :campaign AND r.phase = 'search' AND r.outcome = 'ok'
GROUP BY m.bytes
"""


#: Runs in the order of registration; of repeated ones the last counts.
_RUNS_OF_PHASES = """
SELECT r.id, r.block, r.position, r.outcome FROM runs r
WHERE r.campaign_id = :campaign AND r.state = 'stored' AND r.phase IN ({phases}) ORDER BY r.id
"""
_CANARIES = """
SELECT m.run_id, m.canary_s FROM measurements m
WHERE m.run_id IN ({runs}) AND m.canary_s IS NOT NULL ORDER BY m.run_id, m.place
"""


_VERIFIED = f"""
SELECT p.id FROM profiles p JOIN campaigns c ON c.id = p.campaign_id
JOIN systems s ON s.id = c.system_id
WHERE s.fingerprint = :system AND p.verdict = 'faster' AND EXISTS (SELECT 1 {VERIFIED})
ORDER BY p.id DESC LIMIT :most
"""


@dataclass(frozen=True)
class RunLine:
    """A line of the list of runs.

    Attributes:
        id: row number, ascending in the order of registration.
        state: ``running`` or ``stored``; only stored runs have an outcome.
        started_at: seconds since 1970.
        environment: the configuration; empty for the default.
        nodes: node names, separated by commas; ``None`` without a scheduler.
        output_tail: the end of its output; ``None`` if not requested.
    """

    id: int
    run_id: str
    trial: int
    phase: str
    block: int
    position: int
    operation: str
    state: str
    outcome: str | None
    started_at: float
    wall_s: float | None
    exit_code: int | None
    detail: str
    nodes: str | None
    environment: Mapping[str, str]
    output_tail: str | None = None


def list_runs(
    db: str | None,
    campaign: str,
    *,
    before: int | None = None,
    limit: int,
    run: str | None = None,
    phase: str | None = None,
    outcome: str | None = None,
) -> tuple[list[RunLine], int | None]:
    """Returns a page of a campaign's runs, newest first, and ``before`` for the next one.

    That is ``None`` after the last page. Damaged runs are left out of a page.

    Args:
        before: only runs older than the one of this number (``RunLine.id``).
        run: only the run of this name, with the end of its output.

    Raises:
        UnknownName: there is no such campaign.
    """
    given = {"run": run, "phase": phase, "outcome": outcome}
    given = {name: value for name, value in given.items() if value is not None}
    filters = " ".join(f"AND {_FILTERS[name]}" for name in given)
    statement = _RUNS.format(more="" if run is None else ", r.output_tail", filters=filters)
    last = LARGEST if before is None else min(before, LARGEST)
    number = describe_campaign(db, campaign).id
    values = {"campaign": number, "before": last, "limit": limit, **given}
    with open_for_reading(db) as rows:
        stored = rows(statement, values)
    lines = [RunLine(**row) for row in read_rows(stored, "runs")]
    return lines, stored[-1]["id"] if len(stored) == limit else None


def list_trials(
    db: str | None, campaign: str, *, first: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Returns a page of a campaign's configurations by number, and ``first`` for the next one.

    That is ``None`` after the last page. Damaged trials are left out of a page.

    Raises:
        UnknownName: there is no such campaign.
    """
    number = describe_campaign(db, campaign).id
    values = {"campaign": number, "first": min(first, LARGEST), "limit": limit}
    with open_for_reading(db) as rows:
        stored = rows(_TRIALS, values)
    lines = read_rows(stored, "trials", "number")
    return lines, lines[-1]["number"] + 1 if lines and len(stored) == limit else None


def count_phases(db: str | None, campaign_id: int) -> dict[str, tuple[int, float]]:
    """Returns the number of stored runs of each phase, and their wall time in seconds.

    The phases are in the order in which they began.
    """
    sound = read_stored(db, _PHASES, {"campaign": campaign_id}, "runs", "phase")
    return {row["phase"]: (row["runs"], row["wall_s"] or 0.0) for row in sound}


def list_canaries(
    db: str | None, campaign_id: int, phases: Iterable[Phase], most_runs: int
) -> list[float]:
    """Returns the core-to-core round trips (seconds) before each size, in successful runs.

    Args:
        most_runs: the most runs; of more, evenly spaced ones are taken.
    """
    words = ", ".join(f"'{phase}'" for phase in phases)
    with open_for_reading(db) as rows:
        found = rows(_RUNS_OF_PHASES.format(phases=words), {"campaign": campaign_id})
        runs = [
            row
            for row in read_rows(found, "runs")
            if row["outcome"] is not None and not Outcome(row["outcome"]).is_lost
        ]
        last = {(row["block"], row["position"]): row["id"] for row in runs}
        good = [
            row["id"]
            for row in runs
            if row["outcome"] == Outcome.OK and last[row["block"], row["position"]] == row["id"]
        ]
        chosen = good[:: len(good) // most_runs + 1]
        stored = rows(_CANARIES.format(runs=write_numbers(chosen)), {}) if chosen else []
    sound = read_rows(stored, "measurements", "run_id")
    return [row["canary_s"] for row in sound]


def list_verified_profiles(db: str | None, system: str, most: int) -> list[int]:
    """Returns the numbers of a system's verified profiles, newest first.

    Args:
        system: its fingerprint.
        most: the most profiles.
    """
    rows = read_stored(db, _VERIFIED, {"system": system, "most": most}, "profiles")
    return [row["id"] for row in rows]


def best_single_run(db: str | None, campaign: CampaignDescription) -> tuple[int, float] | None:
    """Returns the size (bytes) at which the search's best run beats the default's best by most.

    The second value is the ratio of their times. It is a score and no speedup, because the
    shortest of many runs is mostly luck. ``None`` without such runs.
    """
    asked, given = _SINGLE_RUNS.format(time=time_column(campaign.what)), {"campaign": campaign.id}
    ratios = [
        (row["default_s"] / row["shortest_s"], row["bytes"])
        for row in read_stored(db, asked, given, "measurements", "bytes")
        if row["default_s"] and row["shortest_s"]
    ]
    ratio, size = max(ratios, default=(0.0, 0))
    return (size, ratio) if ratio else None


def list_systems(db: str | None) -> list[tuple[SystemRecord, int]]:
    """Returns all machines, newest first, each with its number of campaigns."""
    return [(SystemRecord(*found), n) for *found, n in _with_counts(db, "systems", "name")]


def list_stacks(db: str | None) -> list[tuple[StackRecord, int]]:
    """Returns all communication software, newest first, each with its number of campaigns."""
    return [(StackRecord(*found), n) for *found, n in _with_counts(db, "stacks", "text")]


def _with_counts(db: str | None, table: str, words: str) -> list[tuple[Any, ...]]:
    key = f"{table.removesuffix('s')}_id"
    statement = (
        f"SELECT x.id, x.fingerprint, x.{words} AS words, x.description,"
        f" (SELECT COUNT(*) FROM campaigns c WHERE c.{key} = x.id) AS campaigns"
        f" FROM {table} x ORDER BY x.id DESC"
    )
    sound = read_stored(db, statement, {}, table)
    return [(r["fingerprint"], r["words"], r["description"], r["campaigns"]) for r in sound]
