"""Campaigns that an earlier version stored: their conclusions load, and are the same again.

``campaigns-r0004.sql`` was made by the version before conclusions were a model: made-up campaigns
without their runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from old_databases import SCHEMAS, alembic, make_old_database
from sqlalchemy import text

from commtune.db.codec import dump_model
from commtune.db.connection.engine import open_database, upgrade_database
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store
from commtune.model import Conditions, Configuration, Verdict

ROWS = SCHEMAS / "campaigns-r0004.sql"
NAMES = ("faster", "default", "beside", "emulated")


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = make_old_database(ROWS, tmp_path)
    upgrade_database(found)
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    database = open_database(url)
    yield Store(database)
    database.close()


def raw(store: Store, column: str, campaign: str) -> dict[str, Any]:
    """What is stored, as it is."""
    statement = (
        f"SELECT x.{column} FROM {column}s x JOIN campaigns c ON c.id = x.campaign_id "
        "WHERE c.name = :name ORDER BY x.id DESC LIMIT 1"
    )
    with store.database.read() as connection:
        found = connection.execute(text(statement), {"name": campaign}).scalar()
    stored: dict[str, Any] = json.loads(str(found))
    return stored


def missing(old: Any, new: Any, where: str = "") -> list[str]:
    """What is in the old plain data and not the same in the new; null says nothing."""
    if isinstance(old, dict):
        return [
            line
            for key, value in old.items()
            if value is not None
            for line in (missing(value, new[key], f"{where}.{key}") if key in new else [key])
        ]
    if isinstance(old, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for i, (a, b) in pairs for line in missing(a, b, f"{where}[{i}]")]
    return [] if old == new else [f"{where}: {old} -> {new}"]


def number_of(store: Store, name: str) -> int:
    return next(one.id for one in list_summaries(store.database.whole_url) if one.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_a_conclusion_keeps_all_that_it_said(store: Store, name: str) -> None:
    number = number_of(store, name)
    conclusion = store.conclusion(number)
    decision = store.decision(number)
    assert conclusion is not None and decision is not None
    assert missing(raw(store, "conclusion", name), dump_model(conclusion)) == []
    assert missing(raw(store, "decision", name), dump_model(decision)) == []


def test_what_it_said_is_in_the_model(store: Store) -> None:
    number = number_of(store, "faster")
    conclusion = store.conclusion(number)
    assert conclusion is not None
    (large,) = conclusion.answers.ranges[1:]
    assert (large.low, large.high) == (65536, 65536)
    assert large.configuration == Configuration({"V": "2", "W": "2"})
    assert large.gains[65536] == pytest.approx(1.5, rel=0.05)
    confirmed, *_ = conclusion.confirmed
    assert [point.verdict for point in confirmed.points][-1] is Verdict.FASTER
    assert set(conclusion.spent) == {"search", "ablate", "confirm"}
    assert set(conclusion.detectable) == {8, 65536}
    decision = store.decision(number)
    assert decision is not None
    assert decision.ablations == conclusion.ablations


#: What the last version wrote in front of a profile's note.
_BESIDE = "beside an aggressor: incast of 128 KiB from 4 ranks on 2 nodes"
_CONDITIONS = {
    "faster": Conditions(),
    "beside": Conditions(_BESIDE, timing="in batches of 20"),
    "emulated": Conditions(emulated_nodes=2, pattern="window of 8"),
}


@pytest.mark.parametrize("name", _CONDITIONS)
def test_notes_were_taken_apart(url: str, name: str) -> None:
    (first, *_) = find_profiles(url, name)
    profile = load_profile(url, str(first.id)).profile
    assert profile.conditions == _CONDITIONS[name]
    assert profile.note.startswith("no candidate was shown to gain")
    assert "\n" not in profile.note


def notes(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as found:
        return found.execute("SELECT id, note FROM profiles ORDER BY id").fetchall()


def test_notes_are_put_together_again(tmp_path: Path) -> None:
    url = make_old_database(ROWS, tmp_path)
    before = notes(tmp_path / "old.db")
    upgrade_database(url)
    with alembic(url) as (config, _):
        command.downgrade(config, "r0004")
    assert notes(tmp_path / "old.db") == before
