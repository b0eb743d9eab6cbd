"""``commtune best`` for a size that nobody measured: both measured neighbours answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from stores import opened_store

import commtune as ct
from commtune.app.profiles.best import best_by_size
from commtune.commands.profiles import best
from commtune.errors import NoAnswer
from commtune.model import (
    DEFAULT,
    Configuration,
    Interval,
    Operation,
    PointEvidence,
    Profile,
    Verdict,
)

KIB = 1024
OTHER = Configuration({"MPIR_CVAR_Y": "2"})


def ranged(sizes: tuple[int, ...], configuration: Configuration) -> Profile:
    """A profile with evidence at each of its sizes."""
    gains = not configuration.is_default
    interval = Interval(1.3, 1.2, 1.4, 20) if gains else Interval(1.0, 0.99, 1.01, 20)
    verdict = Verdict.FASTER if gains else Verdict.DEFAULT
    points = tuple(
        PointEvidence("allreduce", size, "all", 2e-5, 1e-5, interval, verdict) for size in sizes
    )
    return given.profile(
        f"allreduce-{sizes[0]}-{sizes[-1]}", bytes_low=sizes[0], bytes_high=sizes[-1],
        points=points, guards=(), configuration=configuration, verdict=verdict, note="",
    )  # fmt: skip


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A campaign of three ranges: one configuration, another, and the default."""
    url = f"sqlite:///{tmp_path}/commtune.db"
    with opened_store(url) as store:
        profiles = [
            ranged((8, KIB), given.TUNED),
            ranged((4 * KIB, 64 * KIB), OTHER),
            ranged((256 * KIB, 1024 * KIB), DEFAULT),
        ]
        store.save_profiles(store.open_campaign(given.campaign("one")).id, profiles)
        yield url


def said(url: str, size: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    best.best_command("allreduce", size, db=url)
    return capsys.readouterr().out.splitlines()


def first_row(url: str, size: str, capsys: pytest.CaptureFixture[str]) -> Any:
    best.best_command("allreduce", size, db=url, json_output=True)
    return json.loads(capsys.readouterr().out)[0]


def test_neighbours_that_agree_are_both_shown(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(url, "24KiB", capsys)
    assert lines[0] == "allreduce of 24 KiB, 2 ranks: one/allreduce-4096-65536"
    assert [line.split(":")[0] for line in lines[2:4]] == ["  4 KiB", "  64 KiB"]
    assert "(24 KiB was not measured; its neighbours 4 KiB and 64 KiB agree)" in lines
    assert lines[-1] == "MPIR_CVAR_Y=2"


def test_neighbours_that_disagree_are_named_with_what_each_says(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(url, "3KiB", capsys)
    assert lines[0] == "allreduce of 3 KiB, 2 ranks: not measured; the neighbours disagree"
    assert lines[lines.index("1 KiB: one/allreduce-8-1024") + 2] == (
        "  MPIR_CVAR_CH4_SHM_EAGER=65536"
    )
    assert lines[lines.index("4 KiB: one/allreduce-4096-65536") + 2] == "  MPIR_CVAR_Y=2"
    # Nothing to copy that would hold for the size itself.
    assert not any(line.startswith("MPIR_") for line in lines)


def test_a_note_stands_wherever_settings_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, note = f"sqlite:///{tmp_path}/noted.db", "not shown to contribute: MPIR_CVAR_Y"
    profiles = [ranged((8, KIB), given.TUNED), ranged((4 * KIB,), OTHER)]
    with opened_store(url) as store:
        number = store.open_campaign(given.campaign("one")).id
        store.save_profiles(number, [replace(one, note=note) for one in profiles])
    assert said(url, "3KiB", capsys).count(f"  {note}") == 2
    best.best_command("allreduce", None, db=url)
    assert capsys.readouterr().out.splitlines().count(f"  {note}") == 2


def test_a_likely_profile_is_not_accepted_where_the_neighbours_disagree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/likely.db"
    small, large = ranged((8, KIB), given.TUNED), ranged((4 * KIB,), OTHER)
    points = tuple(replace(one, verdict=Verdict.UNDECIDED) for one in large.points)
    undecided = replace(
        large, name="open", configuration=DEFAULT, verdict=Verdict.UNDECIDED, points=points
    )
    with opened_store(url) as store:
        number = store.open_campaign(given.campaign("one")).id
        store.save_profiles(number, [small, undecided, replace(large, verdict=Verdict.LIKELY)])
    best.best_command("allreduce", "3KiB", accept="likely", db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["answer"], row["environment"]) == ("neighbours-disagree", {})
    assert row["likely"]
    with ct.open_store(url) as opened:
        found = opened.best("allreduce", "3KiB", accept_likely=True)
    assert (found.name, found.support) == ("open", "neighbours-disagree")


def test_one_of_them_may_keep_the_default(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(url, "200000", capsys)
    assert lines[0].endswith(": not measured; the neighbours disagree")
    assert "64 KiB: one/allreduce-4096-65536" in lines
    assert "256 KiB: keep the default" in lines


@pytest.mark.parametrize(
    ("size", "support", "sizes"),
    [
        ("4KiB", "measured", []),
        ("24KiB", "neighbours-agree", [4 * KIB, 64 * KIB]),
        ("512KiB", "neighbours-agree", [256 * KIB, 1024 * KIB]),
        ("4097", "neighbours-agree", [4 * KIB, 64 * KIB]),
        ("3KiB", "neighbours-disagree", [KIB, 4 * KIB]),
    ],
)
def test_json_has_a_code_and_the_neighbours(
    url: str, capsys: pytest.CaptureFixture[str], size: str, support: str, sizes: list[int]
) -> None:
    row = first_row(url, size, capsys)
    assert row["support"] == support
    assert [one["nearest_bytes"] for one in row["neighbours"]] == sizes
    for one, there in zip(row["neighbours"], sizes, strict=True):
        assert one["configuration"] == first_row(url, str(there), capsys)["configuration"]


def test_the_table_has_measured_sizes_only(url: str) -> None:
    filters = dict.fromkeys(("nodes", "ranks", "system", "backend", "campaign"))
    found = best_by_size(Operation.ALLREDUCE, filters, db=url)
    assert list(found) == [8, KIB, 4 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB]


def test_outside_of_what_was_measured_there_is_no_answer(url: str) -> None:
    with pytest.raises(NoAnswer, match="no profile for allreduce, 4 MiB"):
        best.best_command("allreduce", "4MiB", db=url)
