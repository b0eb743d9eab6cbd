"""Measurements as a table, and the views for people, on both databases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import database_values as given
import pytest
from command_line import ROOT
from sqlalchemy import RowMapping, text
from stored_campaigns import Made

from commtune.db.checked_values import check_document
from commtune.db.queries import results
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.records import CampaignSummary
from commtune.db.storage.store import Store
from commtune.errors import UnknownName
from commtune.model import Configuration, Outcome


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two campaigns, one with failed and lost runs; read in many pages."""
    monkeypatch.setattr(results, "_LAST", results._LAST.replace("LIMIT 200", "LIMIT 7"))
    lost = Made(name="made-up", trials=16, blocks=8, whole=True).store(store)
    store.add_trial(lost, 999, given.TUNED, "user")
    store.start_runs(lost, [given.request("gone", trial=999), given.request("on", trial=999)], "s")
    store.mark_interrupted("gone", "its controller died")
    Made(name="other's", trials=2, blocks=0, simulated=True, concluded=False).store(store)
    return store


def table(store: Store, *campaigns: str) -> list[dict[str, Any]]:
    found = results.find_results(store.database.whole_url, campaigns)
    return [dict(zip(found.columns, row, strict=True)) for row in found]


def view(store: Store, name: str) -> Sequence[RowMapping]:
    with store.database.read() as connection:
        return connection.execute(text(f"SELECT * FROM {name}")).mappings().all()


def test_every_measurement_is_a_row_and_so_is_a_run_without_any(filled: Store) -> None:
    rows = table(filled, "made-up")
    runs = list(filled.runs(given.summaries_of(filled)[-1].id))
    expected: list[tuple[Any, ...]] = [
        (run.run_id, run.outcome, run.trial, run.block, dict(run.configuration), size)
        for run in runs
        for size in ([*sorted(m.bytes for m in run.measurements)] or (None,))
    ]
    shown = ("run", "outcome", "trial", "block", "configuration", "bytes")
    read = [
        {**row, "configuration": check_document(row["configuration"], dict)[0]} for row in rows
    ]
    assert [tuple(row[name] for name in shown) for row in read] == expected
    measured = {(run.run_id, m.bytes): m for run in runs for m in run.measurements}
    for row in rows:
        if row["bytes"] is not None:
            one = measured[row["run"], row["bytes"]]
            assert row["median_s"] == one.time_s
            assert row["busbw_bytes_per_s"] == one.busbw
    assert {"crashed", "interrupted", "ok"} == {row["outcome"] for row in rows}


def test_a_variable_is_a_column_and_unset_is_not_empty(filled: Store) -> None:
    (gone,) = (row for row in table(filled, "made-up") if row["run"] == "gone")
    assert gone["env_MPIR_CVAR_X"] == ""
    assert gone["env_LIB_ALGORITHM"] is None
    assert {name for name in gone if name.startswith("env_")} == {
        f"env_{name}"
        for run in filled.runs(given.summaries_of(filled)[-1].id)
        for name in run.configuration
    }


def test_campaigns_are_chosen_by_name_or_all_of_them(filled: Store) -> None:
    both = [row["campaign"] for row in table(filled)]
    assert list(dict.fromkeys(both)) == ["made-up", "other's"]
    assert {row["simulated"] for row in table(filled, "other's")} == {True}
    with pytest.raises(UnknownName) as raised:
        table(filled, "other's", "mad-up")
    assert "made-up" in raised.value.hint


def test_the_view_has_the_columns_of_the_table(filled: Store) -> None:
    row = view(filled, "results")[0]
    assert set(row) == {*results.COLUMNS, "run_number"}
    assert table(filled)[0].keys() >= results.COLUMNS.keys()


def test_moments_are_utc(filled: Store) -> None:
    stored = {run.run_id: run.started_at for run in filled.runs(given.summaries_of(filled)[-1].id)}
    for row in table(filled, "made-up"):
        assert row["started"].endswith("Z")
        moment = datetime.fromisoformat(row["started"])
        assert moment.tzinfo == UTC
        assert moment.timestamp() == pytest.approx(stored[row["run"]], abs=1e-3)


def totals(campaign: CampaignSummary) -> tuple[Any, ...]:
    runs = (campaign.runs, campaign.outcomes.get("ok", 0), campaign.failed, campaign.lost)
    return campaign.name, campaign.trials, *runs, campaign.profiles, campaign.finished is None


def test_the_overview_of_campaigns_counts_as_status_does(filled: Store) -> None:
    campaign = given.summaries_of(filled)[-1].id
    for number, outcome in enumerate(Outcome):
        run = given.request(f"ended {number}", trial=999, configuration=Configuration())
        given.add_run(filled, campaign, run, outcome=outcome)
    names = ("campaign", "trials", "runs", "runs_ok", "runs_failed", "runs_lost", "profiles")
    shown = [
        (*(row[name] for name in names), row["finished"] is None)
        for row in view(filled, "campaigns_overview")
    ]
    assert sorted(shown) == sorted(map(totals, given.summaries_of(filled)))


def test_the_overview_of_profiles_has_all_and_their_evidence(filled: Store) -> None:
    url = filled.database.whole_url
    stored = {one.id: one for one in find_profiles(url)}
    assert {row["number"]: row["profile"] for row in view(filled, "profiles_overview")} == {
        number: f"{one.campaign}/{one.name}" for number, one in stored.items()
    }
    evidence = view(filled, "profile_evidence")
    for number in stored:
        profile = load_profile(url, str(number)).profile
        inside = {
            p.bytes for p in profile.points if profile.bytes_low <= p.bytes <= profile.bytes_high
        }
        mine = [row for row in evidence if row["number"] == number]
        assert {row["bytes"] for row in mine if row["in_range"]} == inside
        assert len(mine) == len(profile.points) + len(profile.guards)


def test_the_queries_of_the_page_run(filled: Store) -> None:
    page = (ROOT / "docs" / "database.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", page[page.index("## Views") :], re.DOTALL)
    assert len(queries) == 4
    with filled.database.read() as connection:
        found = [connection.execute(text(query.strip(";\n"))).all() for query in queries]
    assert [len(rows) > 0 for rows in found] == [True] * 4
