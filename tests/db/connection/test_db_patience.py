"""A file that another program holds: a write waits for it, says so once, and gives up in words."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import database_values as given
import pytest
from postgresql_fixture import PostgresqlServer, create_postgresql
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from stores import opened_store

from commtune.db.connection import location
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database, open_database
from commtune.db.storage.store import Store
from commtune.errors import DatabaseFault, UserError
from commtune.model import DEFAULT
from commtune.model.conclusion import Conclusion

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@pytest.fixture
def file(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An SQLite file whose single attempts to write are short."""
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.1")
    with opened_store(sqlite_url) as store:
        yield store.database


def holder(database: Database | Path) -> subprocess.Popen[str]:
    """Another process that holds the file for writing until it gets a line."""
    path = database if isinstance(database, Path) else database.engine.url.database
    arguments = [sys.executable, "-c", HOLDER, str(path)]
    child = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert child.stdout and child.stdout.readline() == "held\n"
    return child


def test_a_write_waits_for_another_program_and_says_so_once(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMTUNE_DB_WAIT", raising=False)
    said: list[str] = []
    child = holder(file)

    def say(words: str) -> None:
        said.append(words)
        assert child.stdin
        child.stdin.write("\n")  # from now on the file is free, sooner or later

    store = Store(file, say=say)
    campaign_id = store.open_campaign(given.campaign()).id
    assert store.clock(lambda: 9.0) < 9.0  # no budget pays for the wait
    child.communicate()
    store.conclude(campaign_id, Conclusion())
    assert [summary.name for summary in given.summaries_of(store)] == ["shm"]
    assert len(said) == 1
    assert "is busy: another program writes; waiting for it, at most 300 s" in said[0]


@pytest.mark.parametrize("is_new", [True, False])
def test_to_open_a_file_waits_for_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.1")
    path, said = tmp_path / "commtune.db", list[str]()
    if not is_new:
        open_database(f"sqlite:///{path}").close()
    child = holder(path)

    def say(words: str) -> None:
        said.append(words)
        child.communicate("\n")

    open_database(f"sqlite:///{path}", BusyRetry(60, say)).close()
    assert len(said) == 1 and said[0].endswith(
        "another program writes; waiting for it, at most 60 s"
    )


def test_to_open_a_file_waits_as_long_as_a_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "60")
    child = holder(tmp_path / "commtune.db")
    assert child.stdin
    timer = threading.Timer(1.0, child.communicate, ["\n"])
    timer.start()
    open_database(f"sqlite:///{tmp_path}/commtune.db").close()
    timer.join()


def test_a_write_without_a_store_waits_as_long_as_a_variable_says(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of ``rename``, ``delete`` and ``db prune``."""
    child = holder(file)
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "60")
    timer = threading.Timer(1.0, child.communicate, ["\n"])
    timer.start()
    with file.write():
        pass
    timer.join()


def test_a_write_gives_up_in_words_and_can_be_made_again(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.5")
    store = Store(file)
    child = holder(file)
    with pytest.raises(DatabaseFault, match=r"another program writes .*; waited for \d+ s") as no:
        store.open_campaign(given.campaign())
    assert no.value.transient and "end the program that holds it" in no.value.hint
    child.communicate("\n")
    assert store.open_campaign(given.campaign()).id == 1


def test_after_a_wait_in_vain_the_next_write_waits_no_more(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.5")
    store = Store(file, say=said.append)
    child = holder(file)
    with pytest.raises(DatabaseFault):
        store.open_campaign(given.campaign())
    with pytest.raises(DatabaseFault, match="another program writes"):
        store.open_campaign(given.campaign())
    assert len(said) == 1  # whoever waits says so
    child.communicate("\n")
    store.open_campaign(given.campaign())


def test_ctrl_c_ends_a_wait_for_good(file: Database) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    patience = BusyRetry(60, interrupt)
    child = holder(file)
    with pytest.raises(KeyboardInterrupt), file.write(patience):
        pass
    with pytest.raises(DatabaseFault, match="another program writes"), file.write(patience):
        pass
    child.communicate("\n")
    with file.write(patience):
        assert not patience.is_spent


@pytest.mark.parametrize(("written", "seconds"), [("", 300.0), ("0", 0.0), ("2.5", 2.5)])
def test_the_wait_is_set_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, written: str, seconds: float
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", written)
    assert location.wait_s() == seconds


@pytest.mark.parametrize("written", ["soon", "-1", "inf", "nan", "1_0", "٣"])
def test_a_wait_that_is_no_number_is_refused(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", written)
    with pytest.raises(UserError, match=f"COMMTUNE_DB_WAIT={written} is not a number of seconds"):
        location.wait_s()


def test_other_faults_are_not_waited_for(file: Database) -> None:
    calls = []

    def attempt() -> None:
        calls.append(1)
        with file.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1 FROM nowhere")

    with pytest.raises(OperationalError, match="no such table"):
        BusyRetry(60).with_busy(attempt, file.url)
    assert len(calls) == 1


def test_what_fails_inside_a_write_is_not_made_again(file: Database) -> None:
    with pytest.raises(DatabaseFault, match="missing"), file.write(BusyRetry(60)) as connection:
        connection.exec_driver_sql("DELETE FROM nowhere")
    with file.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar() == 0


def test_a_file_that_vanishes_meanwhile_is_noticed(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(str(file.engine.url.database))
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "60")
    store = Store(file, say=lambda _: path.unlink())
    child = holder(file)
    with pytest.raises(DatabaseFault, match="is gone"):
        store.open_campaign(given.campaign())
    child.communicate("\n")


def test_without_a_log_a_commit_waits_for_no_reader(sqlite_store: Store, sqlite_url: str) -> None:
    path, database = sqlite_url.removeprefix("sqlite:///"), sqlite_store.database
    with closing(database.engine.raw_connection()) as connection:
        connection.cursor().execute("PRAGMA journal_mode=delete")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as reader:
        with database.write() as connection, pytest.raises(sqlite3.OperationalError):
            connection.exec_driver_sql("UPDATE campaigns SET folder = 'x'")
            reader.execute("SELECT count(*) FROM campaigns")
        assert reader.execute("SELECT count(*) FROM campaigns").fetchone() == (0,)


@pytest.fixture
def full(file: Database) -> Iterator[Callable[[], None]]:
    """A file that can't grow until this is called; there is a run in it that has begun."""
    store = Store(file)
    campaign_id = store.open_campaign(given.campaign()).id
    store.add_trial(campaign_id, 1, DEFAULT, "baseline")
    store.start_runs(campaign_id, [given.request()], "s1")
    with file.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

    def fill(driver: sqlite3.Connection, _record: object) -> None:
        driver.execute(f"PRAGMA max_page_count={pages}")

    def clean() -> None:
        event.remove(file.engine, "connect", fill)
        file.close()

    file.close()
    event.listen(file.engine, "connect", fill)
    yield clean


_LARGE = given.result(measurements=given.result().measurements * 100)


def test_a_full_disk_is_waited_for_and_said_once(
    file: Database, full: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        if len(said) == 1:
            full()

    monkeypatch.setenv("COMMTUNE_DB_WAIT", "60")
    store = Store(file, say=say)
    assert store.clock(lambda: 9.0) == 9.0
    store.finish_run(1, _LARGE, "allreduce")
    assert store.clock(lambda: 9.0) < 9.0  # no budget pays for the wait
    assert len(said) == 2 and said[1].startswith("note: the database works again, after ")
    assert "can't grow: the disk is full" in said[0]
    assert said[0].endswith(": free some space; waiting for it, at most 60 s")


def test_a_disk_that_stays_full_is_said_and_the_same_call_can_be_made_again(
    file: Database, full: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0")
    store = Store(file)
    with pytest.raises(DatabaseFault, match="the disk is full") as refusal:
        store.finish_run(1, _LARGE, "allreduce")
    assert refusal.value.transient
    full()
    store.finish_run(1, _LARGE, "allreduce")


_CALLS: dict[str, Callable[[Store, int], object]] = {
    "begin": lambda store, _: store.begin(given.campaign()),
    "open_campaign": lambda store, _: store.open_campaign(given.campaign()),
    "order_seed": lambda store, number: store.order_seed(number),
    "lock": lambda store, number: store.lock(number),
    "holder": lambda store, number: store.holder(number),
    "touch": lambda store, number: store.touch(number),
    "add_trial": lambda store, number: store.add_trial(number, 2, given.TUNED, "sampler"),
    "trials": lambda store, number: store.trials(number),
    "plan_block": lambda store, number: store.plan_block(number, given.block()),
    "blocks": lambda store, number: store.blocks(number),
    "start_runs": lambda store, number: store.start_runs(number, [given.request("r3")], "s1"),
    "open_runs": lambda store, number: store.open_runs(number),
    "withdraw_run": lambda store, number: store.withdraw_run(number, "r3"),
    "finish_run": lambda store, number: store.finish_run(number, given.result("r1"), "allreduce"),
    "mark_interrupted": lambda store, _: store.mark_interrupted("r2", "killed"),
    "runs": lambda store, number: list(store.runs(number)),
    "add_execution": lambda store, number: store.add_execution(number, given.execution()),
    "executions": lambda store, number: store.executions(number),
    "conclude": lambda store, number: store.conclude(number, Conclusion()),
    "conclusion": lambda store, number: store.conclusion(number),
    "save_profiles": lambda store, number: store.save_profiles(number, [given.profile()]),
    "put_job": lambda store, number: store.job_book(number).put_job(given.job()),
    "open_jobs": lambda store, number: store.job_book(number).open_jobs(),
    "unlock": lambda store, number: store.unlock(number),
    "finish_campaign": lambda store, number: store.finish_campaign(number),
}


@pytest.mark.slow
def test_whatever_a_campaign_asks_waits_for_a_server_that_is_away(
    own_postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, hidden = own_postgresql.socket / ".s.PGSQL.5432", own_postgresql.socket / "hidden"
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        if hidden.exists():
            hidden.rename(door)

    with open_database(create_postgresql(own_postgresql.socket)) as database:
        monkeypatch.setenv("COMMTUNE_DB_WAIT", "60")
        store = Store(database, say=say)
        number = store.open_campaign(given.campaign()).id
        store.add_trial(number, 1, DEFAULT, "baseline")
        store.start_runs(number, [given.request("r1"), given.request("r2", position=3)], "s1")
        for name, call in _CALLS.items():
            said.clear()
            database.engine.dispose()
            door.rename(hidden)
            call(store, number)
            assert len(said) == 2 and "the database works again" in said[1], name
        (summary,) = given.summaries_of(store)
        assert summary.outcomes == {"ok": 1, "interrupted": 1}
