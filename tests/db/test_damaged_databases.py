"""Databases with damage of every kind: nothing ends in a traceback, and the rest is answered."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import database_values as given
import pytest
import sqlalchemy as sa
from stored_campaigns import Made
from stores import opened_store

from commtune.app.campaigns import stored as stored_campaigns
from commtune.app.profiles.best import best_at_size
from commtune.cli import make_app
from commtune.db.connection import engine
from commtune.db.connection.engine import open_database, open_readable
from commtune.db.connection.location import database_url
from commtune.db.damage import ON_DAMAGE, Damage, DamagedRows
from commtune.db.inspection import campaigns_with
from commtune.db.repair import back_up, set_damaged_apart
from commtune.db.storage.store import Store
from commtune.db.tables import METADATA
from commtune.errors import CommtuneError, UserError
from commtune.model.conclusion import Decision
from commtune.service.api import QUESTIONS, answer_request
from commtune.service.pages import PAGES
from commtune.service.replies import Reply

#: What is put into a column, by its type: undecodable, of another type, and out of bounds.
_NO_TEXT = b"\xff\xfe\x80"
_TEXTS: list[Any] = [_NO_TEXT, 7.5, b"\x00blob", "unknown word"]
_NUMBERS: list[Any] = ["text", _NO_TEXT, -1, 1e308, b"\x00blob", float("inf"), 2**62]
_DOCUMENTS: list[Any] = [
    _NO_TEXT, "{", "[]", "7", "null", '"text"', '{"workload": 7}', '{"V": 7}', "[[1]]",
    '{"budget": 7, "level": "x"}', '{"a":' * 1200, '{"detectable": {"x": 1}}', b"\x00",
    '["\\ud800"]',
]  # fmt: skip
_APP = make_app()
_COMMANDS = (
    "status", "profiles", "best --op allreduce --bytes 1KiB", "show first", "show 2", "export 2",
    "results", "db check",
)  # fmt: skip
#: What the service is asked: its pages, and what they don't show.
_PATHS = ("/campaigns/{campaign}", "/campaigns/{campaign}/runs", "/systems", "/stacks")
_SERVED: list[tuple[str, Callable[[str], Reply]]] = [
    *(
        (page.path, lambda db, page=page: page.show(db, "", {"campaign": "first"}, ()))
        for page in PAGES
        if page.path in _PATHS
    ),
    *(
        (one.path, lambda db, one=one: answer_request(one, db, {}, ()))
        for one in QUESTIONS
        if one.path in _PATHS and not one.in_path
    ),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small campaigns."""
    path = tmp_path_factory.mktemp("sound") / "commtune.db"
    with opened_store(path) as store:
        for name in ("first", "second"):
            made = Made(name=name, trials=2, blocks=3, sizes=(8, 65536), header={"init_s": 0.1})
            made.store(store)
        store.lock(1)
        store.job_book(1).put_job(given.job())
        store.add_execution(1, given.execution())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=delete")
    return path


def _columns() -> Iterator[tuple[str, str, Any]]:
    """Every column with values that it never has."""
    texts, numbers, documents = cycle(_TEXTS), cycle(_NUMBERS), cycle(_DOCUMENTS)
    for table in METADATA.sorted_tables:
        for column in table.columns:
            if column.name == "id":
                continue
            inner = getattr(column.type, "impl", None)
            if isinstance(inner, sa.JSON):
                yield from ((table.name, column.name, next(documents)) for _ in range(2))
            elif isinstance(inner, sa.String):
                yield table.name, column.name, next(texts)
            else:
                yield table.name, column.name, next(numbers)


def _damage(path: Path, table: str, column: str, value: Any) -> bool:
    """Puts a value into one row; whether the table has any."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        cast = "CAST(? AS TEXT)" if value is _NO_TEXT else "?"
        row = f"rowid = (SELECT min(rowid) FROM {table})"
        try:
            done = connection.execute(
                f"UPDATE {table} SET {column} = {cast} WHERE {row}", (value,)
            )
        except sqlite3.IntegrityError:  # a column that takes no such value
            return False
        return done.rowcount == 1


def _run(command: str, path: Path) -> str:
    """Runs a command in process; its error in words, empty where it ended well."""
    try:
        arguments = [*command.format(path.parent).split(), "--db", str(path)]
        _APP(arguments, standalone_mode=False, prog_name="commtune")
    except CommtuneError as error:
        return error.message
    return ""


@pytest.fixture
def path(tmp_path: Path, sound: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copy(sound, tmp_path / "commtune.db"))


@pytest.fixture
def told() -> Iterator[list[Damage]]:
    """What readers left out."""
    found: list[Damage] = []
    token = ON_DAMAGE.set(found.append)
    yield found
    ON_DAMAGE.reset(token)


@pytest.fixture
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements are compiled once for all that a file holds in turn, which saves most time."""
    monkeypatch.setattr(engine, "_reading_engine", functools.cache(engine._reading_engine))


@pytest.mark.slow
@pytest.mark.usefixtures("told", "compiled_once")
def test_no_damaged_value_ends_a_command_in_a_traceback(
    path: Path, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried, wrong = 0, []
    for table, column, value in _columns():
        shutil.copy(sound, path)
        if not _damage(path, table, column, value):
            continue
        tried += 1
        # Figures take most of the time.
        for command in (*_COMMANDS, *[f"report first -o {path.parent}/a.html"][tried % 60 :]):
            try:
                said = _run(command, path)
            except Exception as error:
                wrong.append(f"{command}: {table}.{column} = {value!r:.40}: {error!r:.200}")
            else:
                is_plain = value in (_NO_TEXT, "text", "{") or isinstance(value, bytes)
                if command == "db check" and is_plain and "damaged" not in said:
                    wrong.append(f"not found: {table}.{column} = {value!r:.40}: {said}")
        for name, answer in _SERVED:
            try:
                with suppress(CommtuneError):
                    answer(str(path))
            except Exception as error:
                wrong.append(f"{name}: {table}.{column} = {value!r:.40}: {error!r:.200}")
    capsys.readouterr()
    assert tried >= 150
    assert not wrong, "\n".join([f"{len(wrong)} of {tried}", *wrong])


def _names(path: Path) -> list[str]:
    return [one.name for one in stored_campaigns.list_campaigns(str(path))]


def test_what_is_damaged_is_named_and_the_rest_is_answered(
    path: Path, told: list[Damage], capsys: pytest.CaptureFixture[str]
) -> None:
    _damage(path, "campaigns", "settings", "{")
    assert _names(path) == ["second"]
    damage = "campaigns 1: settings: broken JSON: '{'"
    assert [str(one) for one in told] == [damage]
    told.clear()
    for command in ("show first", "report first", "cancel first"):
        assert _run(command, path) == f"the database is damaged: {damage}"
    assert told == []  # what an error says is not told beside it
    assert {one.campaign for one in best_at_size("allreduce", 8, {}, db=str(path))} == {"second"}
    assert [str(one) for one in told] == [damage]
    assert _run("show second", path) == ""
    assert "second: allreduce" in capsys.readouterr().out


def test_a_level_in_percent_is_damage(path: Path, told: list[Damage]) -> None:
    _damage(path, "campaigns", "settings", '{"level": 95}')
    damage = "campaigns 1: settings: level: 95 is no level"
    assert _run("show first", path) == f"the database is damaged: {damage}"
    assert not told


def test_a_profile_is_no_answer_without_all_of_its_evidence(
    path: Path, told: list[Damage]
) -> None:
    _damage(path, "profile_points", "ratio", "text")
    assert _run("show 1", path) == "the database is damaged: profile 1"
    assert str(told[0]) == "profile_points 1: ratio: 'text' is not a number"
    assert {one.campaign for one in best_at_size("allreduce", 8, {}, db=str(path))} == {"second"}


@pytest.mark.parametrize(
    ("column", "value"),
    [("low", 1e9), ("low", -1.0), ("high", 0.5), ("ratio", 0.0), ("ratio", float("inf"))],
)
def test_an_interval_without_its_ratio_is_damage(
    path: Path, told: list[Damage], column: str, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE profile_points SET pairs = 7")  # enough to be drawn
    _damage(path, "profile_points", column, value)
    assert "1 damaged value" in _run("db check", path)
    assert "profile_points 1, 0: ratio: " in capsys.readouterr().out
    assert _run("show 1", path) == "the database is damaged: profile 1"
    (one,) = told
    assert str(one).startswith("profile_points 1: ratio: ")
    assert _run(f"report first -o {path.parent}/a.html", path) == ""
    assert _run(f"plot first -o {path.parent}/a.svg", path) == ""


def test_damage_among_many_times_is_named_and_the_rest_is_read(
    path: Path, told: list[Damage]
) -> None:
    with open_readable(f"sqlite:///{path}") as database:
        runs, whole = Store(database).timed_runs(1)
    # One of the first run's two times, and the whole second run.
    assert _damage(path, "measurements", "canary_s", "text")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET wall_s = -1 WHERE id = 2")
    with open_readable(f"sqlite:///{path}") as database:
        sound, times = Store(database).timed_runs(1)
    assert [(one.table, one.row, one.column) for one in told] == [
        ("runs", "2", "wall_s"),
        ("measurements", "1", "canary_s"),
    ]
    assert sound == [run for place, run in enumerate(runs) if place != 1]
    assert [*times.time_s] == [*whole.time_s[1:2], *whole.time_s[4:]]
    assert [*times.run[:3]] == [0, 1, 1]


def test_damaged_numbers_are_not_added_up(path: Path, told: list[Damage]) -> None:
    (before,) = [one for one in stored_campaigns.list_campaigns(str(path)) if one.id == 1]
    _damage(path, "runs", "wall_s", "1e6 seconds")
    (after,) = [one for one in stored_campaigns.list_campaigns(str(path)) if one.id == 1]
    assert after.runs == before.runs - 1
    assert after.wall_s < before.wall_s
    assert [str(one) for one in told] == ["runs 1: wall_s: '1e6 seconds' is not a number"]


def test_a_damaged_run_beside_one_that_measured_nothing_ends_no_report(
    path: Path, told: list[Damage]
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET outcome = 'crashed' WHERE id = 2")
        connection.execute("DELETE FROM measurements WHERE run_id = 2")
    _damage(path, "runs", "wall_s", "1e6 seconds")
    assert _run(f"report first -o {path.parent}/a.html", path) == ""
    assert {str(one) for one in told} == {"runs 1: wall_s: '1e6 seconds' is not a number"}


@pytest.mark.parametrize(
    "change",
    [
        'systems SET description = \'{"cores_usable": "\\ud800"}\'',
        "conclusions SET conclusion = json_set(conclusion, '$.ablations[0].variables[0].points',"
        """ json('[{"bytes": 8, "pairs": 9, "ratio": -1, "low": 1.1, "high": 1.2}]'))""",
    ],
)
def test_damage_inside_a_document_ends_no_report(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(f"UPDATE {change}").rowcount
    assert _run("report first --output {}/report.html", path) == ""


def test_instead_of_a_damaged_gain_the_next_one_is_shown(path: Path, told: list[Damage]) -> None:
    with opened_store(path) as store:
        store.save_profiles(1, [given.profile()])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE profile_points SET ratio = 'text' WHERE low = 1.6")
    (first,) = [one for one in stored_campaigns.list_campaigns(str(path)) if one.id == 1]
    assert first.best is not None and first.best.low == 1.3
    assert {(one.table, one.column) for one in told} == {("profile_points", "ratio")}


def test_a_controller_does_not_go_on_from_a_part(path: Path) -> None:
    _damage(path, "runs", "outcome", "fine")
    refusal = pytest.raises(DamagedRows, match="runs 1: outcome: 'fine' is no outcome")
    with open_database(f"sqlite:///{path}") as database, refusal:
        list(Store(database).runs(1))


@pytest.mark.parametrize("revision", [b"\xff", 7, "r00x1"])
def test_a_schema_version_that_is_none_is_named_and_repaired(path: Path, revision: Any) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE commtune_schema SET version_num = ?", (revision,))
    for command in _COMMANDS:
        assert "unknown schema" in _run(command, path)
    assert set_damaged_apart(database_url(str(path))) is not None
    assert _names(path) == ["second", "first"]


def test_no_campaign_is_blamed_for_damage_of_the_whole_file(path: Path) -> None:
    with open_readable(f"sqlite:///{path}") as database, database.read() as connection:
        assert campaigns_with(connection, Damage("file", "", "", "it ends early")) == set()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_file_that_was_cut_is_named(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert "damaged" in _run("db check", path)
    for command in _COMMANDS:
        _run(command, path)


@pytest.mark.usefixtures("told")
def test_a_repair_sets_damaged_campaigns_apart_and_loses_nothing(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened_store(path) as store:
        store.lock(1)
        store.unlock(1)
    _damage(path, "measurements", "samples", b"none")
    _damage(path, "runs", "header", "[]")
    assert "2 damaged values" in _run("db check", path)
    assert _run("db repair", path) == ""
    side = path.with_name("commtune.db.damaged-1")
    assert f"set apart: first\nthe database as it was: {side}\n" in capsys.readouterr().out
    with closing(sqlite3.connect(side)) as connection:
        assert connection.execute("SELECT samples FROM measurements").fetchone() == (b"none",)
        assert connection.execute("SELECT count(*) FROM campaigns").fetchone() == (2,)
    assert _names(path) == ["second"]
    assert _run("db check", path) == ""
    assert sorted(one.name for one in path.parent.iterdir()) == ["commtune.db", side.name]
    with closing(sqlite3.connect(path)) as connection:
        rows = "SELECT count(*) FROM measurements"
        assert connection.execute(rows).fetchone()[0] == 2 * 9
        # Numbers of profiles that were printed never name another one.
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'profiles'"
        assert connection.execute(query).fetchone() == (4,)


def test_a_repair_waits_for_nobody_and_refuses_while_a_controller_works(path: Path) -> None:
    _damage(path, "runs", "header", "[]")
    assert "campaigns are in use: process" in _run("db repair", path)


def test_an_older_decision_does_not_stand_in_for_a_damaged_one(
    path: Path, told: list[Damage]
) -> None:
    with opened_store(path) as store:
        for block in (7, 8):
            store.decide(1, Decision(first_block=block))
    with closing(sqlite3.connect(path)) as connection, connection:
        newest = "id = (SELECT max(id) FROM decisions)"
        connection.execute(
            f"""UPDATE decisions SET decision = '{{"blocks": []}}' WHERE {newest}"""
        )
    with open_readable(f"sqlite:///{path}") as database:
        assert Store(database).decision(1) is None
    assert [one.table for one in told] == ["decisions"]


def test_a_sound_database_is_not_repaired(sound: Path) -> None:
    before = sound.read_bytes()
    assert set_damaged_apart(database_url(str(sound))) is None
    assert sound.read_bytes() == before


def test_a_backup_is_consistent_while_others_write(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with open_readable(f"sqlite:///{path}") as database:
        points = given.count(Store(database), "profile_points")
    with opened_store(path) as store:
        store.decide(1, Decision(first_block=7))  # it is in the log alone
        with store.database.write() as connection:
            connection.execute(sa.text("DELETE FROM profile_points"))
            assert _run(f"db backup {copy}", path) == ""
            connection.rollback()
    assert _run("db check", copy) == ""
    assert copy.stat().st_mode & 0o777 == 0o600
    with open_readable(f"sqlite:///{copy}") as copied:
        stored = Store(copied)
        assert stored.decision(1) == Decision(first_block=7)
        assert given.count(stored, "profile_points") == points > 0
    assert "exists" in _run(f"db backup {copy}", path)
    assert f"can't write {tmp_path}/no/c" in _run(f"db backup {tmp_path}/no/c", path)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_server_is_backed_up_by_its_own_program(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        back_up(database_url("postgresql://me:secret@host/runs"), tmp_path / "a")
    typed = f"pg_dump --format=custom --file={tmp_path}/a postgresql://me@host/runs"
    assert refused.value.hint == f"type: {typed}"
