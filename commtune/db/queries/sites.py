"""Profiles that other sites measured: no answers for this one, but worth a try."""

from __future__ import annotations

from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import read_rows
from commtune.db.queries.profiles import (
    LARGEST,
    PROFILE,
    common_fields,
    read_evidence,
)
from commtune.db.records import StoredProfile
from commtune.model import Workload

_MOST = 100

_WHERE = """
WHERE c.site <> '' AND c.id < coalesce((SELECT id FROM campaigns WHERE name = :campaign), :largest)
  AND p.operation = :operation AND p.backend = :backend AND p.verdict = 'faster'
  AND NOT p.simulated AND p.bytes_low <= :high AND p.bytes_high >= :low
ORDER BY p.created DESC, p.id DESC LIMIT :limit
"""


def best_of_sites(url: str, campaign: str, workload: Workload) -> list[StoredProfile]:
    """Proven profiles of other sites for an operation and some of its sizes.

    First those with the largest speedup by the lower end of its interval.

    Args:
        campaign: the one that asks; what was merged after it began is left out.

    Raises:
        NoAnswer: there is no database yet.
    """
    asked = {
        "campaign": campaign,
        "operation": str(workload.operation),
        "backend": str(workload.backend),
        "low": min(workload.sizes, default=0),
        "high": max(workload.sizes, default=0),
        "largest": LARGEST,
        "limit": _MOST,
    }
    with open_for_reading(url) as rows:
        found = read_rows(rows(PROFILE.format(more="") + _WHERE, asked), "profiles")
        evidence = read_evidence(rows, [row["id"] for row in found])
    gains = {
        number: max((p["low"] for p in points if not p["is_guard"]), default=0.0)
        for number, points in evidence.items()
    }
    ordered = sorted(
        (row for row in found if row["id"] in gains), key=lambda row: -gains[row["id"]]
    )
    return [
        StoredProfile(**common_fields(row), stack=row["stack"], system=row["system"])
        for row in ordered
    ]
