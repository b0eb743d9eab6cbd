"""A stored campaign goes on with the question that it was begun with, and with no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import database_values as given
import pytest

from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged
from commtune.model import DEFAULT


def with_a_good_run(store: Store, record: CampaignRecord) -> int:
    """A campaign that has measured something, and is bound to its question by that."""
    campaign_id = store.open_campaign(record).id
    store.add_trial(campaign_id, 0, DEFAULT, "baseline")
    given.add_run(store, campaign_id, given.request("good", configuration=DEFAULT, trial=0))
    return campaign_id


def test_another_question_leaves_the_lock_alone(store: Store) -> None:
    with_a_good_run(store, given.campaign())
    handle, _ = store.begin(given.campaign())
    store.unlock(handle.id)
    with pytest.raises(CampaignChanged):
        store.begin(given.campaign(what={"operation": "alltoall"}))
    assert given.summaries_of(store)[0].locked_by == ""


def test_another_question_is_refused_and_says_what_changed(store: Store) -> None:
    with_a_good_run(store, given.campaign())
    changed = {"operation": "alltoall", "sizes": given.SIZES, "timing": {"warmup": 9}, "new": [1]}
    with pytest.raises(CampaignChanged) as refusal:
        store.open_campaign(given.campaign(what=changed, settings={"budget": {}}))
    lines = refusal.value.message.splitlines()[1:]
    assert lines == [
        "  new: (none) -> [1]",
        '  operation: "allreduce" -> "alltoall"',
        "  timing.warmup: 5 -> 9",
    ]
    assert "another name" in refusal.value.hint
    assert given.summaries_of(store)[0].settings == {"budget": {"wall_s": 60}}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"system": SystemRecord("sys-2", "laptop")}, 'system: "sys-1" -> "sys-2"'),
        ({"stack": StackRecord("stack-2", "MPICH 5")}, 'stack: "stack-1" -> "stack-2"'),
        ({"simulated": True}, "simulated: false -> true"),
    ],
)
def test_another_machine_or_stack_is_another_question(
    store: Store, change: dict[str, Any], line: str
) -> None:
    with_a_good_run(store, given.campaign())
    with pytest.raises(CampaignChanged) as refusal:
        store.open_campaign(given.campaign(**change))
    assert line in refusal.value.message
    assert given.count(store, "systems") == given.count(store, "stacks") == 1


def on(ucx: str) -> StackRecord:
    """A stack on a version of UCX, as it is described since it knows of UCX."""
    bare = StackRecord("bare", "MPICH 4.3.0", {"version": "4.3.0"})
    description = {"version": "4.3.0", "libraries": {"ucx": ucx}}
    return StackRecord(f"on-{ucx}", f"MPICH 4.3.0, UCX {ucx}", description, formerly=bare)


def test_another_library_below_mpi_is_another_stack(store: Store) -> None:
    with_a_good_run(store, given.campaign(stack=on("1.18.1")))
    store.open_campaign(given.campaign(stack=on("1.18.1")))
    assert given.count(store, "campaigns") == 1
    with pytest.raises(CampaignChanged) as refusal:
        store.open_campaign(given.campaign(stack=on("1.20.1")))
    assert refusal.value.message.splitlines()[1:] == [
        '  stack.libraries.ucx: "1.18.1" -> "1.20.1"'
    ]
    store.open_campaign(given.campaign("other", stack=on("1.20.1")))
    assert {c.stack for c in given.summaries_of(store)} == {
        "MPICH 4.3.0, UCX 1.18.1",
        "MPICH 4.3.0, UCX 1.20.1",
    }


def test_a_stack_that_was_stored_without_its_libraries_still_matches(store: Store) -> None:
    bare = on("1.20.1").formerly
    assert bare is not None
    with_a_good_run(store, given.campaign(stack=bare))
    first, _ = store.begin(given.campaign(stack=bare))
    again, _ = store.begin(given.campaign(stack=on("1.20.1")))
    assert again.id == first.id
    assert [c.stack for c in given.summaries_of(store)] == ["MPICH 4.3.0"]
    assert given.count(store, "stacks") == 1
    newer = replace(on("1.20.1"), formerly=StackRecord("newer", "MPICH 5", {"version": "5"}))
    with pytest.raises(CampaignChanged, match=r'stack\.version: "4\.3\.0" -> "5"'):
        store.open_campaign(given.campaign(stack=newer))


def test_a_finished_campaign_with_a_larger_budget_is_not_finished(store: Store) -> None:
    handle, _ = store.begin(given.campaign())
    store.finish_campaign(handle.id)
    store.begin(given.campaign())
    assert given.summaries_of(store)[0].finished is not None, "there is nothing more to do"
    store.begin(given.campaign(settings={"budget": {"wall_s": 600}}))
    assert given.summaries_of(store)[0].finished is None
