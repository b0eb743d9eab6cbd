"""Finds the best stored profiles for an operation and a size, by the tables of profiles alone.

The start of ``commtune best`` waits for this module, so it imports no SQLAlchemy. All functions
raise DatabaseFault if the database can't be read, and NoAnswer if there is none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from commtune.db.connection.location import Rows
from commtune.db.connection.reader import read_stored
from commtune.db.damage import read_rows
from commtune.db.queries.profiles import (
    HINTED,
    LEAST,
    PROFILE,
    build_point,
    campaign_names,
    common_fields,
    harmful_campaigns,
    hold_integer,
    note_withdrawn,
    read_evidence,
    write_numbers,
)
from commtune.db.records import BestRow
from commtune.db.verified import IS_WITHDRAWN
from commtune.errors import NoAnswer
from commtune.formatting import format_count, format_day, format_size
from commtune.model import DEFAULT, Conditions, Configuration, Verdict

#: The most profiles for one question: more than anybody has, so that no old proof is missed.
_MOST = 1000

#: Profiles that are only likely, or from another site, are no answers.
_OF_OPERATION = "p.operation = :op AND c.site = ''"
_ASKED = f"{_OF_OPERATION} AND p.verdict <> 'likely'"

_FILTERS = {
    "nodes": "p.nodes = :nodes",
    "ranks": "p.ranks = :ranks",
    "system": "(s.name LIKE '%' || :system || '%' OR s.fingerprint = :system)",
    "backend": "p.backend = :backend",
    "campaign": "c.name = :campaign",
    **LEAST,
}

#: The columns that are read of every matching profile, which suffice to choose among them.
_CANDIDATES = """
SELECT p.id, p.created, p.backend, p.ranks, p.nodes, c.system_id, c.stack_id
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
WHERE {asked} {filters} AND ({at}) {newest} ORDER BY p.created DESC, p.id DESC LIMIT :limit
"""

#: Restricts candidates to the systems, stacks and shapes of the newest ones, to read fewer rows.
_NEWEST = """
AND (p.backend, p.ranks, p.nodes, c.system_id, c.stack_id) IN (
  SELECT p.backend, p.ranks, p.nodes, c.system_id, c.stack_id
  FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
  WHERE {asked} {filters} AND ({at}) ORDER BY p.created DESC, p.id DESC LIMIT :newest)
"""

#: By campaign, the nearest end of a range below a size and the nearest start of one above it. It
#: excludes campaigns in which a range that includes the size starts between the two. A range that
#: includes the size and starts at or before the end below is one for all sizes, and doesn't count.
_BELOW = "MAX(CASE WHEN p.bytes_high < :bytes THEN p.bytes_high END)"
_ABOVE = "MIN(CASE WHEN p.bytes_low > :bytes THEN p.bytes_low END)"
_GAPS = f"""
SELECT p.campaign_id, {_BELOW} AS below, {_ABOVE} AS above
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
WHERE {{asked}} {{filters}} GROUP BY p.campaign_id
HAVING MAX(CASE WHEN p.bytes_low <= :bytes THEN p.bytes_low END) <= {_BELOW}
  AND {_ABOVE} IS NOT NULL
"""

#: Sizes with evidence, and the ends of ranges, as a campaign that ended early has no evidence.
_SIZES = """
SELECT x.bytes FROM profile_points x JOIN profiles p ON p.id = x.profile_id
JOIN campaigns c ON c.id = p.campaign_id WHERE NOT x.is_guard AND {asked} {filters}
UNION SELECT p.bytes_low FROM profiles p JOIN campaigns c ON c.id = p.campaign_id
WHERE {asked} {filters}
UNION SELECT p.bytes_high FROM profiles p JOIN campaigns c ON c.id = p.campaign_id
WHERE {asked} {filters}
"""

_THERE = """
SELECT p.operation, p.backend, p.ranks, p.nodes, s.name AS system, c.site AS site,
       MIN(p.bytes_low) AS bytes_low, MAX(p.bytes_high) AS bytes_high
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
GROUP BY p.operation, p.backend, p.ranks, p.nodes, s.name, c.site
ORDER BY p.operation, p.ranks, p.nodes, c.site, s.name
"""

#: Withdrawn profiles of an operation whose ranges have some of these sizes, the last one first.
#: They count whatever the question is about: a campaign, more days, a size outside their range.
_WITHDRAWN = f"""{PROFILE.format(more="")}
WHERE p.campaign_id IN ({{ids}}) AND {_OF_OPERATION}
  AND p.bytes_low <= :most AND p.bytes_high >= :least AND {IS_WITHDRAWN}
ORDER BY last_verified DESC
"""

#: Columns that are the same of profiles for the same runs on the same machine.
_SAME_RUNS = itemgetter(
    *("backend", "ranks", "nodes", "simulated", "system_fingerprint", "stack_fingerprint")
)

_MEASURED = "SELECT id, what, settings, space FROM campaigns WHERE id IN ({ids})"


def find_candidates(
    rows: Rows,
    op: str,
    bytes: int,
    asked: Mapping[str, Any],
    limit: int = _MOST,
    newest: int | None = None,
) -> list[dict[str, Any]]:
    """Returns the profiles that answer a question, newest first, as rows of a few columns.

    Args:
        bytes: message size, bytes.
        asked: the conditions, of which those that are ``None`` don't count: ``nodes``, ``ranks``,
            ``system`` (part of its name, or its fingerprint), ``backend``, ``campaign``;
            ``min_pairs``, the least number of pairs at each of the profile's sizes; ``min_days``,
            ``min_sessions``, ``min_nodes``, the least ``Strength`` in these.
        newest: return this many, and all others of the same systems, stacks and shapes.

    Raises:
        NoAnswer: there is none; the hint lists what there is.
    """
    names = sorted(asked, key=list(_FILTERS).index)
    given = {name: asked[name] for name in names if asked[name] is not None}
    filters = _join_filters(given)
    # A range with too few pairs or days is left out of the answers, but it is no gap.
    of_ranges = _join_filters(name for name in given if not name.startswith("min_"))
    values = {name: hold_integer(value) for name, value in {"bytes": bytes, **given}.items()}
    values["op"] = str(op)
    at = ["p.bytes_low <= :bytes AND p.bytes_high >= :bytes"]

    def look() -> list[dict[str, Any]]:
        parts = {"asked": _ASKED, "filters": filters, "at": " OR ".join(at)}
        only = _NEWEST.format(**parts) if newest else ""
        statement = _CANDIDATES.format(newest=only, **parts)
        found = rows(statement, {**values, "limit": limit, "newest": newest})
        return read_rows(found, "profiles")

    found = look()
    if len(found) < limit and (beside := _beside_gaps(rows, of_ranges, values)):
        at += beside
        found = look()
    if not found:
        raise _explain_no_answer(rows, str(op), bytes, given)
    return found


def _join_filters(names: Iterable[str]) -> str:
    return " ".join(f"AND {_FILTERS[name]}" for name in names)


def find_stacks(rows: Rows, stack: str) -> set[int]:
    """Returns the row numbers of stacks with this fingerprint, or this part of their text."""
    stored = rows("SELECT id, fingerprint, text AS words FROM stacks", {})
    return {
        row["id"]
        for row in read_rows(stored, "stacks")
        if stack == row["fingerprint"] or stack.lower() in row["words"].lower()
    }


def read_answers(rows: Rows, ids: Sequence[int], bytes: int) -> list[BestRow]:
    """Returns the answers of candidates about a size (bytes), newest first, undamaged ones."""
    order = "ORDER BY p.created DESC, p.id DESC"
    statement = f"{PROFILE.format(more='')} WHERE p.id IN ({write_numbers(ids)}) {order}"
    harmful = harmful_campaigns(rows)
    found = note_withdrawn(rows, read_rows(rows(statement, {}), "profiles"), harmful)
    evidence = _evidence_for(rows, found, hold_integer(bytes))
    measured = _measured(rows, {row["campaign_id"] for row in found})
    # Damage was reported. A part of the evidence gives no answer.
    whole = [row for row in found if row["id"] in evidence and row["campaign_id"] in measured]
    answers = [
        _best_row(row, evidence[row["id"]], measured[row["campaign_id"]], bytes) for row in whole
    ]
    faster = [one for one in answers if one.verdict == Verdict.FASTER]
    withdrawn = _find_withdrawn(rows, faster, harmful)
    settings = [_identify_settings(row, measured[row["campaign_id"]]) for row in whole]
    return [
        _withdraw_with(withdrawn.get(same, ()), row, answer)
        for same, row, answer in zip(settings, whole, answers, strict=True)
    ]


def measured_sizes(db: str | None, op: str, campaign: str | None = None) -> list[int]:
    """Returns the message sizes (bytes) that profiles were measured at or end at, ascending."""
    filters = f"AND {_FILTERS['campaign']}" if campaign is not None else ""
    given = {"op": op} if campaign is None else {"op": op, "campaign": campaign}
    statement = _SIZES.format(asked=_OF_OPERATION, filters=filters)
    return sorted(row["bytes"] for row in read_stored(db, statement, given, "sizes", "bytes"))


def _evidence_for(
    rows: Rows, found: Sequence[Mapping[str, Any]], size: int
) -> dict[int, list[dict[str, Any]]]:
    """Returns the evidence by profile: at a size (bytes) if it was measured there, else all."""
    inside = [row["id"] for row in found if row["bytes_low"] <= size <= row["bytes_high"]]
    at_size = read_evidence(rows, inside, size)
    elsewhere = [row["id"] for row in found if not at_size.get(row["id"], row["id"] in inside)]
    return at_size | read_evidence(rows, elsewhere)


def _measured(rows: Rows, campaigns: Collection[int]) -> dict[int, dict[str, Any]]:
    """Returns what campaigns measure and search, as fields of ``BestRow``, by campaign."""
    stored = rows(_MEASURED.format(ids=write_numbers(sorted(campaigns))), {})
    return {
        row["id"]: {
            "simultaneous_level": row["settings"].get("level"),
            "workload": row["what"].get("workload") or {},
            "timing": row["what"].get("timing") or {},
            "space": row["space"].get("name") or "",
            "pinned": row["space"].get("pinned") or {},
        }
        for row in read_rows(stored, "campaigns")
    }


def _best_row(
    row: Mapping[str, Any],
    evidence: Sequence[Mapping[str, Any]],
    measured: Mapping[str, Any],
    size: int,
) -> BestRow:
    # Most of the evidence is at other sizes, for which no objects are built.
    sizes = {point["bytes"] for point in evidence if not point["is_guard"]}
    inside = {known for known in sizes if row["bytes_low"] <= known <= row["bytes_high"]}
    nearest: int | None = size
    if size not in inside:
        nearest = min(inside or sizes, key=lambda known: size_distance(known, size), default=None)
    names = ("system_fingerprint", "stack_fingerprint", "level", "minimum_gain")
    known = common_fields(row)
    if row["verdict"] == Verdict.WITHDRAWN:  # nobody sets what a verification found harmful
        known["configuration"] = DEFAULT
    return BestRow(
        **known,
        **{name: row[name] for name in names},
        **measured,
        conditions=Conditions(**row["conditions"]),
        nearest_bytes=nearest,
        points=tuple(
            build_point(point)
            for point in evidence
            if point["bytes"] == nearest and not point["is_guard"]
        ),
    )


def _find_withdrawn(
    rows: Rows, answers: Sequence[BestRow], harmful: Collection[int]
) -> dict[Hashable, list[Mapping[str, Any]]]:
    """Returns the profiles withdrawn at sizes of answers, the last one first, by settings."""
    sizes = [one.nearest_bytes for one in answers if one.nearest_bytes is not None]
    if not sizes or not harmful:
        return {}
    asked = {"op": answers[0].operation, "least": min(sizes), "most": max(sizes)}
    stored = read_rows(rows(_WITHDRAWN.format(ids=write_numbers(harmful)), asked), "profiles")
    if not stored:
        return {}
    measured = _measured(rows, {row["campaign_id"] for row in stored})
    found: dict[Hashable, list[Mapping[str, Any]]] = {}
    for row in stored:
        if of_campaign := measured.get(row["campaign_id"]):
            found.setdefault(_identify_settings(row, of_campaign), []).append(row)
    return found


def _identify_settings(row: Mapping[str, Any], measured: Mapping[str, Any]) -> Hashable:
    """Returns what two profiles share that set the same, for the same runs on one machine."""
    runs = {name: value for name, value in measured["workload"].items() if name != "sizes"}
    conditions = Conditions(**row["conditions"])
    variables = Configuration({**measured["pinned"], **row["environment"]})
    return (*_SAME_RUNS(row), conditions, variables, repr(sorted(runs.items())))


def _withdraw_with(
    withdrawn: Iterable[Mapping[str, Any]], row: Mapping[str, Any], answer: BestRow
) -> BestRow:
    """Returns an answer as withdrawn if another profile with its settings was, at the same size.

    A campaign often has the settings of one range for all sizes, too, and an earlier campaign may
    have found the same. What was found of them counts for all, until the answer's own profile is
    measured again.
    """
    size = answer.nearest_bytes
    measured = max(row["created"], row["last_verified"] or 0.0)
    for other in withdrawn if answer.verdict == Verdict.FASTER and size is not None else ():
        is_about = other["bytes_low"] <= size <= other["bytes_high"]
        if is_about and measured < other["last_verified"]:
            of = "" if other["campaign"] == row["campaign"] else f"{other['campaign']}/"
            found = f"{format_day(other['last_verified'])}: {other['last_finding']}"
            note = f"{of}{other['name']} has the same settings, verified {found}"
            return replace(answer, verdict=Verdict.WITHDRAWN, configuration=DEFAULT, note=note)
    return answer


def size_distance(one: int, other: int) -> float:
    """Returns the distance of two sizes, in powers of two."""
    return abs(math.log2(max(one, 1)) - math.log2(max(other, 1)))


def _beside_gaps(rows: Rows, filters: str, given: Mapping[str, Any]) -> list[str]:
    """Returns SQL conditions for the profiles beside a gap between ranges that a size is in.

    These select the nearer profile of each campaign with such a gap, or both if equally near.

    Args:
        filters: further conditions of the question, each after an ``AND``.
        given: the parameters of the question, with its operation and ``bytes``.
    """
    stored = rows(_GAPS.format(asked=_ASKED, filters=filters), given)
    gaps = read_rows(stored, "ranges of campaign", "campaign_id")
    ends: dict[str, list[tuple[int, int]]] = {"bytes_high": [], "bytes_low": []}
    for gap in gaps:
        down, up = (size_distance(gap[side], given["bytes"]) for side in ("below", "above"))
        if down <= up:
            ends["bytes_high"].append((gap["campaign_id"], gap["below"]))
        if up <= down:
            ends["bytes_low"].append((gap["campaign_id"], gap["above"]))
    return [
        f"(p.campaign_id, p.{end}) IN (VALUES {', '.join(map(str, found))})"
        for end, found in ends.items()
        if found
    ]


def _explain_no_answer(rows: Rows, op: str, size: int, given: Mapping[str, Any]) -> NoAnswer:
    """Returns the error for a question without a profile, with a list of what there is.

    Args:
        size: bytes; 0 if the question is about no particular one.
    """
    sizes = [format_size(size)] if size else []
    asked = ", ".join(
        [op, *sizes, *(f"{name.replace('_', ' ')} {v}" for name, v in given.items())]
    )
    there = read_rows(rows(_THERE, {}), "profiles", "operation")
    if not there:
        names = campaign_names(rows)[::-1]
        hint = (
            f"campaigns without profiles yet: {', '.join(names[-HINTED:])}; see commtune status"
            if names
            else "commtune tune runs a campaign"
        )
        return NoAnswer("the database holds no profile yet", hint=hint)
    # Profiles of the same operation come first.
    nearest = sorted(there, key=lambda row: row["operation"] != op)
    lines = [_there(row) for row in nearest[:HINTED]]
    more = len(there) - len(lines)
    hint = "there are: " + "; ".join([*lines, *([f"and {more} more"] if more else [])])
    return NoAnswer(f"no profile for {asked}", hint=hint)


def _there(row: Mapping[str, Any]) -> str:
    sizes = f"{format_size(row['bytes_low'])} to {format_size(row['bytes_high'])}"
    ranks = f"{row['ranks']} ranks on {format_count(row['nodes'], 'node')}"
    said = f"{row['operation']}, {sizes}, {ranks}, {row['backend']}, on {row['system']}"
    elsewhere = f" (measured at {row['site']}: new campaigns try it first)" if row["site"] else ""
    return said + elsewhere
