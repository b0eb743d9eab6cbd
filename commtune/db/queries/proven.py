"""Finds profiles proven here or at other sites, as first proposals for a new campaign."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import read_rows
from commtune.db.queries.profiles import PROFILE, campaign_names, common_fields, read_evidence
from commtune.db.records import StoredProfile
from commtune.db.verified import IS_WITHDRAWN
from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UnknownName
from commtune.model import Workload

#: The most profiles that are read, the newest ones.
_MOST = 1000

_WHERE = f"""
WHERE p.verdict = 'faster' AND NOT {IS_WITHDRAWN} AND NOT p.simulated {{of}}
ORDER BY p.created DESC, p.id DESC LIMIT :limit
"""
_COST = """
SELECT avg(r.wall_s) AS mean_s FROM runs r JOIN campaigns c ON c.id = r.campaign_id
WHERE c.name = :campaign
"""


def proven_profiles(
    db: str | None, workload: Workload, names: Sequence[str] | None = None
) -> list[StoredProfile]:
    """Returns the proven profiles of some campaigns, without those of replays.

    Profiles for the same question as ``workload`` come first, then those with the highest lower
    end of a speedup's interval.

    Args:
        names: the campaigns; ``None`` for all.

    Raises:
        NoAnswer: there is no database yet.
        UnknownName: there is no campaign of one of these names.
    """
    with open_for_reading(db) as rows:
        known = campaign_names(rows) if names is not None else []
        if unknown := [name for name in names or () if name not in known]:
            raise UnknownName(
                f"there is no campaign {quote_value(unknown[0])} to learn from",
                hint=suggest_nearest(unknown[0], known) or "commtune status",
            )
        wanted = {f"name{i}": name for i, name in enumerate(names or ())}
        of = f"AND c.name IN ({', '.join(f':{one}' for one in wanted)})" if wanted else ""
        statement = PROFILE.format(more="") + _WHERE.format(of=of)
        found = read_rows(rows(statement, {**wanted, "limit": _MOST}), "profiles")
        evidence = read_evidence(rows, [row["id"] for row in found])
    gains = {
        number: max((p["low"] for p in points if not p["is_guard"]), default=0.0)
        for number, points in evidence.items()
    }
    profiles = [StoredProfile(**common_fields(row)) for row in found if row["id"] in gains]
    return sorted(profiles, key=lambda one: (not one.is_about(workload), -gains[one.id]))


def mean_run_s(db: str | None, campaign: str) -> float | None:
    """Returns the mean wall time of a campaign's runs, seconds; ``None`` without runs."""
    with open_for_reading(db) as rows:
        (row,) = rows(_COST, {"campaign": campaign})
    found: float | None = row["mean_s"]
    return found
