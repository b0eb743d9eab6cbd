"""Stored campaigns as they can be measured again: workload, timing and thresholds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from commtune.db.answers import ProfileAnswer
from commtune.db.describing import CampaignDescription, describe
from commtune.db.location import database_url
from commtune.db.queries import profile
from commtune.errors import UserError
from commtune.model import Operation, Timing, Workload
from commtune.quantities import QuantityError, parse_seconds
from commtune.spaces import Space
from commtune.tuner.plan import Plan


def find_profile(reference: str, db: str | None) -> tuple[ProfileAnswer, CampaignDescription]:
    """A stored profile and its campaign.

    Raises:
        UnknownName, NoAnswer, DatabaseFault: as ``db.queries.profile``.
    """
    url = database_url(db)
    answer = profile(url, reference)
    return answer, describe(url, answer.campaign)


def workload_of(stored: CampaignDescription) -> Workload:
    """What a campaign measures."""
    data = dict(stored.what["workload"])
    data["operation"] = Operation(data["operation"])
    return Workload(**{**data, "sizes": tuple(data["sizes"])})


def timing_of(stored: CampaignDescription) -> Timing:
    """How long a campaign measures each size."""
    return Timing(**stored.what["timing"])


def plan_of(stored: CampaignDescription) -> Plan:
    """A campaign's plan as far as measuring known configurations needs it: nothing to search."""
    settings = stored.settings
    known = {f.name for f in fields(Plan)} & {"minimum_gain", "tolerance", "level", "time_limit_s"}
    return Plan(
        name=stored.name,
        space=_space(stored.space),
        workload=workload_of(stored),
        timing=timing_of(stored),
        seed=stored.seed,
        **{name: settings[name] for name in known if name in settings},
    )


def _space(plain: Any) -> Space:
    return Space(
        name=plain.get("name", ""),
        version=str(plain.get("version", "")),
        library=plain.get("library", ""),
        parameters=(),
        pinned=plain.get("pinned", {}),
    )


def seconds(flag: str, written: str) -> float:
    """A time from the command line.

    Raises:
        UserError: it is none, or not above 0.
    """
    try:
        found = parse_seconds(written)
    except QuantityError as error:
        raise UserError(f"{flag}: {error.message}", hint=error.hint) from error
    if found <= 0:
        raise UserError(f"{flag} {written}: no time at all", hint="write 30s or 5min")
    return found
