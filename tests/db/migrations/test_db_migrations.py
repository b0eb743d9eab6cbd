"""A database of every schema that was ever released becomes what a new one is."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import database_values as given
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from best_rows import best_profiles
from sqlalchemy import inspect, text
from stores import opened_store

import commtune
from commtune.db.connection.engine import migrate_database, open_database
from commtune.db.connection.location import SCHEMA, VERSION_TABLE
from commtune.db.queries import profiles
from commtune.db.tables import RUNS
from commtune.db.views import drop_views
from commtune.errors import DatabaseFault
from commtune.model.conclusion import Conclusion, Decision

PACKAGE = Path(str(commtune.__file__)).parent
RELEASED = sorted((Path(__file__).parent / "schemas").glob("r*.sql"))


def schema_of(path: Path) -> set[str]:
    """The statements that made an SQLite database, line ends apart."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {" ".join(row[0].split()) for row in rows}


def test_there_is_one_newest_schema_and_it_is_the_one_in_the_code() -> None:
    config = Config()
    config.set_main_option("script_location", str(PACKAGE / "db/migrations"))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [SCHEMA]
    for script in scripts.walk_revisions():
        assert re.fullmatch(r"r\d{4}", script.revision)
        assert Path(script.path).name.startswith(f"{script.revision}_")
        assert script.down_revision is None or str(script.down_revision) < script.revision


def test_jobs_that_are_not_over_have_an_index_of_their_own(own_url: str) -> None:
    with open_database(own_url) as database:
        found = {one["name"]: one for one in inspect(database.engine).get_indexes("jobs")}
    said = found["ix_jobs_open"]["dialect_options"]
    assert any("stage" in str(one) for one in said.values())


def test_upgrading_what_is_new_changes_nothing(url: str) -> None:
    with opened_store(url) as store:
        store.open_campaign(given.campaign())
        migrate_database(url)
        assert [summary.name for summary in given.summaries_of(store)] == ["shm"]


def test_every_schema_has_its_dump() -> None:
    assert [dump.stem for dump in RELEASED][-1] == SCHEMA


@pytest.mark.parametrize("dump", RELEASED, ids=lambda path: path.stem)
def test_a_database_of_a_released_schema_is_brought_to_the_newest(
    dump: Path, tmp_path: Path, migrated_sqlite: Path
) -> None:
    path = tmp_path / "old.db"
    url = f"sqlite:///{path}"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump.read_text())
    migrate_database(url)
    assert schema_of(path) == schema_of(migrated_sqlite)
    with opened_store(url) as store:
        (summary,) = given.summaries_of(store)
        (run,) = store.runs(summary.id)
        assert (summary.name, summary.open_runs, summary.profiles) == ("shm", 1, 1)
        assert [row.bytes for row in run.measurements] == list(given.SIZES)
        assert (run.other_load, run.nodes, run.distance) == (0.25, ("n1", "n2"), "same-switch")
        assert len(given.samples_of(store, "r1", 8)) == len(
            given.result().measurements[0].samples_s
        )
        assert store.open_runs(summary.id) == [given.request("r2")]
        assert store.decision(summary.id) == Decision(blocks=5)
        assert store.blocks(summary.id) == [given.block()]
        assert store.executions(summary.id) == [given.execution()]
        assert store.conclusion(summary.id) == Conclusion()
        assert store.job_book(summary.id).open_jobs() == [given.job()]
        assert store.job_book(summary.id).node_hours() == 0.5
    assert profiles.load_profile(url, "allreduce-large").profile == given.profile()


def test_an_upgrade_adds_the_index_that_counts_runs(own_url: str) -> None:
    name = "ix_runs_campaign_state"
    with open_database(own_url) as database:
        with database.write() as connection:
            drop_views(connection)
            connection.execute(text("DROP TABLE verifications"))
            connection.execute(text("ALTER TABLE trials ADD COLUMN label TEXT"))
            connection.execute(text("DROP INDEX ix_runs_configuration"))
            connection.execute(text(f"DROP INDEX {name}"))
            connection.execute(text(f"CREATE INDEX {name} ON runs (campaign_id, state, outcome)"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = 'r0008'"))
        migrate_database(own_url)
        indexes = inspect(database.engine).get_indexes("runs")
    (wanted,) = (one for one in RUNS.indexes if one.name == name)
    (found,) = (one for one in indexes if one["name"] == name)
    assert found["column_names"] == wanted.columns.keys()


def commtune_of(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the commtune of a folder."""
    return subprocess.run(
        [sys.executable, "-c", "from commtune.cli import main; main()", *arguments],
        cwd=folder,  # which Python searches first
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_next_release_upgrades_what_this_one_made(own_url: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "commtune", ignore=shutil.ignore_patterns("__pycache__"))
    newer = tmp_path / "commtune/db"
    (newer / "migrations/versions/r9999_words.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = 'r9999', '{SCHEMA}'\n"
        "def upgrade():\n"
        "    op.add_column('campaigns', sa.Column('words', sa.Text()))\n"
    )
    location = newer / "connection/location.py"
    location.write_text(
        location.read_text().replace(f'\nSCHEMA = "{SCHEMA}"', '\nSCHEMA = "r9999"')
    )
    with opened_store(own_url) as store:
        store.open_campaign(given.campaign())
    asked = ("status", "--db", own_url)
    refused = commtune_of(tmp_path, *asked)
    assert refused.returncode and f"older schema {SCHEMA}" in refused.stderr
    assert "commtune db upgrade" in refused.stderr
    assert commtune_of(tmp_path, "db", "upgrade", "--db", own_url).returncode == 0
    assert "shm" in commtune_of(tmp_path, *asked).stdout
    with pytest.raises(DatabaseFault, match="newer schema r9999"):
        open_database(own_url)


@pytest.mark.parametrize("revision", ["r0001", "r0007"])
def test_a_database_from_before_the_first_release_is_refused_and_left(
    own_url: str, revision: str
) -> None:
    with open_database(own_url) as database, database.write() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))
    for use in (
        open_database,
        migrate_database,
        lambda url: best_profiles(url, "allreduce", 1024),
    ):
        with pytest.raises(DatabaseFault, match=f"schema {revision}.*before the first") as refused:
            use(own_url)
        assert "--db" in refused.value.hint and "upgrade" not in refused.value.hint
