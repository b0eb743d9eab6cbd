"""The benchmark of the search: what every method may see, and what its figures mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_grids import GRIDS
from search.earlier import list_right, list_wrong
from search.early_sizes import measure_savings
from search.fresh import FreshReplay
from search.halves import Floats, Halves, Recording, split_grid
from search.held_out import load_defaults, load_runs, predict_held_out
from search.idle_variables import WithIdle, play
from search.methods import KNOWN, play_method
from search.ours import run_whole_campaign
from search.page import table
from search.parts import PARTS, describe, play_without, take_away
from search.results import group_rows, load_scores, store_scores
from search.scoring import score_course, summarize
from search.wide import (
    Played,
    Surface,
    _encoder,
    leave_out,
    play_campaign,
    play_random,
)

from commtune.model import DEFAULT, Configuration, Measurement, RunRequest, Verdict
from commtune.replay.recording import RecordedRun, load_grid


@pytest.fixture(scope="module")
def halves() -> Halves:
    return split_grid(Recording(load_grid(GRIDS / "mpich-allreduce.jsonl.gz")), 1)


def test_half_of_each_configurations_runs_is_held_out(halves: Halves) -> None:
    seen = [run.configuration for run in halves.seen.runs]
    held = [halves.grid.runs[place].configuration for place in halves.held]
    assert len(seen) + len(held) == len(halves.grid.runs)
    assert np.array_equal(np.bincount(seen), np.bincount(held))
    held_starts = {halves.grid.runs[place].started_s for place in halves.held}
    assert held_starts.isdisjoint(run.started_s for run in halves.seen.runs)


def test_the_truth_is_of_the_held_half_alone(halves: Halves) -> None:
    other = replace(halves, seen=replace(halves.seen, runs=halves.seen.runs[:10]))
    assert np.array_equal(halves.truth, other.truth)
    assert np.allclose(np.median(halves.truth - halves.best, axis=0) > 0, True)


#: The last two need packages that nothing else does: see requirements/peers.txt.
PLAYED = (
    "random", "random+rerun", "racing", "halving", "hyperband", "tpe", "search",
    "gp", "acclaim",
)  # fmt: skip


@pytest.mark.parametrize("method", [name for name in PLAYED if name in KNOWN])
def test_every_method_makes_as_many_runs_as_it_was_given(halves: Halves, method: str) -> None:
    courses = list(play_method(method, halves, 1, (2, 4)))
    assert [course.percent for course in courses] == [2, 4]
    for course, runs in zip(courses, (28, 56), strict=True):
        assert course.until == pytest.approx(runs, abs=1)  # a campaign ends by its clock
        for score in score_course(halves, 1, course):
            assert min(score.regret) >= 0


def test_variables_that_a_recording_does_not_know_do_nothing(halves: Halves) -> None:
    larger = WithIdle(halves.recording, halves.seen, halves.held)
    header, recorded = halves.grid.header, halves.grid.configurations[5]
    further = Configuration({**recorded, "DOES_NOTHING_0": "a"})
    assert larger.plan.space.check(further) == []
    assert halves.plan.space.check(further) != []

    def measured(configuration: Configuration) -> list[tuple[Measurement, ...]]:
        request = RunRequest("", configuration, header.workload, header.timing)
        replay = FreshReplay(larger, 1)
        return [replay.measure(request, 1e9).measurements for _ in range(12)]

    assert measured(further) == measured(recorded)
    assert len(set(measured(further))) > 1


@pytest.mark.slow
def test_profiles_hold_few_variables_that_do_nothing(halves: Halves) -> None:
    """A third of them did, when candidates went on with all that the search had set."""
    found = [profile for one in play(halves.recording, 20, range(10)) for profile in one.profiles]
    variables, idle = sum(one.variables for one in found), sum(one.idle for one in found)
    assert variables >= 10
    assert idle <= 0.15 * variables


def test_a_campaign_recommends_what_works_beside_the_best_only() -> None:
    """Over all runs of this campaign, nothing speaks for the size of fragments."""
    recording = Recording(load_grid(GRIDS / "openmpi-broadcast.jsonl.gz"))
    halves, added = split_grid(recording, 11), {"OMPI_MCA_coll_sm_fragment_size": "32768"}
    result, _ = run_whole_campaign(halves, 11, halves.runs(20))
    with take_away("interacting variables are restored"):
        without, _ = run_whole_campaign(halves, 11, halves.runs(20))
    (found,) = [p for p in result.profiles if p.verdict is Verdict.FASTER]
    (before,) = [p for p in without.profiles if p.verdict is Verdict.FASTER]
    assert found.configuration == Configuration({**before.configuration, **added})
    assert added.keys() <= set(found.unproven_variables)


def test_what_ablation_reduced_is_not_confirmed_as_it_was() -> None:
    """It came back where its result sets a value that works only beside others, too."""
    halves = split_grid(Recording(load_grid(GRIDS / "openmpi-broadcast.jsonl.gz")), 10)
    result, runner = run_whole_campaign(halves, 10, halves.runs(20))
    decision = runner.store.decision(runner.campaign_id)
    assert decision is not None
    reduced = {one.before for one in decision.ablations if one.before != one.after}
    assert reduced
    assert reduced.isdisjoint(decision.candidates)
    for profile in result.profiles:
        assert len(profile.unproven_variables) < max(2, len(profile.configuration))


def test_a_held_out_run_that_hung_moves_a_mean_by_little(halves: Halves) -> None:
    place = int(halves.held[0])
    runs = list(halves.grid.runs)
    hung = tuple(replace(size, median_s=5000 * size.median_s) for size in runs[place].sizes)
    runs[place] = replace(runs[place], sizes=hung)
    recording = Recording(replace(halves.grid, runs=tuple(runs)))
    other = Halves(recording, halves.seen, halves.held)
    mine = (recording.of[halves.held] == runs[place].configuration).sum()
    away = np.abs(other.held_means - halves.held_means).max()
    assert away < 2 * np.log(2) / mine


def test_the_exhaustive_grid_tries_every_configuration_as_often(halves: Halves) -> None:
    (course,) = play_method("exhaustive-3", halves, 1, (2,))
    tried = np.bincount(course.played.configurations)
    assert set(tried[1:]) == {3}


def test_a_campaign_is_judged_by_what_it_recommends(halves: Halves) -> None:
    course, likely = play_method("whole", halves, 1, (4,))
    assert (course.method, likely.method) == ("whole", "whole+likely")
    (score,) = score_course(halves, 1, course)
    assert score.pick == "own"
    assert score.is_false in (True, False)
    row = summarize([score, score])
    assert row["seeds"] == 2
    assert row["near"] == pytest.approx((np.array(score.regret) <= np.log(1.02)).mean(), abs=1e-4)


@pytest.mark.parametrize(("later", "is_faster"), [(20.0, False), (1 / 20, True)])
def test_what_is_behind_at_first_is_told_from_what_is_behind_for_good(
    halves: Halves, later: float, is_faster: bool
) -> None:
    first = len(halves.sizes) // 3

    def slowed(run: RecordedRun) -> RecordedRun:
        if run.configuration == halves.default:
            return run
        factors = [20.0] * first + [later] * (len(run.sizes) - first)
        pairs = zip(run.sizes, factors, strict=True)
        return replace(run, sizes=tuple(replace(m, median_s=m.median_s * f) for m, f in pairs))

    grid = replace(halves.grid, runs=tuple(slowed(run) for run in halves.grid.runs))
    found = measure_savings(Recording(grid))
    assert found.behind == pytest.approx(1 - 1 / len(grid.configurations))
    assert found.faster_later == is_faster
    assert 0 < found.all_behind < found.sizes
    assert found.never_faster == pytest.approx(0.0 if is_faster else found.all_behind)


def test_the_table_is_made_of_what_was_stored(
    halves: Halves, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search.results.RESULTS", tmp_path)
    (course,) = play_method("exhaustive", halves, 1, (2,))
    scores = score_course(halves, 1, course)
    store_scores("grid", scores)
    store_scores("grid", scores)
    assert sorted(load_scores("grid"), key=lambda score: score.pick) == sorted(
        scores, key=lambda score: score.pick
    )
    lines = list(table(group_rows(load_scores("grid"))))
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| exhaustive"]
    assert "155 runs" in lines[2]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_taken_away_and_comes_back(part: str) -> None:
    before = [getattr(owner, name) for owner, name, _ in PARTS[part]]
    with take_away(part):
        assert [getattr(owner, name) for owner, name, _ in PARTS[part]] != before
    assert [getattr(owner, name) for owner, name, _ in PARTS[part]] == before


def test_without_single_values_a_search_takes_another_course() -> None:
    one, other = (play_without(p, "nccl-sockets", 15, 20) for p in ("", "single values first"))
    assert one != other


def test_differences_are_given_by_recording_and_over_all() -> None:
    assert describe([[1, 3], [-1, -3]]) == [
        "+2.00 ±1.00",
        "-2.00 ±1.00",
        "+0.00 ±0.71",
    ]


def test_wrong_proposals_are_slower_than_the_default_and_right_ones_are_proven(
    halves: Halves,
) -> None:
    means = halves.expected.mean(axis=1)
    wrong = list_wrong(halves, 1)
    assert len(set(wrong)) == 3
    assert all(means[halves.grid.index[one]] > means[halves.default] for one in wrong)
    assert wrong == list_wrong(halves, 1) != list_wrong(halves, 2)
    right = list_right(halves, 1)
    assert right
    assert all(one in halves.grid.index and not one.is_default for one in right)


def test_what_is_tried_first_is_run_before_anything_else(halves: Halves) -> None:
    wrong = tuple(list_wrong(halves, 1))
    _, runner = run_whole_campaign(halves, 1, halves.runs(5), first=wrong)
    assert tuple(runner.trials)[1:4] == wrong


def test_the_model_predicts_runs_that_it_has_not_seen() -> None:
    runs = load_runs()
    assert len(runs) == 990
    share, ranks, best = predict_held_out(runs, 80, seed=1).T
    # Below 64 KiB hardly anything is faster than the default, and all that is slower counts alike.
    assert (share[1:] > 0.2).all()
    assert (ranks[1:] > 0.4).all()
    assert best[-1] > 0.8  # from 8 MiB on, where the median run has 0.6


@pytest.mark.parametrize("play", [play_campaign, play_random])
def test_in_a_wide_space_a_variable_that_gains_is_tried_and_taken(
    play: Callable[[Surface, int], Played],
) -> None:
    sizes = len(load_defaults()[0])

    def surface(configuration: Configuration) -> Floats:
        return np.full(sizes, 0.5 * ("NCCL_SOCKET_NTHREADS" in configuration))

    played = play(surface, 1)
    assert (played.tried == 0.5).all()
    assert played.takes.mean() > 0.4
    assert all("NCCL_SOCKET_NTHREADS" in profile for profile in played.profiles)


def test_a_variable_that_is_left_out_does_nothing_in_a_wide_space() -> None:
    def surface(configuration: Configuration) -> Floats:
        return np.full(2, float(len(configuration)))

    found = leave_out(surface, ["A"])(Configuration({"A": "1", "B": "2"}))
    assert found.tolist() == [1.0, 1.0]


def test_configurations_of_a_wide_space_are_told_apart() -> None:
    known = [configuration for configuration, _ in load_runs()]
    encode = _encoder(known)
    assert len({encode(configuration).tobytes() for configuration in known}) == len(set(known))
    assert not encode(DEFAULT).any()
