"""Campaigns that never had a good run, after their file was corrected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import database_values as given
import pytest

from commtune.db.lock_owner import LockOwner
from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged, CampaignLocked
from commtune.model import DEFAULT, JobKind, JobStage, Outcome

WRONG = {"partition": "debug", "modules": ["gcc/12"]}
ELSEWHERE = LockOwner("node2", "boot-c", 4711, 5, 6)


def campaign(slurm: dict[str, Any] | None = None, **more: Any) -> CampaignRecord:
    """A campaign on Slurm; another partition is another system."""
    asked = {"partition": "main", "modules": ["gcc/13"], **(slurm or {})}
    machine = {"cluster": "c", "partition": asked["partition"]}
    what = {"operation": "allreduce", "slurm": asked, "machine": machine, **more.pop("what", {})}
    system = SystemRecord(f"sys-{asked['partition']}", f"c {asked['partition']}", machine)
    return given.campaign(what=what, system=system, **more)


def failed(store: Store, *outcomes: Outcome, name: str = "shm") -> int:
    """A campaign under wrong settings, whose runs ended so."""
    campaign_id = store.open_campaign(campaign(WRONG, name=name)).id
    store.add_trial(campaign_id, 0, DEFAULT, "baseline")
    for number, outcome in enumerate(outcomes):
        run = given.request(f"{name}-{number}", configuration=DEFAULT, trial=0)
        given.add_run(store, campaign_id, run, outcome=outcome)
    return campaign_id


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def again(store: Store, said: list[str]) -> Store:
    """The controller that comes after the file was corrected."""
    return Store(store.database, say=said.append)


def test_without_a_good_run_it_begins_anew_and_says_so(
    store: Store, again: Store, said: list[str]
) -> None:
    failed(store, Outcome.OK, name="another")
    earlier = failed(store, Outcome.CRASHED, Outcome.FAILED, Outcome.NEVER_STARTED)
    store.job_book(earlier).put_job(given.job(stage=JobStage.SUBMITTED))
    handle, reason = again.begin(campaign())
    assert handle.id != earlier
    assert (handle.name, handle.earlier, reason) == ("shm", "shm.1", "")
    (words,) = said
    assert "campaign shm had no successful run so far, and starts over" in words
    assert 'slurm.partition: "debug" -> "main"' in words
    assert 'slurm.modules: ["gcc/12"] -> ["gcc/13"]' in words
    assert "commtune cancel shm.1" in words
    assert again.open_campaign(campaign()).id == handle.id
    assert len(said) == 1
    again.touch(handle.id)


def test_failures_under_other_settings_blame_nothing_and_are_kept(
    store: Store, again: Store
) -> None:
    earlier = failed(store, Outcome.CRASHED, Outcome.CRASHED)
    store.job_book(earlier).put_job(given.job(stage=JobStage.OVER, node_hours=1.0))
    now = again.open_campaign(campaign()).id
    assert [*again.runs(now), *again.trials(now), *again.blocks(now)] == []
    assert again.job_book(now).node_hours() == 0.0
    assert [run.outcome for run in again.runs(earlier)] == [Outcome.CRASHED] * 2
    assert again.job_book(earlier).node_hours() == 1.0
    assert {c.id: c.name for c in given.summaries_of(again)} == {earlier: "shm.1", now: "shm"}


def test_it_may_be_wrong_more_than_once(store: Store, again: Store) -> None:
    failed(store, Outcome.FAILED)
    again.open_campaign(campaign({"modules": []}))
    assert again.open_campaign(campaign()).earlier == "shm.2"
    assert {c.name for c in given.summaries_of(again)} == {"shm", "shm.1", "shm.2"}


def test_one_good_run_is_enough_to_keep_the_question(
    store: Store, again: Store, said: list[str]
) -> None:
    failed(store, Outcome.CRASHED, Outcome.OK)
    with pytest.raises(CampaignChanged, match="a different question") as refused:
        again.begin(campaign())
    assert "another name" in refused.value.hint
    assert [c.name for c in given.summaries_of(again)] == ["shm"]
    assert said == []


@pytest.mark.parametrize(
    "change",
    [
        {"what": {"operation": "alltoall"}},
        {"what": {"benchmark": {"sources": "corrected"}}},
        {"stack": StackRecord("stack-2", "MPICH 5")},
    ],
)
def test_whatever_was_wrong_may_change(
    store: Store, again: Store, said: list[str], change: dict[str, Any]
) -> None:
    failed(store, Outcome.FAILED, Outcome.FAILED, Outcome.FAILED)
    assert again.open_campaign(campaign(**change)).earlier == "shm.1"
    assert "commtune cancel" not in said[0]  # it has no jobs
    with pytest.raises(CampaignChanged):  # and one good run binds it
        failed(store, Outcome.OK, name="good")
        again.open_campaign(campaign(**change, name="good"))


def test_a_campaign_may_move_from_one_machine_to_slurm(store: Store, again: Store) -> None:
    on_slurm = campaign()
    what = {name: value for name, value in on_slurm.what.items() if name != "slurm"}
    store.open_campaign(given.campaign(what=what, system=on_slurm.system))
    assert again.open_campaign(on_slurm).earlier == "shm.1"


def test_an_allocation_that_waits_would_go_on_with_it(store: Store, again: Store) -> None:
    book = store.job_book(failed(store))
    block = given.job("block", stage=JobStage.SUBMITTED)
    allocation = given.job("allocation", kind=JobKind.ALLOCATION, block=None)
    for job in (block, allocation):
        book.put_job(job)
    with pytest.raises(CampaignChanged) as refused:
        again.open_campaign(campaign())
    assert "after 'commtune cancel shm', it starts over" in refused.value.hint
    book.put_job(replace(allocation, stage=JobStage.OVER))
    # Blocks that were not read yet are read by nobody: their settings are not these.
    assert again.open_campaign(campaign()).earlier == "shm.1"
    assert book.open_jobs() == [block]


def test_a_campaign_that_somebody_works_on_keeps_its_name(store: Store, again: Store) -> None:
    earlier = failed(store)
    store.lock(earlier, ELSEWHERE)
    with pytest.raises(CampaignLocked, match="process 4711 on node2"):
        again.begin(campaign())
    assert [c.name for c in given.summaries_of(again)] == ["shm"]
    store.touch(earlier)
    store.unlock(earlier)
    handle, _ = again.begin(campaign())
    assert again.holder(earlier) is None
    assert again.holder(handle.id) is not None


def test_it_knows_the_libraries_that_the_earlier_one_did_not(store: Store, again: Store) -> None:
    bare = StackRecord("bare", "MPICH 4.3.0", {"version": "4.3.0"})
    whole = StackRecord("whole", "MPICH 4.3.0, UCX 1.20.1",
                        {"version": "4.3.0", "libraries": {"ucx": "1.20.1"}}, bare)  # fmt: skip
    store.open_campaign(given.campaign(stack=bare))
    handle = again.open_campaign(given.campaign(what={"operation": "ring"}, stack=whole))
    assert handle.earlier == "shm.1"
    stacks = {one.name: one.stack for one in given.summaries_of(store)}
    assert stacks == {"shm": whole.text, "shm.1": bare.text}
