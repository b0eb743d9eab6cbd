"""Summarizes campaigns: counts of their runs, trials and profiles, jobs, and best gains.

All functions raise DatabaseFault if the database can't be read, and NoAnswer if there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from commtune.db.connection.location import Rows
from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import read_rows
from commtune.db.lock_owner import living_holders
from commtune.db.queries.profiles import PROFILE, compose_note, harmful_campaigns, note_withdrawn
from commtune.db.records import BestGain, CampaignSummary
from commtune.db.shapes import RunState
from commtune.db.verified import IS_WITHDRAWN
from commtune.model import FEWEST_PAIRS, JobKind, JobRecord, JobStage
from commtune.tuner.statistics.machine_states import ALL

_CAMPAIGNS = """
SELECT c.id, c.name, c.what, c.settings, c.simulated, c.folder, c.created, c.finished, c.site,
       s.name AS system, k.text AS stack
FROM campaigns c JOIN systems s ON s.id = c.system_id JOIN stacks k ON k.id = c.stack_id
WHERE {wanted}
ORDER BY c.created DESC, c.id DESC
"""

#: A covering index serves this query, in the order of the groups. In SQLite a damaged number may
#: be text, which it sums as 0 and compares as greater than any number.
_RUNS = """
SELECT campaign_id, state, outcome, MIN(id) AS id, COUNT(*) AS runs, SUM(wall_s) AS wall_s,
       MAX(started_at) AS last_run,
       (MAX(started_at) >= 1e300 OR COALESCE(MAX(wall_s), 0) >= 1e300) AS is_damaged
FROM runs WHERE {wanted} GROUP BY campaign_id, state, outcome
"""
_ARE_NUMBERS = "(started_at < 1e300 AND (wall_s IS NULL OR wall_s < 1e300))"
_DAMAGED_RUNS = f"SELECT id, started_at, wall_s FROM runs WHERE NOT {_ARE_NUMBERS} AND {{wanted}}"

_TOTAL = "SELECT campaign_id, {} AS found FROM {} WHERE {{wanted}} GROUP BY campaign_id"
_TRIALS, _PROFILES = _TOTAL.format("COUNT(*)", "trials"), _TOTAL.format("COUNT(*)", "profiles")
_NODE_HOURS = _TOTAL.format("SUM(node_hours)", "jobs")

#: The condition must be spelled like that of the partial index of open jobs, to use it.
_OPEN_JOBS = "SELECT * FROM jobs WHERE stage <> 'over' AND {wanted} ORDER BY prepared_at, key"

#: As in ``best``: a single machine state counts only without evidence over all of them.
_IS_OVERALL = f"{{0}}.speed = '{ALL}' AND {{0}}.pairs >= {FEWEST_PAIRS} AND NOT {{0}}.is_guard"
_GAINS = f"""
SELECT * FROM (
  SELECT p.campaign_id, p.name AS profile, p.conditions, p.backend, p.ranks, p.nodes,
         x.profile_id, x.operation, x.bytes, x.speed, x.tuned_s, x.ratio, x.low, x.high, x.pairs,
         ROW_NUMBER() OVER (PARTITION BY p.campaign_id ORDER BY x.low DESC) AS place
  FROM profiles p JOIN profile_points x ON x.profile_id = p.id
  WHERE {{wanted}} AND NOT x.is_guard AND p.verdict = 'faster' AND x.verdict = 'faster'
    AND NOT {IS_WITHDRAWN}
    AND x.bytes BETWEEN p.bytes_low AND p.bytes_high
    AND ({_IS_OVERALL.format("x")} OR NOT EXISTS (
      SELECT 1 FROM profile_points o WHERE o.profile_id = x.profile_id AND o.bytes = x.bytes
        AND {_IS_OVERALL.format("o")}))
) ranked WHERE {{is_best}}
"""
#: The notes of others say why they are not recommended.
_RECOMMENDED = f"""{PROFILE.format(more="")}
WHERE {{wanted}} AND p.verdict = 'faster' AND NOT {IS_WITHDRAWN} ORDER BY p.bytes_low, p.id
"""


def list_summaries(db: str | None, campaign_id: int | None = None) -> list[CampaignSummary]:
    """Returns the summaries of all campaigns, newest first, or of a single one."""
    with open_for_reading(db) as rows:
        totals, best = _run_totals(rows, campaign_id), _best_gains(rows, campaign_id)
        notes, jobs = _list_notes(rows, campaign_id), _open_jobs(rows, campaign_id)
        held = living_holders(rows("SELECT * FROM locks", {}))
        trials, profiles, node_hours = (
            _by_campaign(rows, statement, campaign_id)
            for statement in (_TRIALS, _PROFILES, _NODE_HOURS)
        )
        campaigns = _read(rows, _CAMPAIGNS, "c.id", campaign_id)
        found = read_rows(campaigns, "campaigns")
    taken = ("id", "name", "system", "stack", "folder", "settings", "simulated", "created",
             "finished", "site")  # fmt: skip
    return [
        CampaignSummary(
            **{name: row[name] for name in taken},
            trials=trials.get(row["id"], 0),
            profiles=profiles.get(row["id"], 0),
            best=best.get(row["id"]),
            notes=notes[row["id"]],
            locked_by=held.get(row["id"], ""),
            jobs=tuple(jobs[row["id"]]),
            node_hours=float(node_hours.get(row["id"], 0.0)),
            aggressor=row["what"].get("aggressor"),
            **totals[row["id"]],
        )
        for row in found
    ]


def _read(
    rows: Rows, statement: str, column: str, campaign_id: int | None
) -> Sequence[Mapping[str, Any]]:
    """Returns rows of all campaigns, or of one by a condition that an index can serve."""
    if campaign_id is None:
        return rows(statement.format(wanted="TRUE"), {})
    return rows(statement.format(wanted=f"{column} = :campaign"), {"campaign": campaign_id})


def _run_totals(rows: Rows, campaign_id: int | None) -> Mapping[int, dict[str, Any]]:
    """Returns outcomes, open runs, wall time (seconds) and last start of runs, by campaign."""
    found: dict[int, dict[str, Any]] = defaultdict(
        lambda: {"outcomes": {}, "open_runs": 0, "wall_s": 0.0, "last_run": None}
    )
    stored = _read(rows, _RUNS, "campaign_id", campaign_id)
    if any(row["is_damaged"] for row in stored):
        read_rows(_read(rows, _DAMAGED_RUNS, "campaign_id", campaign_id), "runs")  # reports them
        sound = _RUNS.replace("WHERE", f"WHERE {_ARE_NUMBERS} AND")
        stored = _read(rows, sound, "campaign_id", campaign_id)
    for row in read_rows(stored, "runs"):
        total = found[row["campaign_id"]]
        total["last_run"] = max(total["last_run"] or row["last_run"], row["last_run"])
        if row["state"] == RunState.STORED:
            total["outcomes"][row["outcome"]] = row["runs"]
            total["wall_s"] += row["wall_s"] or 0.0
        elif row["state"] == RunState.RUNNING:
            total["open_runs"] += row["runs"]
    return found


def _by_campaign(rows: Rows, statement: str, campaign_id: int | None) -> Mapping[int, Any]:
    stored = _read(rows, statement, "campaign_id", campaign_id)
    return {row["campaign_id"]: row["found"] for row in stored}


def _open_jobs(rows: Rows, campaign_id: int | None) -> Mapping[int, list[JobRecord]]:
    """Returns the jobs that are not over by campaign, in the order of preparation."""
    found: defaultdict[int, list[JobRecord]] = defaultdict(list)
    for row in read_rows(_read(rows, _OPEN_JOBS, "campaign_id", campaign_id), "jobs", "key"):
        known = {"kind": JobKind(row["kind"]), "stage": JobStage(row["stage"])}
        found[row.pop("campaign_id")].append(JobRecord(**row | known))
    return found


def _best_gains(rows: Rows, campaign_id: int | None) -> Mapping[int, BestGain]:
    for is_best in ("place = 1", "TRUE"):
        statement = _GAINS.replace("{is_best}", is_best)
        stored = _read(rows, statement, "p.campaign_id", campaign_id)
        found = read_rows(stored, "profile_points", "profile_id")
        if len(found) == len(stored):  # otherwise all are read for the best undamaged one
            break
    names = [field.name for field in fields(BestGain) if field.name != "estimand"]
    return {
        row["campaign_id"]: BestGain(
            **{name: row[name] for name in names},
            estimand=row["conditions"].get("estimand", ""),
        )
        for row in sorted(found, key=lambda row: -row["place"])
    }


def _list_notes(rows: Rows, campaign_id: int | None) -> Mapping[int, dict[str, str]]:
    """Returns the notes of recommended profiles by name, by campaign."""
    stored = _read(rows, _RECOMMENDED, "p.campaign_id", campaign_id)
    recommended = read_rows(stored, "profiles")
    found: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for row in note_withdrawn(rows, recommended, harmful_campaigns(rows)):
        if note := compose_note(row):
            found[row["campaign_id"]][row["name"]] = note
    return found
