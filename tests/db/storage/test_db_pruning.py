"""``commtune db prune``: what old campaigns lose, and that nothing else changes."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from sqlalchemy import select, update
from stored_campaigns import Made
from stores import opened_store

from commtune.app.campaigns import sharing
from commtune.app.campaigns.next_steps import describe_next_steps
from commtune.app.campaigns.stored import list_campaigns
from commtune.app.setup.pruning import find_prunable, prune_campaigns, record_files
from commtune.commands.setup.database import db_prune_command
from commtune.db.damage import DamagedRows
from commtune.db.inspection import find_damage
from commtune.db.lock_owner import LockOwner
from commtune.db.storage.store import Store
from commtune.db.tables import CAMPAIGNS, METADATA, RUNS
from commtune.errors import UserError
from commtune.model import DEFAULT, Configuration, Phase

#: Columns that a prune empties.
_PRUNED = {("measurements", "samples"), ("runs", "output_tail")}


def rows_of(store: Store, *, but: set[tuple[str, str]]) -> dict[str, Any]:
    """All rows of a database, without some columns."""
    with store.database.read() as connection:
        return {
            table.name: connection.execute(
                select(*(c for c in table.columns if (table.name, c.name) not in but)).order_by(
                    *table.primary_key.columns
                )
            ).all()
            for table in METADATA.sorted_tables
        }


def age(store: Store) -> None:
    """Makes campaigns old."""
    with store.database.write() as connection:
        connection.execute(update(CAMPAIGNS).values(created=1.7e9, finished=None))
        connection.execute(update(RUNS).where(RUNS.c.state != "stored").values(started_at=1.7e9))


def searched(store: Store, number: int, run_id: str, block: int, trial: int) -> None:
    """A run of the search that failed late: it has samples and output."""
    run = given.request(run_id, phase=Phase.SEARCH, block=block, trial=trial)
    given.add_run(store, number, run, started_at=1_700_000_000.0, output_tail="bye")


def test_samples_and_output_of_the_search_go_and_nothing_else(url: str, store: Store) -> None:
    number = Made(trials=20, blocks=3).store(store)
    searched(store, number, "late", block=900, trial=2)
    age(store)
    before = rows_of(store, but=_PRUNED)
    found = find_prunable(30, url)
    assert [one.name for one in found] == ["made-up"]
    assert found[0].runs > 10
    assert prune_campaigns(found, url) == []
    assert rows_of(store, but=_PRUNED) == before
    assert given.samples_of(store, "late", given.SIZES[0]) == ()
    with store.database.read() as connection:
        tails = connection.execute(select(RUNS.c.output_tail).where(RUNS.c.run_id == "late"))
        assert tails.scalar_one() == ""
    for run in store.runs(number, Phase.CONFIRM):
        assert all(
            len(given.samples_of(store, run.run_id, m.bytes)) == 1 for m in run.measurements
        )
    assert find_damage(store.database) == []
    assert [one.runs for one in find_prunable(30, url)] == [0]


def test_blocks_with_a_run_of_what_is_recommended_stay(url: str, store: Store) -> None:
    number = store.open_campaign(given.campaign()).id
    for trial, configuration in enumerate((DEFAULT, given.TUNED, Configuration({"X": "1"}))):
        store.add_trial(number, trial, configuration, "user")
    store.save_profiles(number, [given.profile()])
    for place, (block, trial) in enumerate([(1, 0), (1, 1), (2, 0), (2, 2)]):
        searched(store, number, f"r{place}", block, trial)
    age(store)
    prune_campaigns(find_prunable(30, url), url)
    kept = [bool(given.samples_of(store, f"r{place}", given.SIZES[0])) for place in range(4)]
    assert kept == [True, True, False, False]


def test_what_ran_lately_or_is_held_stays(url: str, store: Store) -> None:
    held = Made(name="held", trials=5, blocks=2).store(store)
    late = Made(name="late", trials=5, blocks=2).store(store)
    given.add_run(store, late, "today", started_at=time.time())
    age(store)
    before = rows_of(store, but={("locks", "heartbeat")})
    store.lock(held, LockOwner("elsewhere", "", 1, 1, 0))
    found = find_prunable(30, url)
    assert [one.name for one in found] == ["held"]
    ((name, why),) = prune_campaigns(found, url)
    assert name == "held" and "is in use by process 1 on elsewhere" in why
    after = rows_of(store, but={("locks", "heartbeat")})
    assert {**after, "locks": []} == before


def test_nothing_is_pruned_by_a_damaged_date(sqlite_url: str) -> None:
    with opened_store(sqlite_url) as store:
        store.open_campaign(given.campaign())
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE campaigns SET created = 'long ago'")
    with pytest.raises(DamagedRows, match="created: 'long ago' is not a number"):
        find_prunable(30, sqlite_url)


def test_record_files_of_stored_runs_are_compressed(
    url: str, store: Store, tmp_path: Path
) -> None:
    number = store.open_campaign(given.campaign(folder=str(tmp_path))).id
    store.add_trial(number, 0, DEFAULT, "baseline")
    searched(store, number, "stored", block=1, trial=0)
    store.start_runs(number, [given.request("open", trial=0)], "s")
    for name in ("stored", "open", "unknown"):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
    age(store)
    found = find_prunable(30, url)
    assert [file.stem for one in found for file in record_files(one)] == ["stored"]
    prune_campaigns(found, url)
    left = {file.name for file in tmp_path.glob("*.jsonl*")}
    assert left == {"stored.jsonl.gz", "open.jsonl", "unknown.jsonl"}


def test_a_closed_folder_of_another_user_disturbs_neither_prune_nor_status(
    as_nobody: Path,
) -> None:
    closed = as_nobody / "closed"
    (closed / "night" / "jobs").mkdir(parents=True)
    url = f"sqlite:///{as_nobody}/commtune.db"
    with opened_store(url) as store:
        store.open_campaign(given.campaign(folder=str(closed / "night" / "runs")))
        age(store)
    closed.chmod(0)
    try:
        found = find_prunable(30, url)
        assert prune_campaigns(found, url) == []
        assert [record_files(one) for one in found] == [[]]
        (campaign,) = list_campaigns(url)
        first, _ = describe_next_steps(campaign, is_old=False)
        assert first == "no controller works on it"
    finally:
        closed.chmod(0o700)


def test_a_pruned_campaign_can_be_given_away(url: str, store: Store, tmp_path: Path) -> None:
    Made(trials=10, blocks=3).store(store)
    age(store)
    prune_campaigns(find_prunable(30, url), url)
    sharing.create_bundle(tmp_path / "b", db=url)
    other = f"sqlite:///{tmp_path}/other.db"
    ((_, is_new),) = sharing.merge_bundle(sharing.read_bundle(tmp_path / "b"), "site-a", other)
    assert is_new


def test_moments_of_replayed_runs_are_not_of_this_clock(url: str, store: Store) -> None:
    Made(trials=5, blocks=2, replayed="grid").store(store)
    assert find_prunable(30, url) == []
    age(store)
    assert len(find_prunable(30, url)) == 1


def test_it_says_what_would_go_and_asks(
    url: str, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Made(trials=10, blocks=3).store(store)
    age(store)
    before = rows_of(store, but=set())
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with pytest.raises(UserError, match="nothing was pruned"):
        db_prune_command(30, db=url)
    assert rows_of(store, but=set()) == before
    said = capsys.readouterr().out
    assert said.startswith("1 campaign without a run in 30 days:\n  ")
    assert said.endswith("\nPrune? [y/N] ")
    db_prune_command(30, yes=True, db=url)
    assert capsys.readouterr().out.endswith("pruned\n")
    db_prune_command(30, yes=True, db=url)
    assert capsys.readouterr().out == "nothing to prune in 1 campaign without a run in 30 days\n"


def test_room_goes_back_to_the_disk(sqlite_url: str, tmp_path: Path) -> None:
    with opened_store(sqlite_url) as store:
        number = store.open_campaign(given.campaign()).id
        store.add_trial(number, 0, DEFAULT, "baseline")
        for place in range(200):
            searched(store, number, f"r{place}", block=place, trial=0)
        age(store)
    full = (tmp_path / "commtune.db").stat().st_size
    prune_campaigns(find_prunable(30, sqlite_url), sqlite_url)
    assert (tmp_path / "commtune.db").stat().st_size < full
