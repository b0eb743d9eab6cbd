"""Migrations make what the tables say, both ways, and from every schema that was ever released."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from old_databases import MIGRATIONS, SCHEMAS, alembic, make_old_database, schema_digest
from sqlalchemy import Connection, MetaData, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from commtune.db.connection.engine import open_database, upgrade_database
from commtune.db.connection.location import SCHEMA, VERSION_TABLE
from commtune.db.queries import best, profiles
from commtune.db.storage.store import Store
from commtune.db.tables import METADATA
from commtune.errors import DatabaseFault
from commtune.model.conclusion import Conclusion, Decision

RELEASED = sorted(SCHEMAS.glob("r*.sql"))


def difference(connection: Connection) -> list[Any]:
    """What Alembic would write into a next migration."""
    options = {"compare_type": True, "version_table": VERSION_TABLE}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, METADATA))


def test_there_is_one_newest_schema_and_it_is_the_one_in_the_code() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [SCHEMA]
    for script in scripts.walk_revisions():
        assert re.fullmatch(r"r\d{4}", script.revision)
        assert Path(script.path).name.startswith(f"{script.revision}_")
        assert script.down_revision is None or str(script.down_revision) < script.revision


def test_a_new_database_is_what_the_tables_say(new_url: str) -> None:
    open_database(new_url).close()
    with alembic(new_url) as (_, connection):
        assert difference(connection) == []


def test_a_missing_column_would_be_noticed(own_url: str) -> None:
    with alembic(own_url) as (_, connection):
        connection.execute(text("ALTER TABLE runs DROP COLUMN output_tail"))
        connection.execute(text("DROP INDEX ix_profiles_best"))
        assert {change[0] for change in difference(connection)} == {"add_column", "add_index"}


def test_down_and_up_again(own_url: str) -> None:
    with alembic(own_url) as (config, connection):
        command.downgrade(config, "base")
        left = set(inspect(connection).get_table_names())
    assert left == {VERSION_TABLE}
    upgrade_database(own_url)
    with alembic(own_url) as (_, connection):
        assert difference(connection) == []


def test_upgrading_what_is_new_changes_nothing(url: str) -> None:
    database = open_database(url)
    Store(database).open_campaign(given.campaign())
    upgrade_database(url)
    assert [summary.name for summary in given.summaries_of(Store(database))] == ["shm"]
    database.close()


def test_every_schema_has_its_dump() -> None:
    assert [dump.stem for dump in RELEASED][-1] == SCHEMA


def copied(source: str, target: str, revision: str) -> str:
    """The URL of a database of another kind, with an old schema and the rows of the source."""
    with alembic(target) as (config, _):
        command.upgrade(config, revision)
    with (
        create_engine(source, poolclass=NullPool).connect() as reading,
        create_engine(target, poolclass=NullPool).begin() as writing,
    ):
        tables = MetaData()
        tables.reflect(writing)
        for table in tables.sorted_tables:
            rows = [dict(row) for row in reading.execute(table.select()).mappings()]
            if rows and table.name != VERSION_TABLE:
                writing.execute(table.insert(), rows)
    return target


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("dump", RELEASED, ids=lambda path: path.stem)
def test_a_database_of_a_released_schema_is_brought_to_the_newest(
    dump: Path, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = make_old_database(dump, tmp_path)
    if kind == "postgresql":
        url = copied(url, request.getfixturevalue("new_postgresql_url"), dump.stem)
    with (
        pytest.raises(DatabaseFault, match="older schema") if dump.stem < SCHEMA else nullcontext()
    ):
        best.best_profiles(url, "allreduce", 1024)
    upgrade_database(url)
    with alembic(url) as (_, connection):
        assert difference(connection) == []
    database = open_database(url)
    store = Store(database)
    (summary,) = given.summaries_of(store)
    (run,) = store.runs(summary.id)
    assert (summary.name, summary.open_runs, summary.profiles) == ("shm", 1, 1)
    assert [row.bytes for row in run.measurements] == list(given.SIZES)
    assert len(store.samples("r1", 8)) == len(given.result().measurements[0].samples_s)
    assert store.open_runs(summary.id) == [given.request("r2")]
    assert store.decision(summary.id) == Decision(blocks=5)
    assert profiles.load_profile(url, "allreduce-large").profile == given.profile()
    has_course = dump.stem >= "r0002"
    assert run.other_load == (0.25 if has_course else None)
    assert store.blocks(summary.id) == ([given.block()] if has_course else [])
    assert store.executions(summary.id) == ([given.execution()] if has_course else [])
    assert store.conclusion(summary.id) == (Conclusion() if has_course else None)
    has_jobs = dump.stem >= "r0003"
    assert (run.nodes, run.distance) == ((("n1", "n2"), "same-switch") if has_jobs else ((), ""))
    with database.engine.connect() as connection:
        costs = connection.execute(
            text("SELECT r.end_s, m.first_call_s FROM runs r JOIN measurements m ON m.run_id=r.id")
        ).first()
    assert costs == ((0.125, 4e-4) if dump.stem >= "r0004" else (None, None))
    jobs = store.job_book(summary.id)
    assert jobs.open_jobs() == ([given.job()] if has_jobs else [])
    assert jobs.node_hours() == (0.5 if has_jobs else 0.0)
    store.plan_block(summary.id, given.block(5))
    store.add_execution(summary.id, given.execution(why="once more"))
    jobs.put_job(given.job("the next"))
    assert store.blocks(summary.id)[-1] == given.block(5)
    assert jobs.open_jobs()[-1] == given.job("the next")
    assert store.executions(summary.id) == [given.execution(why="once more")]
    database.close()


@pytest.mark.parametrize("dump", RELEASED, ids=lambda path: path.stem)
def test_a_released_migration_makes_what_it_made(dump: Path, tmp_path: Path) -> None:
    make_old_database(dump, tmp_path)
    first, *_ = dump.read_text().splitlines()
    assert first == f"-- schema {schema_digest(tmp_path / 'old.db')}", "never change a migration"
