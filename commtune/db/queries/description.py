"""Reads the description of a single campaign, and what else reports say of it besides its runs.

All functions raise DatabaseFault if the database can't be read, and NoAnswer if there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.db.connection.location import Rows
from commtune.db.connection.reader import open_for_reading, read_stored
from commtune.db.damage import read_rows, refuse_damage
from commtune.db.lock_owner import LockOwner
from commtune.db.queries.profiles import (
    campaign_names,
    closest_names,
    load_profile,
    where_measured,
)
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.errors import UnknownName

_CAMPAIGN = """
SELECT c.id, c.name, c.what, c.settings, c.space, c.seed, c.simulated, c.created, c.finished,
       c.site, c.folder,
       s.name AS system, s.fingerprint AS system_fingerprint, s.description AS system_description,
       k.text AS stack, k.fingerprint AS stack_fingerprint, k.description AS stack_description
FROM campaigns c JOIN systems s ON s.id = c.system_id JOIN stacks k ON k.id = c.stack_id
WHERE c.name = :name
"""


#: The header of the first successful run: all runs of a campaign use the same machine.
_HEADER = """
SELECT id, header FROM runs WHERE campaign_id = :campaign AND outcome = 'ok' AND header IS NOT NULL
ORDER BY id LIMIT 1
"""


_CONCLUSION = """
SELECT x.id, x.conclusion FROM conclusions x JOIN campaigns c ON c.id = x.campaign_id
WHERE c.name = :name ORDER BY x.id DESC LIMIT 1
"""


def describe_campaign(db: str | None, name: str) -> CampaignDescription:
    """Returns the description of a campaign.

    Raises:
        UnknownName: there is none of this name; the hint lists similar ones.
    """
    with open_for_reading(db) as rows:
        found = rows(_CAMPAIGN, {"name": name})
        if not found:
            raise unknown_campaign(rows, name)
    row = read_rows(found, "campaigns", tell=refuse_damage)[0]
    names = ("id", "name", "seed", "simulated", "created", "finished", "site", "folder")
    taken = {name: row[name] for name in (*names, "what", "settings", "space")}
    return CampaignDescription(**taken, **where_measured(row))


def load_own_profile(db: str | None, reference: str) -> tuple[ProfileAnswer, CampaignDescription]:
    """Returns a stored profile of this site, and its campaign.

    Raises:
        UnknownName: as for ``load_profile``.
        UserError: another site measured it.
    """
    answer = load_profile(db, reference, with_details=False)
    answer.require_own()
    return answer, describe_campaign(db, answer.campaign)


def detectable_gains(db: str | None, name: str) -> dict[int, float]:
    """Returns the gain that a campaign detects with 90 % probability, by size (bytes).

    It is empty if the last conclusion of the campaign doesn't have it.
    """
    sound = read_stored(db, _CONCLUSION, {"name": name}, "conclusions")
    gains = (sound[0]["conclusion"].get("detectable") if sound else None) or {}
    return {int(size): gain for size, gain in gains.items() if gain is not None}


def benchmark_header(db: str | None, campaign_id: int) -> Mapping[str, Any] | None:
    """Returns the benchmark's header of a successful run of a campaign; ``None`` without one."""
    sound = read_stored(db, _HEADER, {"campaign": campaign_id}, "runs")
    return sound[0]["header"] if sound else None


def read_holder(db: str | None, campaign_id: int) -> LockOwner | None:
    """Returns the holder of a campaign's lock, dead or alive; ``None`` if it is free."""
    asked = "SELECT * FROM locks WHERE campaign_id = :campaign"
    given = {"campaign": campaign_id}
    sound = read_stored(db, asked, given, "locks", "campaign_id", tell=refuse_damage)
    return LockOwner.from_row(sound[0]) if sound else None


def unknown_campaign(rows: Rows, name: str) -> UnknownName:
    """Returns the error for an unknown campaign, whose hint lists similar names."""
    close = closest_names(name, campaign_names(rows))
    hint = f"campaigns: {close}" if close else "commtune tune runs a campaign"
    return UnknownName(f"no campaign {name}", hint=hint)
