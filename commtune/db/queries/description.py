"""One campaign as it was begun, by name: what a report says of it before any run.

All raise DatabaseFault where the database can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.db.connection.location import Rows
from commtune.db.connection.reader import open_for_reading
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


#: Any run that came to its end: all runs of a campaign see the same machine.
_HEADER = """
SELECT id, header FROM runs WHERE campaign_id = :campaign AND outcome = 'ok' AND header IS NOT NULL
ORDER BY id LIMIT 1
"""


_CONCLUSION = """
SELECT x.id, x.conclusion FROM conclusions x JOIN campaigns c ON c.id = x.campaign_id
WHERE c.name = :name ORDER BY x.id DESC LIMIT 1
"""


def describe_campaign(url: str, name: str) -> CampaignDescription:
    """The campaign of this name.

    Raises:
        UnknownName: there is none; the hint says what there is.
        NoAnswer: there is no database yet.
    """
    with open_for_reading(url) as rows:
        found = rows(_CAMPAIGN, {"name": name})
        if not found:
            raise unknown_campaign(rows, name)
    return _description(read_rows(found, "campaigns", tell=refuse_damage)[0])


def load_own_profile(url: str, reference: str) -> tuple[ProfileAnswer, CampaignDescription]:
    """A stored profile that was measured here, and its campaign.

    Raises:
        UnknownName, NoAnswer: as ``load_profile``.
        UserError: another site measured it.
    """
    answer = load_profile(url, reference)
    answer.require_own()
    return answer, describe_campaign(url, answer.campaign)


def detectable_gains(url: str, name: str) -> dict[int, float]:
    """By size in bytes, the gain that a campaign would have found in 9 of 10 cases.

    Empty where its last conclusion doesn't say.
    """
    with open_for_reading(url) as rows:
        found = rows(_CONCLUSION, {"name": name})
    sound = read_rows(found, "conclusions")
    gains = (sound[0]["conclusion"].get("detectable") if sound else None) or {}
    return {int(size): gain for size, gain in gains.items() if gain is not None}


def benchmark_header(url: str, campaign_id: int) -> Mapping[str, Any] | None:
    """The header that the benchmark wrote in a good run of a campaign; ``None`` without one."""
    with open_for_reading(url) as rows:
        found = rows(_HEADER, {"campaign": campaign_id})
    sound = read_rows(found, "runs")
    return sound[0]["header"] if sound else None


def find_holder(url: str, campaign_id: int) -> LockOwner | None:
    """Who holds a campaign's lock, dead or alive; ``None`` if nobody does."""
    with open_for_reading(url) as rows:
        found = rows(
            "SELECT * FROM locks WHERE campaign_id = :campaign", {"campaign": campaign_id}
        )
    sound = read_rows(found, "locks", "campaign_id", tell=refuse_damage)
    return LockOwner.from_row(sound[0]) if sound else None


def _description(row: Mapping[str, Any]) -> CampaignDescription:
    taken = ("id", "name", "seed", "simulated", "created", "finished", "site", "folder")
    plain = ("what", "settings", "space")
    return CampaignDescription(
        **{key: row[key] for key in (*taken, *plain)},
        **where_measured(row),
    )


def unknown_campaign(rows: Rows, name: str) -> UnknownName:
    """That there is no campaign of this name; the hint says what there is."""
    close = closest_names(name, campaign_names(rows))
    hint = f"campaigns: {close}" if close else "commtune tune runs a campaign"
    return UnknownName(f"no campaign {name}", hint=hint)
