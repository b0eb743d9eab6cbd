"""Questions to PostgreSQL without SQLAlchemy: its URLs and faults mean the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from waiting import PATIENCE_S, wait_for

from commtune.db.connection.location import database_url
from commtune.db.connection.postgresql import _write_for_psycopg, read_url
from commtune.db.connection.reader import open_for_reading
from commtune.errors import DatabaseFault, NoAnswer


@pytest.mark.parametrize(
    "written",
    [
        "postgresql://",
        "postgresql://db",
        "postgresql://db/x",
        "postgres://ann@db:5433/x",
        "postgresql://ann:s3%2Fcr%40%3Aet@db.example.org/x%20y",
        "postgresql://ann@/x?host=/run/postgresql&sslmode=require",
        "postgresql:///x?options=-c+search_path%3Dtuned&connect_timeout=3&application_name=",
        "postgresql://:5433/x",
    ],
)
def test_a_url_means_what_it_means_to_sqlalchemy(written: str) -> None:
    url = database_url(written)
    dialect = create_engine(url).dialect
    _, wanted = dialect.create_connect_args(make_url(url))
    del wanted["context"]  # loaders for types that no column of ours has
    assert read_url(url) == {name: str(value) for name, value in wanted.items()}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg2://ann@db/x",
        "mysql+pymysql://ann@db/x",
        "postgresql+psycopg://ann:s3/cret@db/x",
        "postgresql+psycopg://ann:s3cret@with@at@db/x",
        "postgresql+psycopg://ann:s3?cret@db/x",
        "postgresql+psycopg://[::1]:5432/x",
        "postgresql+psycopg://%2Frun%2Fpostgresql/x",
        "postgresql+psycopg://db:port/x",
        "postgresql+psycopg:///x?host=one&host=other",
        "postgresql+psycopg:///x?host=one:5433",
    ],
)
def test_what_only_sqlalchemy_knows_is_left_to_it(url: str) -> None:
    assert read_url(url) is None


@pytest.mark.parametrize("more", ["", "&host=/nowhere"])
def test_both_ways_give_the_same_answers(postgresql_url: str, more: str) -> None:
    # Two hosts: libpq tries one after the other, and only SQLAlchemy takes them from such a URL.
    url = postgresql_url + more
    assert (read_url(url) is None) == bool(more)
    asked = """SELECT CAST(:number AS BIGINT) AS number, :word LIKE '%b' AS is_like,
      CAST('[1]' AS JSON) AS plain"""
    with open_for_reading(url) as rows:
        assert rows(asked, {"number": 2**40, "word": "ab", "unused": 1}) == [
            {"number": 2**40, "is_like": True, "plain": [1]}
        ]
        (isolation,) = rows("SHOW transaction_isolation", {})
        assert isolation == {"transaction_isolation": "repeatable read"}  # one state is seen


def test_a_statement_is_written_for_psycopg() -> None:
    statement = "SELECT a FROM b WHERE c LIKE '%' || :name || '%' AND d = :other_1"
    wanted = "SELECT a FROM b WHERE c LIKE '%%' || %(name)s || '%%' AND d = %(other_1)s"
    assert _write_for_psycopg(statement) == wanted


def test_a_database_without_our_tables(new_postgresql_url: str) -> None:
    def read() -> None:
        with open_for_reading(new_postgresql_url):
            pass

    with pytest.raises(NoAnswer, match="is empty"):
        read()
    with closing(psycopg.connect(new_postgresql_url.replace("+psycopg", ""))) as other:
        other.execute("CREATE TABLE theirs (id INTEGER)")
        other.commit()
    with pytest.raises(DatabaseFault, match="is not commtune's"):
        read()


def test_tables_are_found_behind_a_schema_of_the_users_own(postgresql_url: str) -> None:
    plain = postgresql_url.replace("+psycopg", "")
    with closing(psycopg.connect(plain, autocommit=True)) as other:
        other.execute("CREATE SCHEMA IF NOT EXISTS commtune")  # as the user: "$user" comes first
        try:
            with open_for_reading(postgresql_url) as rows:
                assert rows("SELECT id FROM campaigns", {}) == []
        finally:
            other.execute("DROP SCHEMA commtune")


def test_a_server_that_is_lost_while_it_is_read(postgresql_url: str) -> None:
    with (
        pytest.raises(DatabaseFault, match="can't be reached") as refusal,
        open_for_reading(postgresql_url) as rows,
    ):
        rows("SELECT pg_terminate_backend(pg_backend_pid())", {})
    assert refusal.value.transient


@pytest.mark.parametrize("password", ["", ":not@encoded"])
def test_ctrl_c_ends_a_question_that_waits(postgresql_url: str, password: str) -> None:
    waiting = (
        "SELECT 1 FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    url = postgresql_url.replace("commtune@", f"commtune{password}@")
    assert (read_url(url) is None) == bool(password)  # the second is SQLAlchemy's
    command = [sys.executable, "-m", "commtune.cli", "best", "--op", "allreduce", "--db", url]
    plain = postgresql_url.replace("+psycopg", "")
    with closing(psycopg.connect(plain)) as holder, psycopg.connect(plain) as looks:
        holder.execute("LOCK TABLE profiles")
        looks.autocommit = True
        with subprocess.Popen(command, stderr=subprocess.PIPE) as asks:
            try:
                wait_for(lambda: looks.execute(waiting).fetchone() is not None, "the question")
                asks.send_signal(signal.SIGINT)
                assert asks.wait(PATIENCE_S) == 130
            finally:
                asks.kill()


def test_psycopg_is_named_where_it_is_missing() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from commtune.cli import main; sys.argv[1:] = ['status', '--db', 'postgresql://db/x']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 3
    assert "needs the Python package psycopg" in done.stderr
    assert "'.[postgresql]'" in done.stderr
