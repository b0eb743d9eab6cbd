"""``commtune best`` where a verification withdrew a profile: the default stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from service_client import TOKEN, served_at
from stores import opened_store

import commtune as ct
from commtune.app.profiles.answers import answer_question
from commtune.commands.campaigns import manage, status
from commtune.commands.profiles import best
from commtune.db.queries.profiles import load_profile, load_profiles
from commtune.db.records import BestRow, SystemRecord
from commtune.db.remote import load_answer
from commtune.errors import ExportRefused
from commtune.formatting import format_day
from commtune.model import (
    DEFAULT,
    Configuration,
    Operation,
    Verdict,
    VerificationVerdict,
    Workload,
)

KIB = 1024
SMALL = Configuration({"MPIR_CVAR_Y": "2"})
#: Later than any test runs, and so after the profile was made.
FOUND = given.verification(profile="large", finding=VerificationVerdict.WORSE, ended_at=4e9)
NOTE = f"verified {format_day(FOUND.ended_at)}: worse; steady"
WHY = f"shm/large was withdrawn: {NOTE}"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A campaign of two ranges, of which that of large messages was withdrawn."""
    url = f"sqlite:///{tmp_path}/commtune.db"
    ends = {"small": (8, KIB), "large": (64 * KIB, KIB * KIB)}
    settings = {"small": SMALL, "large": given.TUNED}
    profiles = [
        given.profile(
            name,
            bytes_low=low,
            bytes_high=high,
            configuration=settings[name],
            guards=(),
            points=(given.point(low, "all"), given.point(high, "all")),
        )
        for name, (low, high) in ends.items()
    ]
    with opened_store(url) as store:
        campaign = given.begin(store)
        store.save_profiles(campaign, profiles)
        store.add_verification(campaign, FOUND)
        yield url


def said(url: str, size: str | None, capsys: pytest.CaptureFixture[str], **how: Any) -> str:
    best.best_command("allreduce", size, db=url, **how)
    return capsys.readouterr().out


def test_the_table_has_sizes_of_a_withdrawn_profile(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = said(url, None, capsys)
    (row,) = [line for line in table.splitlines() if line.startswith("64 KiB")]
    assert row.endswith("  the default, shm/large was withdrawn")
    assert f"\nshm/large\n  {NOTE}" in table
    assert "SHM_EAGER" not in table


def test_the_default_stays_at_a_size_of_a_withdrawn_profile(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(url, "64KiB", capsys).splitlines()
    assert lines[0] == f"allreduce of 64 KiB, 2 ranks: keep the default ({WHY})"
    assert "verify shm/large --db " in lines[-1]
    (row,) = json.loads(said(url, "64KiB", capsys, json_output=True))
    assert (row["answer"], row["reason"], row["why"]) == ("keep-default", "withdrawn", WHY)
    assert row["environment"] == row["configuration"] == {}
    told = answer_question(Operation.ALLREDUCE, 64 * KIB, {}, db=url)
    assert told["message"] == f"keep the default ({WHY})"
    assert told["hint"] == "measure it again: commtune verify shm/large"


def test_a_withdrawn_neighbour_does_not_hide_the_other(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(url, "4KiB", capsys).splitlines()
    assert "the neighbours disagree" in lines[0]
    assert "1 KiB: shm/small" in lines
    assert f"64 KiB: keep the default ({WHY})" in lines


def test_a_service_answers_the_same_and_is_not_named_where_it_measures_nothing(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_TOKEN", TOKEN)
    with served_at(url.removeprefix("sqlite:///")) as printed:
        address = printed.partition("/?")[0]
        asked: list[str | None] = [None, "64KiB", "4KiB"]
        for size in asked:
            local, served = (said(where, size, capsys) for where in (url, address))
            assert served == local.replace(f" --db {url}", "")


def test_the_same_settings_for_all_sizes_are_withdrawn_at_these_sizes(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tuple(given.point(size, "all") for size in (8, 64 * KIB, KIB * KIB))
    whole = given.profile("all-sizes", bytes_low=8, points=points, guards=())
    with opened_store(url) as store:
        campaign = given.begin(store)
        large = given.profile("large", bytes_low=64 * KIB, points=points[1:], guards=())
        store.save_profiles(campaign, [large, whole])
        rows = json.loads(said(url, "64KiB", capsys, json_output=True))
        assert [one["verdict"] for one in rows] == ["withdrawn", "withdrawn"]
        why = f"large has the same settings, {NOTE.removesuffix('; steady')}"
        assert rows[1]["why"] == f"shm/all-sizes was withdrawn: {why}"
        assert said(url, "8", capsys).startswith("allreduce of 8 B, 2 ranks: shm/all-sizes\n")
        notes = [load_profile(url, "shm/all-sizes").profile.note]
        notes += [one.note for one in load_profiles(url, "shm") if one.name == "all-sizes"]
        assert notes == [NOTE.replace(": worse", " as large: worse")] * 2
        told = [said(url, "8", capsys), said(url, None, capsys)]
        for command in (status.status_command, manage.profiles_command):
            command(db=url)
            told.append(" ".join(capsys.readouterr().out.split()))
        assert [notes[0] in text for text in told] == [True] * 4
        held = given.verification(profile="all-sizes", ended_at=FOUND.ended_at + 1)
        store.add_verification(campaign, held)
    assert said(url, "64KiB", capsys).startswith("allreduce of 64 KiB, 2 ranks: shm/all-sizes\n")
    assert load_profile(url, "shm/all-sizes").profile.note == "steady"


def test_a_narrower_profile_says_that_its_settings_were_withdrawn_for_all_sizes(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tuple(given.point(size, "all") for size in (8, 64 * KIB, KIB * KIB))
    whole = given.profile("all-sizes", bytes_low=8, points=points, guards=())
    large = given.profile("large", bytes_low=64 * KIB, points=points[1:], guards=())
    with opened_store(url) as store:
        campaign = given.begin(store, given.campaign("other"))
        store.save_profiles(campaign, [large, whole])
        store.add_verification(campaign, replace(FOUND, profile="all-sizes"))
    note = NOTE.replace(": worse", " as all-sizes: worse")
    assert load_profile(url, "other/large").profile.note == note
    status.status_command(db=url)
    assert f"other/large: {note}" in " ".join(capsys.readouterr().out.split())


def test_an_earlier_campaign_with_the_same_settings_is_no_answer_any_more(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = (given.point(64 * KIB, "all"),)
    with opened_store(url) as store:
        earlier = given.begin(store, given.campaign("earlier"))
        same = given.profile("same", bytes_low=64 * KIB, points=points, guards=())
        store.save_profiles(earlier, [same])
        rows = json.loads(said(url, "64KiB", capsys, json_output=True))
        assert [one["verdict"] for one in rows] == ["withdrawn", "withdrawn"]
        why = f"shm/large has the same settings, {NOTE.removesuffix('; steady')}"
        assert f"earlier/same was withdrawn: {why}" in [one["why"] for one in rows]
        held = given.verification(profile="same", ended_at=FOUND.ended_at + 1)
        store.add_verification(earlier, held)
    assert said(url, "64KiB", capsys).startswith("allreduce of 64 KiB, 2 ranks: earlier/same\n")


@pytest.mark.parametrize("asked", [{"campaign": "earlier"}, {"min_pairs": 20}])
def test_a_question_that_leaves_out_what_was_withdrawn_is_not_answered_with_its_settings(
    asked: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    few = given.point(64 * KIB, "all")
    many = replace(few, gain=replace(few.gain, pairs=30))
    with opened_store(url) as store:
        earlier = given.begin(store, given.campaign("earlier"))
        same = given.profile("same", bytes_low=64 * KIB, points=(many,), guards=())
        store.save_profiles(earlier, [same])
    (row,) = json.loads(said(url, "64KiB", capsys, json_output=True, **asked))
    assert (row["campaign"], row["verdict"], row["environment"]) == ("earlier", "withdrawn", {})
    with ct.open_store(url) as opened:
        found = opened.best("allreduce", "64KiB", **asked)
    assert (found.verdict, found.environment, found.note) == ("withdrawn", {}, row["note"])
    with pytest.raises(ExportRefused, match="was withdrawn"):
        found.export()


OTHER_RUNS: list[dict[str, Any]] = [
    {"space": {"pinned": {"MPIR_CVAR_Z": "1"}}},
    {"what": {"workload": Workload(Operation.ALLREDUCE, (8,), ranks=2, dtype="float64").plain()}},
    {"system": SystemRecord("sys-2", "another", {})},
]


@pytest.mark.parametrize("changes", OTHER_RUNS)
def test_the_same_settings_stay_where_other_runs_were_measured(
    changes: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened_store(url) as store:
        other = given.begin(store, given.campaign("other", **changes))
        points = (given.point(64 * KIB, "all"),)
        same = given.profile("same", bytes_low=64 * KIB, points=points, guards=())
        store.save_profiles(other, [same])
    (row,) = json.loads(said(url, "64KiB", capsys, campaign="other", json_output=True))
    assert row["verdict"] == "faster"


def test_between_sizes_settings_that_were_withdrawn_at_the_next_one_are_no_answer(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tuple(given.point(size, "all") for size in (8, 64 * KIB))
    with opened_store(url) as store:
        earlier = given.begin(store, given.campaign("earlier"))
        same = given.profile("same", bytes_low=8, bytes_high=64 * KIB, points=points, guards=())
        store.save_profiles(earlier, [same])
    (row,) = json.loads(said(url, "32KiB", capsys, campaign="earlier", json_output=True))
    assert (row["verdict"], row["environment"]) == ("withdrawn", {})
    near = {one["bytes"]: one["verdict"] for one in row["neighbours"]}
    assert near == {8: "faster", 64 * KIB: "withdrawn"}


def test_an_answer_with_a_verdict_that_is_not_known_yet_is_undecided(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (told,) = json.loads(said(url, "64KiB", capsys, json_output=True))
    assert load_answer(BestRow, {**told, "verdict": "superb"}).finding is Verdict.UNDECIDED


def test_the_api_answers_without_the_settings_of_a_withdrawn_profile(url: str) -> None:
    with ct.open_store(url) as store:
        found = store.best("allreduce", "64KiB")
        assert (found.verdict, found.configuration, found.environment) == (
            "withdrawn",
            DEFAULT,
            {},
        )
        between = store.best("allreduce", "4KiB").neighbours
        assert {size: one.configuration for size, one in between.items()} == {
            KIB: SMALL,
            64 * KIB: DEFAULT,
        }
