"""Results as users of the Python API look at them, on a replayed recording."""

from __future__ import annotations

import sys
import traceback
from itertools import pairwise
from pathlib import Path

import pytest

import commtune as ct
from commtune.db.queries.profiles import load_profile
from commtune.errors import ExportRefused, MissingComponent, NoAnswer, UserError


def faster(profiles: ct.Result) -> ct.Profile:
    return next(one for one in profiles.profiles if one.verdict == "faster")


def test_tuning_gives_profiles_with_their_evidence(result: ct.Result, lines: list[str]) -> None:
    assert result.campaign == "mpich-allreduce"
    assert result.evidence.runs > 10
    profile = faster(result)
    assert profile.configuration
    assert profile.environment == {**profile.pinned, **profile.configuration}
    assert profile.simulated
    assert lines and all("\n" not in line for line in lines)


def test_a_session_that_is_repeated_continues(
    result: ct.Result, store: ct.Store, recorded_campaign: Path, recording: Path
) -> None:
    again = ct.tune(recorded_campaign, store=store, replay=recording)
    assert again.evidence.runs >= result.evidence.runs
    assert [one.campaign for one in store.profiles()] == ["mpich-allreduce"] * len(again.profiles)


def test_rows_are_plain_and_have_an_interval_with_its_pairs(result: ct.Result) -> None:
    rows = result.rows()
    assert rows
    for row in rows:
        assert row["low"] <= row["speedup"] <= row["high"]
        assert row["pairs"] > 0
    assert {"bytes", "default_s", "tuned_s", "verdict", "profile"} <= set(rows[0])


def test_a_frame_has_the_same_rows_or_says_how_to_get_pandas(
    result: ct.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingComponent) as raised:
        result.to_frame()
    assert "pip install pandas" in raised.value.hint
    assert "pip install pandas" in "".join(traceback.format_exception(raised.value))
    monkeypatch.undo()
    frame = result.to_frame()
    assert isinstance(frame, sys.modules["pandas"].DataFrame)
    assert frame.to_dict("records") == result.rows()


def test_the_store_answers_as_the_command_does(store: ct.Store, result: ct.Result) -> None:
    ranks = faster(result).ranks
    best = store.best("allreduce", "1MiB", ranks=ranks)
    assert best.bytes_low <= 2**20 <= best.bytes_high
    assert ct.best("allreduce", 2**20, store=store).reference == best.reference
    assert store.profile(best.number).reference == best.reference
    assert [one.name for one in store.campaigns()] == ["mpich-allreduce"]
    assert store.best("all_reduce", "1MiB", ranks=ranks).reference == best.reference
    with pytest.raises(NoAnswer, match="no profile for broadcast"):
        store.best("bcast", "1MiB")
    with pytest.raises(NoAnswer):
        store.best("allreduce", "1MiB", ranks=ranks + 1)
    with pytest.raises(UserError, match="bytes='much'"):
        store.best("allreduce", "much")


def test_a_size_that_was_not_measured_comes_with_both_neighbours(
    store: ct.Store, result: ct.Result
) -> None:
    sizes = sorted({row["bytes"] for row in result.rows()})
    assert store.best("allreduce", sizes[-1]).support == "measured"
    for below, above in pairwise(sizes):
        found = store.best("allreduce", (below + above) // 2)
        sides = [store.best("allreduce", size) for size in (below, above)]
        assert list(found.neighbours) == [below, above]
        assert [one.number for one in found.neighbours.values()] == [s.number for s in sides]
        agree = sides[0].configuration == sides[1].configuration
        assert found.support == ("neighbours-agree" if agree else "neighbours-disagree")
        assert found.number in [side.number for side in sides]


def test_a_profile_comes_with_its_details(store: ct.Store, result: ct.Result) -> None:
    for one in store.profiles(result.campaign):
        stored = load_profile(store.url, str(one.number)).profile
        assert (one.boundaries, one.contributions) == (stored.boundaries, stored.contributions)
        assert one.tails == stored.tails
        assert [tail.bytes for tail in one.tails] == (
            sorted({point.bytes for point in one.points_inside}) if one.configuration else []
        )
    assert any(one.boundaries or one.contributions for one in result.profiles)


def test_what_was_replayed_is_not_exported(result: ct.Result, tmp_path: Path) -> None:
    with pytest.raises(ExportRefused):
        faster(result).export(tmp_path / "allreduce.sh")
    assert not list(tmp_path.iterdir())


def test_errors_are_of_one_family() -> None:
    with pytest.raises(ct.CommtuneError) as raised:
        ct.load_campaign("no/such/file.yaml")
    assert raised.value.hint
    with pytest.raises(ct.CommtuneError):
        ct.load_campaign({"name": "a", "space": "no-such-space"})


def test_a_campaign_from_a_mapping_is_that_of_its_file() -> None:
    made = ct.load_campaign({"name": "a", "space": "mpich-host", "workload": {"ranks": 2}})
    assert isinstance(made, ct.Campaign)
    assert made.plan.workload.ranks == 2
    assert made.plan.space.name == ct.load_space("mpich-host").name


def test_every_measurement_is_in_a_typed_frame(store: ct.Store, result: ct.Result) -> None:
    measured = store.results(result.campaign)
    frame = measured.to_frame()
    rows = measured.rows()
    assert len(frame) == len(rows) > 100
    assert frame["median_s"].tolist() == [row["median_s"] for row in rows]
    assert str(frame["bytes"].dtype) == "Int64"
    assert str(frame["started"].dt.tz) == "UTC"
    assert frame["simulated"].all()
    tuned = frame[frame["configuration"] != "{}"]
    variable = next(iter(faster(result).configuration))
    assert tuned[f"env_{variable}"].notna().any()
    assert next(iter(measured)) == rows[0]
