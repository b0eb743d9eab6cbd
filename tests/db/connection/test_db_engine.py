"""Opening: what is there is used, what is missing made, what is wrong said in words."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from stores import opened_store

from commtune.db.connection.engine import Database, migrate_database, open_database, open_readable
from commtune.db.connection.location import VERSION_TABLE
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store
from commtune.errors import CommtuneError, DatabaseFault, NoAnswer, UserError, install_command

#: Who writes, through SQLAlchemy, and who only asks, without it where that is possible.
BOTH = pytest.mark.parametrize("ask", [open_database, list_summaries])

OPENER = """
import sys
from commtune.db.connection.engine import open_database
print("ready", flush=True)
sys.stdin.readline()
open_database(sys.argv[1]).close()
"""


def run_sql(url: str, statement: str) -> None:
    """Changes a database behind commtune's back."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(statement))


def test_a_database_is_made_with_its_folder_and_found_again(new_url: str) -> None:
    with opened_store(new_url) as first:
        first.open_campaign(given.campaign())
    with opened_store(new_url) as second:
        assert [summary.name for summary in given.summaries_of(second)] == ["shm"]


@pytest.mark.slow
def test_several_may_open_an_empty_database_at_once(new_url: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, new_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    errors = [child.communicate("\n")[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], errors
    with opened_store(new_url) as store:
        assert given.summaries_of(store) == []


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    store = Store(database)
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(
            text("INSERT INTO systems VALUES (1, 'f', 'n', '{}', 0)"),
        )
        raise ZeroDivisionError
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM systems")).scalar() == 0
    assert given.summaries_of(store) == []


@pytest.mark.parametrize(
    ("revision", "words", "hint"),
    [
        ("r0007", "before the first release", "new one with --db"),
        ("r9999", "newer schema", "update"),
    ],
)
def test_another_schema_is_refused(own_url: str, revision: str, words: str, hint: str) -> None:
    run_sql(own_url, f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'")
    with pytest.raises(DatabaseFault, match=words) as refusal:
        open_database(own_url)
    assert hint in refusal.value.hint and not refusal.value.transient
    if words == "newer schema":
        with pytest.raises(DatabaseFault, match=words):
            migrate_database(own_url)


def test_somebody_elses_database_is_left_alone(own_url: str) -> None:
    run_sql(own_url, f"DROP TABLE {VERSION_TABLE}")
    with pytest.raises(DatabaseFault, match="holds other tables"):
        open_database(own_url)
    with pytest.raises(DatabaseFault, match="holds other tables"):
        migrate_database(own_url)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, whatever it is called. " * 50)
    with pytest.raises(DatabaseFault, match="is not an SQLite database"):
        open_database(f"sqlite:///{path}")
    assert path.read_text().startswith("not a database")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseFault, match=r"the folder .*file/x can't be created"):
        open_database(f"sqlite:///{tmp_path}/file/x/commtune.db")


def test_a_read_only_database(as_nobody: Path) -> None:
    path = as_nobody / "commtune.db"
    open_database(f"sqlite:///{path}").close()
    path.chmod(0o400)
    as_nobody.chmod(0o500)
    with pytest.raises(DatabaseFault, match=r"read-only|can't be opened") as refusal:
        open_database(f"sqlite:///{path}")
    assert not refusal.value.transient and refusal.value.hint


def test_reading_needs_no_right_to_write(as_nobody: Path) -> None:
    url = f"sqlite:///{as_nobody}/commtune.db"
    with opened_store(url) as store:
        store.open_campaign(given.campaign())
    (as_nobody / "commtune.db").chmod(0o400)
    as_nobody.chmod(0o500)
    assert len(list_summaries(url)) == 1
    with open_readable(url) as readable:
        assert Store(readable).blocks(1) == []


def test_reading_waits_for_no_writer_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "commtune.db"
    url = f"sqlite:///{path}"
    open_database(url).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with open_readable(url) as readable:
            assert list_summaries(url) == []
            assert Store(readable).blocks(1) == []
            with pytest.raises(DatabaseFault, match="read-only"), readable.write() as connection:
                connection.execute(text("DELETE FROM campaigns"))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_written_no_more(
    tmp_path: Path, is_replaced: bool
) -> None:
    path, other = tmp_path / "commtune.db", tmp_path / "other.db"
    open_database(f"sqlite:///{other}").close()
    with opened_store(path) as store:
        if is_replaced:
            other.rename(path)
        else:
            path.unlink()
        with pytest.raises(DatabaseFault, match="is gone: its file was deleted or replaced"):
            store.open_campaign(given.campaign())


def test_reading_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="there is no database"):
        open_readable(f"sqlite:///{tmp_path}/new/commtune.db")
    assert list(tmp_path.iterdir()) == []


def test_an_attempt_waits_no_longer_than_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.3")
    path = tmp_path / "commtune.db"
    open_database(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        # Without the variable it would be ten.
        with pytest.raises(DatabaseFault, match=r"program writes .*; waited for [0-4] s"):
            open_database(f"sqlite:///{path}")


def test_a_busy_database_is_said_and_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.1")
    path = tmp_path / "commtune.db"
    database = open_database(f"sqlite:///{path}")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseFault, match="another program writes") as refusal:
            Store(database).open_campaign(given.campaign())
    assert refusal.value.transient
    assert Store(database).open_campaign(given.campaign()).id == 1
    database.close()


@BOTH
def test_a_server_that_is_not_there(tmp_path: Path, ask: Callable[[str], object]) -> None:
    url = f"postgresql+psycopg://ann:s3cret@/commtune?host={tmp_path}"
    with pytest.raises(DatabaseFault, match="can't be reached") as refusal:
        ask(url)
    assert refusal.value.transient
    assert "s3cret" not in refusal.value.message + refusal.value.hint


@BOTH
def test_a_database_that_the_server_lacks(
    postgresql_url: str, ask: Callable[[str], object]
) -> None:
    missing = postgresql_url.replace("@/test", "@/missing")
    with pytest.raises(DatabaseFault, match="lacks what was asked for") as refusal:
        ask(missing)
    assert "createdb" in refusal.value.hint


@BOTH
@pytest.mark.parametrize("option", ["role", "statement_timeout"])
def test_what_the_server_repeats_of_options_is_hidden(
    postgresql_url: str, option: str, ask: Callable[[str], object]
) -> None:
    with pytest.raises(DatabaseFault, match=r'"\*\*\*"') as refusal:
        ask(f"{postgresql_url}&options=-c%20{option}%3Ds3cret")
    assert "s3cret" not in refusal.value.message + refusal.value.hint


def test_a_server_that_vanishes_without_a_word_is_given_up_after_a_minute(
    postgresql_url: str,
) -> None:
    def settings(url: str) -> tuple[int, ...]:
        names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
        with open_database(url) as database, database.read() as connection:
            driver: Any = connection.connection.driver_connection
            known = driver.info.get_parameters()
            return tuple(int(known[name]) for name in names)

    idle, interval, count, sent = settings(postgresql_url)
    assert idle + interval * count == sent / 1000 == 60
    assert settings(f"{postgresql_url}&keepalives_idle=5") == (5, interval, count, sent)


def test_a_lost_server_is_a_passing_fault_and_the_next_call_connects_again(
    postgresql_url: str,
) -> None:
    with opened_store(postgresql_url) as store:
        campaign_id = given.begin(store)
        store.start_runs(campaign_id, [given.request()], "s1")
        with pytest.raises(DatabaseFault) as refusal, store.database.write() as connection:
            mine = connection.execute(text("SELECT pg_backend_pid()")).scalar()
            run_sql(postgresql_url, f"SELECT pg_terminate_backend({mine})")
            connection.execute(text("SELECT 1"))
        assert refusal.value.transient and "can't be reached" in refusal.value.message
        store.finish_run(campaign_id, given.result(), "allreduce")


@pytest.mark.parametrize(
    ("url", "kind", "words"),
    [
        ("oracle9i://ann:s3cret@db/x", UserError, "is not understood"),
        ("mysql://ann:s3cret@db/x", UserError, "is not understood"),
        ("postgresql+nodriver://ann:s3cret@db/x", UserError, "is not understood"),
        (
            "postgresql+asyncpg://ann:s3cret@db/x",
            DatabaseFault,
            "needs the Python package asyncpg",
        ),
        ("://ann:s3cret@db", UserError, "is not understood"),
        ("postgresql+psycopg://ann:s3cret@db:port/x", UserError, "is not understood"),
    ],
)
@BOTH
def test_urls_that_lead_nowhere(
    url: str, kind: type[CommtuneError], words: str, ask: Callable[[str], object]
) -> None:
    with pytest.raises(kind, match=words) as refusal:
        ask(url)
    assert "s3cret" not in refusal.value.message + refusal.value.hint


def test_the_remedy_is_for_the_python_that_lacks_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    # Whatever PATH's pip belongs to: this Python is the one that lacks it.
    wanted = f"{sys.executable} -m pip install '.[postgresql]'  # in commtune's checkout"
    assert install_command(".[postgresql]") == wanted
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert install_command(".[postgresql]") == wanted.replace(sys.executable, "python")
