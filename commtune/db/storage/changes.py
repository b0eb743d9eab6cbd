"""What changed around a stored campaign's question: results of two machines don't compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from commtune.db.codec import list_differences, to_json_value
from commtune.db.storage.records import CampaignRecord
from commtune.db.tables import Campaign, Stack, System


def as_stored(connection: Connection, spec: CampaignRecord) -> CampaignRecord:
    """A campaign with its stack as far as the stored one of this name knows stacks."""
    stored = connection.execute(
        select(Stack.description)
        .join(Campaign, Campaign.stack_id == Stack.id)
        .where(Campaign.name == spec.name)
    ).scalar_one_or_none()
    return spec if stored is None else replace(spec, stack=spec.stack.as_known_to(stored))


def stored_campaign(connection: Connection, campaign_id: int) -> Any:
    """The row of a stored campaign with what it is bound to."""
    return connection.execute(
        select(
            Campaign.what,
            Campaign.created,
            System.fingerprint.label("system"),
            Stack.fingerprint.label("stack"),
            Stack.description.label("stack_description"),
            Campaign.simulated,
        )
        .join(System, System.id == Campaign.system_id)
        .join(Stack, Stack.id == Campaign.stack_id)
        .where(Campaign.id == campaign_id)
    ).one()


def list_changes(spec: CampaignRecord, stored: Any) -> list[str]:
    """What changed, as ``key: stored -> now``; ``stored`` is a row of ``stored_campaign``."""
    now = {
        "system": spec.system.fingerprint,
        "stack": spec.stack.fingerprint,
        "simulated": spec.simulated,
    }
    lines = list_differences({name: getattr(stored, name) for name in now}, now)
    described = stored.stack_description, to_json_value(spec.stack.description)
    if stored.stack == spec.stack.fingerprint or not all(described):
        return lines
    # A person is told which version it is.
    parts = list_differences(*described, "stack")
    return [line for line in lines if not (parts and line.startswith("stack: "))] + parts
