"""Finds and reads stored profiles, by their own tables and never by measurements.

The start of ``commtune best`` waits for this module, so it imports no SQLAlchemy. All statements
are valid for both SQLite and PostgreSQL. All functions raise DatabaseFault if the database can't
be read, and NoAnswer if there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from commtune.db.connection.location import Rows, database_url, is_service
from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import Damage, DamagedRows, read_rows
from commtune.db.records import ProfileAnswer, StackRecord, StoredProfile, SystemRecord
from commtune.db.verified import IS_OF_PROFILE, IS_WITHDRAWN, LAST, VERDICT, VERIFIED
from commtune.errors import DatabaseFault, UnknownName
from commtune.formatting import format_day, list_first
from commtune.model import (
    SESSION_APART_S,
    Conditions,
    Configuration,
    Interval,
    PointEvidence,
    Profile,
    Strength,
    Tail,
    Verdict,
    VerificationVerdict,
)
from commtune.model.effects import VariableEffect
from commtune.model.profile import RangeBoundary

HINTED = 6
#: The largest integer of SQLite.
LARGEST = 2**63 - 1

#: The runs that confirmed a profile, and those of verifications that found that it holds. CROSS
#: JOIN keeps the order in which SQLite finds the runs of each verification by an index.
_IS_BEHIND = """r.campaign_id = p.campaign_id AND r.configuration_id = p.configuration_id
    AND r.outcome = 'ok'"""
_CONFIRMING = f"{_IS_BEHIND} AND r.phase = 'confirm'"
_VERIFYING = f"""{IS_OF_PROFILE} AND v.finding = 'holds'
    AND {_IS_BEHIND} AND r.phase = 'verify' AND r.block BETWEEN v.first_block AND v.last_block"""
_BEHIND = f"""FROM (
  SELECT r.started_at, r.nodes FROM runs r WHERE {_CONFIRMING}
  UNION ALL SELECT r.started_at, r.nodes
  FROM verifications v CROSS JOIN runs r WHERE {_VERIFYING}) r"""

#: A comma-separated list of names up to its last comma: all characters after it are trimmed.
_UP_TO_LAST = "RTRIM(names, REPLACE(names, ',', ''))"

#: What a profile rests on, by the fields of ``Strength``. Sessions are groups of runs with long
#: pauses between them. Of nodes, distinct names count: a recursive query removes the last name
#: from each list until one is left. Without a scheduler the list is empty, and counts as one
#: unnamed machine.
STRENGTH = {
    "pairs": """(SELECT MIN(x.pairs) FROM profile_points x WHERE x.profile_id = p.id
      AND NOT x.is_guard AND x.speed = 'all')""",
    # CAST rounds in PostgreSQL and truncates in SQLite; ROUND is the same in both.
    "days": f"(SELECT COUNT(DISTINCT ROUND(r.started_at / 86400 - 0.5)) {_BEHIND})",
    "sessions": f"""(SELECT SUM(CASE WHEN apart <= {SESSION_APART_S} THEN 0 ELSE 1 END) FROM (
      SELECT r.started_at - LAG(r.started_at) OVER (ORDER BY r.started_at) AS apart
      {_BEHIND}) gaps)""",
    "nodes": f"""(WITH RECURSIVE lists(names) AS (
  SELECT COALESCE(r.nodes, '') {_BEHIND}
  UNION SELECT RTRIM({_UP_TO_LAST}, ',') FROM lists WHERE names LIKE '%,%')
  SELECT COUNT(DISTINCT SUBSTR(names, LENGTH({_UP_TO_LAST}) + 1)) FROM lists)""",
}
#: Conditions on it: the least in each, of which that in pairs is at each of a profile's sizes.
LEAST = {f"min_{name}": f"{sql} >= :min_{name}" for name, sql in STRENGTH.items()}
_STRENGTH = f"""
SELECT p.id, {", ".join(f"COALESCE({sql}, 0) AS {name}" for name, sql in STRENGTH.items())},
       (SELECT COUNT(*) {VERIFIED}) AS verifications,
       {LAST.format("finding")} AS last_finding, {LAST.format("ended_at")} AS last_verified
FROM profiles p WHERE p.id = :id
"""

PROFILE = f"""
SELECT p.id, p.name, p.operation, p.backend, p.ranks, p.nodes, p.bytes_low, p.bytes_high,
       {VERDICT} AS verdict,
       p.level, p.minimum_gain, p.note, p.conditions, p.simulated, p.created,
       {LAST.format("finding")} AS last_finding, {LAST.format("ended_at")} AS last_verified,
       g.environment,
       c.id AS campaign_id, c.name AS campaign, c.site AS site,
       s.name AS system, s.fingerprint AS system_fingerprint,
       k.text AS stack, k.fingerprint AS stack_fingerprint{{more}}
FROM profiles p
JOIN configurations g ON g.id = p.configuration_id
JOIN campaigns c ON c.id = p.campaign_id
JOIN systems s ON s.id = c.system_id
JOIN stacks k ON k.id = c.stack_id
"""
_DESCRIPTIONS = (
    ", p.details, s.description AS system_description, k.description AS stack_description,"
    " c.space AS space, c.settings AS settings"
)

#: The campaigns with verifications by which profiles are withdrawn.
_HARMFUL = (
    "SELECT DISTINCT campaign_id AS id FROM verifications WHERE finding IN ('gone', 'worse')"
)

_NEWEST_FIRST = "ORDER BY p.created DESC, p.operation, p.bytes_low, p.id"

_POINTS = """
SELECT profile_id, place, is_guard, operation, bytes, speed, default_s, tuned_s, ratio, low, high,
       pairs, verdict, share
FROM profile_points WHERE profile_id IN ({ids}) {at} ORDER BY profile_id, place
"""


def load_profile(db: str | None, ref: str, *, with_details: bool = True) -> ProfileAnswer:
    """Returns a profile with all its evidence.

    Args:
        ref: its number, ``campaign/name``, or its name if that is unique.
        with_details: whether to read the effects of variables and the boundaries of the range,
            for which pydantic is imported.

    Raises:
        UnknownName: no profile, or several, have this name.
    """
    if is_service(url := database_url(db)):
        from commtune.db import remote  # imported here, to start faster without a service

        return remote.load_profile(url, ref)
    by_number = ref.isascii() and ref.isdigit() and len(ref) < len(str(LARGEST))
    where = "p.id = :ref" if by_number else "(p.name = :ref OR c.name || '/' || p.name = :ref)"
    statement = f"{PROFILE.format(more=_DESCRIPTIONS)} WHERE {where} ORDER BY p.created DESC"
    with open_for_reading(url) as rows:
        stored = rows(statement, {"ref": int(ref) if by_number else ref})
        found = read_rows(stored, "profiles")
        if len(found) != 1 and not (stored and not found):
            raise _not_one(rows, ref, found)
        evidence = read_evidence(rows, [row["id"] for row in found])
        if not evidence:
            raise DamagedRows(f"profile {ref}")
        (row,) = note_withdrawn(rows, found, harmful_campaigns(rows))
        strength = _read_strength(rows, row["id"])
    return ProfileAnswer(
        id=row["id"],
        campaign=row["campaign"],
        profile=_whole(row, evidence[row["id"]], with_details),
        **where_measured(row),
        strength=strength,
        created=row["created"],
        space=row["space"],
        level=row["settings"].get("level"),
        site=row["site"],
    )


def load_profiles(db: str | None, campaign: str, *, with_details: bool = True) -> list[Profile]:
    """Returns the profiles that a campaign confirmed, in the order of ``find_profiles``."""
    wanted = f"WHERE c.name = :campaign AND p.verdict <> '{Verdict.LIKELY}' {_NEWEST_FIRST}"
    with open_for_reading(db) as rows:
        stored = rows(f"{PROFILE.format(more=_DESCRIPTIONS)} {wanted}", {"campaign": campaign})
        known = read_rows(stored, "profiles")
        found = {r["id"]: r for r in note_withdrawn(rows, known, harmful_campaigns(rows))}
        evidence = read_evidence(rows, list(found))
    return [_whole(found[number], points, with_details) for number, points in evidence.items()]


def find_profiles(
    db: str | None, campaign: str | None = None, **least: int | None
) -> list[StoredProfile]:
    """Returns all profiles, or those of a campaign: newest first, then by operation and size.

    Args:
        least: only those with such a ``Strength``, by the names of ``LEAST``.
    """
    if is_service(url := database_url(db)):
        from commtune.db import remote

        return remote.find_profiles(url, campaign, **least)
    with open_for_reading(url) as rows:
        return _list_profiles(rows, campaign, **least)


def _list_profiles(
    rows: Rows, campaign: str | None = None, **least: int | None
) -> list[StoredProfile]:
    asked = {"campaign": campaign, **least}
    given = {name: hold_integer(value) for name, value in asked.items() if value is not None}
    filters = {"campaign": "c.name = :campaign", **LEAST}
    where = " AND ".join(["TRUE", *(filters[name] for name in given)])
    stored = rows(f"{PROFILE.format(more='')} WHERE {where} {_NEWEST_FIRST}", given)
    found = note_withdrawn(rows, read_rows(stored, "profiles"), harmful_campaigns(rows))
    return [StoredProfile(**common_fields(row)) for row in found]


def hold_integer(value: Any) -> Any:
    """Returns a parameter that SQLite takes: it has no larger integers, and refuses them."""
    return max(-LARGEST, min(value, LARGEST)) if isinstance(value, int) else value


def read_evidence(
    rows: Rows, ids: Sequence[int], size: int | None = None
) -> dict[int, list[dict[str, Any]]]:
    """Returns the evidence of profiles by number, without those of which a point is damaged.

    Args:
        size: only evidence at this size (bytes), without guards.
    """
    if not ids:
        return {}
    found: dict[int, list[dict[str, Any]]] = {number: [] for number in ids}
    at = "" if size is None else "AND bytes = :bytes AND NOT is_guard"
    stored = rows(_POINTS.format(ids=write_numbers(ids), at=at), {"bytes": size} if at else {})
    points = read_rows(stored, "profile_points", "profile_id")
    for point in points:
        found[point["profile_id"]].append(point)
    if len(points) < len(stored):
        counts = Counter(row["profile_id"] for row in stored)
        found = {number: of for number, of in found.items() if len(of) == counts[number]}
    return found


def load_strength(db: str | None, number: int) -> Strength:
    """Returns what the profile with this number rests on."""
    with open_for_reading(db) as rows:
        return _read_strength(rows, number)


def _read_strength(rows: Rows, number: int) -> Strength:
    (found,) = read_rows(rows(_STRENGTH, {"id": number}), "profiles")
    return Strength(**{name: value for name, value in found.items() if name != "id"})


def load_tail(db: str | None, number: int, size: int | None) -> Tail | None:
    """Returns what stands beside a profile's speedup at a size (bytes), if it is stored."""
    statement = "SELECT id, details FROM profiles WHERE id = :id"
    with open_for_reading(db) as rows:
        found = read_rows(rows(statement, {"id": number}), "profiles")
    tails = (tail for row in found for tail in _read_tails(row["details"]))
    return next((tail for tail in tails if tail.bytes == size), None)


def write_numbers(numbers: Iterable[int]) -> str:
    """Returns integers as a list for an SQL statement."""
    return ", ".join(str(int(number)) for number in numbers)


def build_point(row: Mapping[str, Any]) -> PointEvidence:
    return PointEvidence(
        operation=row["operation"],
        bytes=row["bytes"],
        speed=row["speed"],
        default_s=row["default_s"],
        tuned_s=row["tuned_s"],
        gain=Interval(row["ratio"], row["low"], row["high"], row["pairs"]),
        verdict=Verdict(row["verdict"]),
        share=row["share"],
    )


def common_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that ``StoredProfile`` and ``BestRow`` share, from a row."""
    names = ("id", "name", "campaign", "operation", "backend", "ranks", "nodes", "verdict", "site")
    further = ("bytes_low", "bytes_high", "simulated", "created", "system", "stack")
    known = {name: row[name] for name in (*names, *further)}
    return {"configuration": Configuration(row["environment"]), "note": compose_note(row), **known}


def compose_note(row: Mapping[str, Any]) -> str:
    """Returns the note of a profile, with what its last verification found other than stated.

    That a speedup holds which was not proven is more than was stated.
    """
    finding, note = row["last_finding"], row["note"]
    expected = (None,) if row["verdict"] == Verdict.LIKELY else (None, VerificationVerdict.HOLDS)
    if finding in expected:
        return str(note)
    found = f"verified {format_day(row['last_verified'])}: {finding}"
    return "; ".join(filter(None, [found, note]))


def harmful_campaigns(rows: Rows) -> list[int]:
    """Returns the row numbers of campaigns of which a verification found a profile harmful."""
    return [row["id"] for row in rows(_HARMFUL, {})]


def note_withdrawn(
    rows: Rows, found: Sequence[Mapping[str, Any]], harmful: Collection[int]
) -> list[Mapping[str, Any]]:
    """Returns profiles with notes on others of their campaign that were withdrawn.

    These have the same settings, for some of the same sizes: until a profile is verified itself,
    that is what is known of them.

    Args:
        harmful: what ``harmful_campaigns`` returns.
    """
    campaigns = {row["campaign_id"] for row in found}.intersection(harmful)
    if not campaigns:
        return list(found)
    of_campaigns = f"p.campaign_id IN ({write_numbers(campaigns)})"
    stored = rows(f"{PROFILE.format(more='')} WHERE {of_campaigns} AND {IS_WITHDRAWN}", {})
    withdrawn = read_rows(stored, "profiles")
    return [_with_others(row, withdrawn) for row in found]


def _with_others(
    row: Mapping[str, Any], withdrawn: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    same = itemgetter("campaign_id", "environment", "operation")
    said = [
        f"verified {format_day(one['last_verified'])} as {one['name']}: {one['last_finding']}"
        for one in withdrawn
        if one["id"] != row["id"]
        and same(one) == same(row)
        and one["bytes_low"] <= row["bytes_high"]
        and row["bytes_low"] <= one["bytes_high"]
        and (row["last_verified"] or 0.0) < one["last_verified"]
    ]
    return {**row, "note": "; ".join(filter(None, [*said, row["note"]]))}


def load_details(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of ``Profile`` that only its document has, and only pydantic reads.

    Raises:
        DatabaseFault: a part of it is not readable.
    """
    from commtune.db.codec import load_model

    kinds = {"contributions": VariableEffect, "boundaries": RangeBoundary}
    return {
        name: tuple(load_model(kind, one) for one in stored.get(name) or ())
        for name, kind in kinds.items()
    }


def _read_tails(details: Mapping[str, Any]) -> tuple[Tail, ...]:
    return tuple(Tail(**one) for one in details.get("tails") or ())


def _details(row: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return load_details(row["details"])
    except DatabaseFault as error:
        damage = Damage("profiles", str(row["id"]), "details", error.message)
        raise DamagedRows(str(damage)) from error


def _whole(
    row: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]], with_details: bool
) -> Profile:
    names = ("name", "operation", "backend", "ranks", "nodes", "bytes_low", "bytes_high")
    return Profile(
        **{name: row[name] for name in (*names, "level", "minimum_gain", "simulated")},
        note=compose_note(row),
        configuration=Configuration(row["environment"]),
        verdict=Verdict(row["verdict"]),
        points=tuple(build_point(point) for point in evidence if not point["is_guard"]),
        guards=tuple(build_point(point) for point in evidence if point["is_guard"]),
        conditions=Conditions(**row["conditions"]),
        tails=_read_tails(row["details"]),
        **(_details(row) if with_details else {}),
    )


def where_measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields ``system`` and ``stack`` of a record, from a row with both."""
    described = row["system_description"], row["stack_description"]
    return {
        "system": SystemRecord(row["system_fingerprint"], row["system"], described[0]),
        "stack": StackRecord(row["stack_fingerprint"], row["stack"], described[1]),
    }


def _not_one(rows: Rows, ref: str, found: Sequence[Mapping[str, Any]]) -> UnknownName:
    if found:
        names = list_first([f"{row['campaign']}/{row['name']}" for row in found], HINTED)
        return UnknownName(f"{len(found)} profiles are called {ref}", hint=f"say which: {names}")
    known = [f"{line.campaign}/{line.name}" for line in _list_profiles(rows)]
    if not known:
        return UnknownName(f"no profile {ref}: there is none yet", hint="commtune status")
    return UnknownName(f"no profile {ref}", hint=f"there are: {closest_names(ref, known)}")


def campaign_names(rows: Rows) -> list[str]:
    """Returns the names of all campaigns, newest first."""
    found = rows("SELECT id, name FROM campaigns ORDER BY id DESC", {})
    return [row["name"] for row in read_rows(found, "campaigns")]


def closest_names(name: str, known: Sequence[str]) -> str:
    """Returns known names similar to an unknown one, or some of all if none is similar."""
    import difflib  # imported here, because only errors need it

    close = difflib.get_close_matches(name, known, HINTED, 0.4)
    return list_first(close or known, HINTED)
