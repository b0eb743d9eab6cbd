"""A plan's campaign in a real store, held by this process."""

from __future__ import annotations

from commtune.campaign.plan import Plan
from commtune.db.lock_owner import LockOwner
from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store


def record(plan: Plan, *, simulated: bool = True) -> CampaignRecord:
    """The campaign of a plan as it is stored."""
    return CampaignRecord(
        name=plan.name,
        what=plan.comparable({}),
        settings={},
        space={},
        space_key=plan.space.key,
        seed=plan.seed,
        system=SystemRecord("f", "made-up"),
        stack=StackRecord("f", "made-up"),
        simulated=simulated,
    )


def hold(store: Store, plan: Plan, *, simulated: bool = True) -> int:
    """Opens a plan's campaign, or goes on with it, and locks it; returns its number."""
    handle = store.open_campaign(record(plan, simulated=simulated))
    store.lock(handle.id, LockOwner.current())
    return handle.id
