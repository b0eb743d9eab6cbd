"""What there is for a size that is in no range: of a campaign the range beside it; else a hint."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commtune.errors import NoAnswer

if TYPE_CHECKING:
    from commtune.db.connection.location import Rows

_HINTED = 6

_RANGES = """
SELECT p.id, p.campaign_id, p.bytes_low AS low, p.bytes_high AS high
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
WHERE p.operation = :op {filters}
"""

_THERE = """
SELECT p.operation, p.backend, p.ranks, p.nodes, s.name AS system,
       MIN(p.bytes_low) AS low, MAX(p.bytes_high) AS high
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
GROUP BY p.operation, p.backend, p.ranks, p.nodes, s.name
ORDER BY p.operation, p.ranks, p.nodes, s.name
"""


def size_distance(one: int, other: int) -> float:
    """How far two sizes are apart, in factors of two."""
    return abs(math.log2(max(one, 1)) - math.log2(max(other, 1)))


def nearest_profiles(rows: Rows, filters: str, given: Mapping[str, Any]) -> list[int]:
    """Profiles next to a size that lies between two measured ones with a range of their own.

    Of each such campaign the profile that ends nearer to it; both where they are as near.

    Args:
        filters: further conditions of the question, each after an ``AND``.
        given: the question's values, its operation and ``bytes`` among them.
    """
    campaigns: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows(_RANGES.format(filters=filters), given):
        campaigns[row["campaign_id"]].append(row)
    size = given["bytes"]
    return [row["id"] for ranges in campaigns.values() for row in _next_to(ranges, size)]


def _next_to(ranges: Sequence[Mapping[str, Any]], size: int) -> list[Mapping[str, Any]]:
    below = max((row["high"] for row in ranges if row["high"] < size), default=None)
    above = min((row["low"] for row in ranges if row["low"] > size), default=None)
    # What holds the size and a range below it is for all sizes, and no range of its own.
    if below is None or above is None or any(below < row["low"] <= size for row in ranges):
        return []
    down, up = size_distance(below, size), size_distance(above, size)
    return [
        row
        for row in ranges
        if (row["high"] == below and down <= up) or (row["low"] == above and up <= down)
    ]


def explain_no_answer(rows: Rows, op: str, size: int, given: Mapping[str, Any]) -> NoAnswer:
    """That there is no profile for a question, with what there is.

    Args:
        given: the conditions of the question, by name.
    """
    asked = ", ".join([op, _show_bytes(size), *(f"{name} {v}" for name, v in given.items())])
    there = rows(_THERE, {})
    if not there:
        names = [row["name"] for row in rows("SELECT name FROM campaigns ORDER BY id", {})]
        hint = (
            f"campaigns without profiles yet: {', '.join(names[-_HINTED:])}; see commtune status"
            if names
            else "commtune tune runs a campaign"
        )
        return NoAnswer("the database holds no profile yet", hint=hint)
    # What differs least from the question first.
    nearest = sorted(there, key=lambda row: row["operation"] != op)
    lines = [_there(row) for row in nearest[:_HINTED]]
    more = len(there) - len(lines)
    hint = "there are: " + "; ".join([*lines, *([f"and {more} more"] if more else [])])
    return NoAnswer(f"no profile for {asked}", hint=hint)


def _there(row: Mapping[str, Any]) -> str:
    sizes = f"{_show_bytes(row['low'])} to {_show_bytes(row['high'])}"
    ranks = f"{row['ranks']} ranks on {row['nodes']} node{'s' if row['nodes'] != 1 else ''}"
    return f"{row['operation']}, {sizes}, {ranks}, {row['backend']}, on {row['system']}"


def _show_bytes(size: int) -> str:
    """A size in the largest binary unit that says it exactly."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"
