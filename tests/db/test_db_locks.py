"""Whose campaign it is: judged on given facts, and between real processes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from sqlalchemy import text
from waiting import wait_for

from commtune.db import locks
from commtune.db.damage import DamagedRows
from commtune.db.lock_owner import LockOwner, _start_of, death_of
from commtune.db.queries.description import read_holder
from commtune.db.storage.store import Store
from commtune.errors import CampaignLocked, DatabaseFault
from commtune.model import Outcome

HERE = LockOwner.current()
ME = LockOwner("node1", "boot-a", 100, 5000, 42)

CONTENDER = """
import sys, time
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.errors import CampaignLocked
store = Store(open_database(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    store.lock(int(sys.argv[2]))
    print("won", flush=True)
except CampaignLocked as error:
    print("lost:", error.message, flush=True)
sys.stdin.readline()
"""

BEGINNER = """
import os, sys
sys.path.insert(0, sys.argv[2])
import database_values as given
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.errors import CampaignLocked
store = Store(open_database(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    store.begin(given.campaign(settings={"from": os.getpid()}))
    print("won", os.getpid(), flush=True)
except CampaignLocked as error:
    print("lost:", error.message, flush=True)
sys.stdin.readline()
"""


def fake_proc(folder: Path, pid: int, name: str, state: str, start: int) -> Path:
    """A /proc with one process in it."""
    (folder / str(pid)).mkdir()
    fields = " ".join(str(number) for number in range(4, 22))
    (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {state} {fields} {start} 0 0\n")
    return folder


@pytest.mark.parametrize("other", ["boot_id", "pid_start", "pid_namespace"])
def test_a_process_is_known_to_live_by_more_than_its_number(other: str) -> None:
    assert HERE.lives_here
    changed: dict[str, Any] = {other: "boot-z" if other == "boot_id" else 1}
    assert not replace(HERE, **changed).lives_here


@pytest.mark.parametrize(
    ("holder", "silent_s", "reason"),
    [
        (replace(ME, pid=7, pid_start=900), 0.0, ""),
        (replace(ME, pid=7, pid_start=901), 0.0, "process 7 is gone"),
        (replace(ME, pid=8, pid_start=900), 0.0, "process 8 is gone"),
        # A container with another name on the same kernel and in the same process namespace.
        (replace(ME, pid=8, host="other"), 0.0, "process 8 is gone"),
        (replace(ME, boot_id="boot-b"), 0.0, "node1 was restarted"),
        (replace(ME, pid=8, pid_namespace=43), 299.0, ""),
        (replace(ME, pid=8, pid_namespace=43), 301.0, "silent for 301 s"),
        (replace(ME, host="node2", boot_id="boot-c"), 299.0, ""),
        (replace(ME, host="node2", boot_id="boot-c"), 301.0, "silent for 301 s"),
        # The holder's system said no boot identifier: only its silence tells.
        (replace(ME, host="node2", boot_id=""), 299.0, ""),
    ],
)
def test_who_is_dead(tmp_path: Path, holder: LockOwner, silent_s: float, reason: str) -> None:
    proc = fake_proc(tmp_path, 7, "my (odd) name", "S", 900)
    assert death_of(holder, ME, silent_s, 300.0, proc) == reason


def test_a_zombie_does_not_live(tmp_path: Path) -> None:
    assert _start_of(7, fake_proc(tmp_path, 7, "python", "Z", 900)) is None


def test_a_living_process_is_known_by_its_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = _start_of(child.pid)
    assert HERE.pid_start and started is not None and started >= HERE.pid_start
    child.kill()
    wait_for(lambda: _start_of(child.pid) is None, "its end")
    child.communicate()


@pytest.fixture
def campaign_id(store: Store) -> int:
    """A campaign that nobody works on."""
    return store.open_campaign(given.campaign()).id


def test_a_second_controller_is_told_who_holds_it(store: Store, campaign_id: int) -> None:
    holder = LockOwner("node2", "boot-c", 4711, 5, 6)
    assert store.lock(campaign_id, holder) == ""
    with pytest.raises(CampaignLocked) as refusal:
        store.lock(campaign_id, HERE)
    assert "campaign shm is in use by process 4711 on node2, since " in refusal.value.message
    assert "--take-over" in refusal.value.hint


def test_a_lock_is_given_back_only_by_its_holder(store: Store, campaign_id: int) -> None:
    store.lock(campaign_id, HERE)
    others: list[dict[str, Any]] = [{"host": ""}, {"pid": 0}, {"pid": HERE.pid + 1}]
    for changed in others:
        taking = Store(store.database)
        taking.lock(campaign_id, replace(HERE, **changed), take_over=True)
        store.unlock(campaign_id)
        taking.touch(campaign_id)
        store.lock(campaign_id, HERE, take_over=True)
    assert store.lock(campaign_id, HERE) == ""
    store.unlock(campaign_id)
    with pytest.raises(CampaignLocked):
        store.touch(campaign_id)
    assert store.lock(campaign_id, LockOwner("node2", "boot-c", 1, 2, 3)) == ""


def test_a_lock_that_could_not_be_given_back_is_given_back_later(
    store: Store, campaign_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise DatabaseFault("the database is away")

    store.lock(campaign_id, HERE)
    with monkeypatch.context() as patch:
        patch.setattr("commtune.db.storage.store.release_lock", refuse)
        with pytest.raises(DatabaseFault):
            store.unlock(campaign_id)
    store.unlock(campaign_id)
    assert store.holder(campaign_id) is None


def test_silence_elsewhere_ends_a_lock_and_the_sleeper_learns_it(
    store: Store, campaign_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = LockOwner("node2", "boot-c", 4711, 5, 6)
    store.lock(campaign_id, sleeper)
    with store.database.write() as connection:
        connection.execute(text("UPDATE locks SET heartbeat = heartbeat - 200"))
    with pytest.raises(CampaignLocked):
        store.lock(campaign_id, HERE)
    monkeypatch.setattr(locks, "_STALE_AFTER_S", 100)
    assert Store(store.database).lock(campaign_id, HERE) == "silent for 200 s"
    with pytest.raises(CampaignLocked, match=f"process {HERE.pid} on "):
        store.touch(campaign_id)


def test_a_touch_keeps_a_lock(store: Store, campaign_id: int) -> None:
    holder = LockOwner("node2", "boot-c", 4711, 5, 6)
    store.lock(campaign_id, holder)
    with store.database.write() as connection:
        connection.execute(text("UPDATE locks SET heartbeat = heartbeat - 900"))
    store.touch(campaign_id)
    with pytest.raises(CampaignLocked):
        store.lock(campaign_id, HERE)


def test_a_lock_is_taken_over_by_request(store: Store, campaign_id: int) -> None:
    store.lock(campaign_id, LockOwner("node2", "boot-c", 4711, 5, 6))
    assert store.lock(campaign_id, HERE, take_over=True) == "it left its lock behind"
    store.touch(campaign_id)


def contender(url: str, argument: object, program: str = CONTENDER) -> subprocess.Popen[str]:
    """A process that has the database open and waits for a line to take the lock."""
    arguments = [sys.executable, "-c", program, url, str(argument)]
    return subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def say(child: subprocess.Popen[str]) -> None:
    """Lets a contender go on."""
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()


def hear(child: subprocess.Popen[str]) -> str:
    """The next line of a contender."""
    assert child.stdout
    return child.stdout.readline().strip()


@pytest.mark.parametrize("left_behind", [False, True], ids=["free", "dead holder"])
def test_of_several_at_once_one_wins(
    url: str, store: Store, campaign_id: int, left_behind: bool
) -> None:
    if left_behind:
        dead = subprocess.Popen([sys.executable, "-c", "pass"])
        dead.wait()
        store.lock(campaign_id, replace(HERE, pid=dead.pid))
    children = [contender(url, campaign_id) for _ in range(3)]
    assert [hear(child) for child in children] == ["ready"] * 3
    for child in children:
        say(child)
    answers = sorted(hear(child) for child in children)
    for child in children:
        child.communicate("\n")
    assert answers[-1] == "won"
    assert all(answer.startswith("lost: campaign shm is in use by") for answer in answers[:-1])


@pytest.mark.slow
def test_of_several_that_begin_at_once_one_leaves_its_settings(url: str, store: Store) -> None:
    children = [
        contender(url, Path(__file__).parents[1] / "support/stored", BEGINNER) for _ in range(3)
    ]
    assert [hear(child) for child in children] == ["ready"] * 3
    for child in children:
        say(child)
    answers = sorted(hear(child) for child in children)
    (summary,) = given.summaries_of(store)
    for child in children:
        child.communicate("\n")
    assert [answer.partition(" ")[0] for answer in answers] == ["lost:", "lost:", "won"]
    assert answers[-1] == f"won {summary.settings['from']}"
    assert f"process {summary.settings['from']} on " in summary.locked_by


def test_the_lock_of_a_killed_process_is_taken_over(
    url: str, store: Store, campaign_id: int
) -> None:
    child = contender(url, campaign_id)
    hear(child)
    say(child)
    assert hear(child) == "won"
    with pytest.raises(CampaignLocked, match=f"process {child.pid} on "):
        store.lock(campaign_id)
    child.kill()
    child.communicate()
    assert store.lock(campaign_id) == f"process {child.pid} is gone"


def test_a_campaign_that_is_finished_is_nobodys(store: Store) -> None:
    handle, _ = store.begin(given.campaign())
    theirs, _ = store.begin(given.campaign("theirs"), ME)
    store.finish_campaign(handle.id)
    assert store.holder(handle.id) is None
    Store(store.database).finish_campaign(theirs.id)  # of one that holds nothing
    assert store.holder(theirs.id) is not None
    assert all(summary.finished for summary in given.summaries_of(store))


def test_who_only_asks_hears_of_the_same_holder_and_of_damage(url: str, store: Store) -> None:
    campaign_id = store.open_campaign(given.campaign()).id
    assert read_holder(url, campaign_id) is None
    store.lock(campaign_id, ME)
    assert read_holder(url, campaign_id) == ME
    with store.database.write() as connection:
        connection.execute(text("UPDATE locks SET heartbeat = -1"))
    # Once: a warning beside it would be an error here.
    with pytest.raises(DamagedRows, match=r"damaged: locks \d+: heartbeat: "):
        read_holder(url, campaign_id)


def test_who_lost_the_lock_does_not_say_how_the_run_ended(store: Store) -> None:
    campaign_id = store.begin(given.campaign(), ME)[0].id
    store.add_trial(campaign_id, 1, given.TUNED, "user")
    store.start_runs(campaign_id, [given.request()], "s1")
    successor = Store(store.database)
    successor.lock(campaign_id, HERE, take_over=True)
    # It ended the run, which its living controller sees as a crash.
    with pytest.raises(CampaignLocked, match="in use by process"):
        crashed = given.result(outcome=Outcome.CRASHED, measurements=())
        store.finish_run(campaign_id, crashed, "allreduce")
    assert [run.run_id for run in successor.open_runs(campaign_id)] == ["r1"]
    successor.mark_interrupted("r1", "its controller lost the campaign")
    assert [run.outcome for run in successor.runs(campaign_id)] == [Outcome.INTERRUPTED]


def test_who_is_seen_to_be_dead_works_on_nothing(store: Store, campaign_id: int) -> None:
    for holder, works in (
        (HERE, True),
        (replace(HERE, pid_start=HERE.pid_start - 1), False),  # the number is another process's
        (replace(HERE, boot_id="earlier"), False),
        (ME, True),  # elsewhere: nobody here can tell, however long it is silent
    ):
        store.lock(campaign_id, holder, take_over=True)
        with store.database.write() as connection:
            connection.execute(text("UPDATE locks SET heartbeat = heartbeat - 900"))
        (summary,) = given.summaries_of(store)
        said = f"process {holder.pid} on {holder.host}, since "
        assert summary.locked_by.startswith(said) is works, holder
