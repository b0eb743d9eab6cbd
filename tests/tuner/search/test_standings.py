"""Speedups as they are read from runs: against the default in the same machine state."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations_with_replacement
from statistics import fmean, median

import numpy as np
import pytest

from commtune.model import DEFAULT, Configuration, Estimand, Outcome, Phase, Run
from commtune.model.runs import SizeTime
from commtune.tuner.search.standings import SpeedupReader, find_center
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.machine_states import FAST, MIXED, SLOW

SIZES = (8, 1024, 65536)
TUNED = Configuration({"A": "1"})
_FAST_S, _SLOW_S = 80e-9, 430e-9


def made_run(number: int, rng: random.Random, *, has_states: bool) -> Run:
    """Every other one of the default; TUNED takes 0.8 of its time, and 0.6 in the slow state."""
    configuration = DEFAULT if number % 2 else TUNED
    measured = []
    for size in SIZES:
        is_slow = has_states and rng.random() < 0.4
        flips = has_states and rng.random() < 0.1
        before_s, after_s = (_SLOW_S if one else _FAST_S for one in (is_slow, is_slow ^ flips))
        taken_s = size * 1e-9 * (3 if is_slow else 1) * rng.lognormvariate(0, 0.05)
        if configuration is TUNED:
            taken_s *= 0.6 if is_slow else 0.8
        measured.append(SizeTime(size, taken_s, before_s, after_s, 1.0))
    made = f"run {number}", number, configuration, Phase.SEARCH, number, 0, "one", Outcome.OK
    return Run(*made, "allreduce", 1.0, 1.0, tuple(measured))


def evidence_of(count: int, *, has_states: bool) -> Evidence:
    rng = random.Random(1)
    return Evidence.of_runs(made_run(n, rng, has_states=has_states) for n in range(count))


def center_of(times_s: list[float]) -> float:
    """The median of the geometric means of all pairs, of each value with itself too."""
    pairs = combinations_with_replacement(times_s, 2)
    return median(math.sqrt(one * other) for one, other in pairs)


@pytest.mark.parametrize("estimand", Estimand)
def test_without_states_a_speedup_is_against_all_runs_of_the_default(estimand: Estimand) -> None:
    evidence = evidence_of(60, has_states=False)
    reader = SpeedupReader(SIZES, estimand)
    found = reader.rebuild(evidence)
    assert [configuration for configuration, _ in found] == [
        r.configuration for r in evidence.runs
    ]
    middle = fmean if estimand is Estimand.MEAN else center_of
    for place, size in enumerate(SIZES):
        times = [run.measurements[place].time_s for run in evidence.runs]
        default_s = middle(times[1::2])
        for (_, speedups), taken_s in zip(found, times, strict=True):
            wanted = math.log(default_s / taken_s)
            wanted = 1 - taken_s / default_s if estimand is Estimand.MEAN else wanted
            assert speedups[place] == pytest.approx(wanted), size
    for run, (_, speedups) in zip(evidence.runs, found, strict=True):
        np.testing.assert_array_equal(reader.read(run), speedups)


def test_in_each_state_a_speedup_is_against_the_default_there() -> None:
    """And brought to the level of all states, since settings gain more in some."""
    evidence = evidence_of(200, has_states=True)
    states = evidence.speeds()
    reader = SpeedupReader(SIZES)
    found = reader.rebuild(evidence)
    for place in range(len(SIZES)):
        measured = [run.measurements[place] for run in evidence.runs]
        state = [states.name(one.canary_s, one.canary_after_s) for one in measured]
        gains = np.array([speedups[place] for _, speedups in found])
        assert [one == MIXED for one in state] == np.isnan(gains).tolist()
        for name in (FAST, SLOW):
            here = np.array([one == name for one in state])
            default = np.array([run.configuration.is_default for run in evidence.runs])
            assert find_center(gains[here & default]) == pytest.approx(0, abs=1e-3)
            level = np.quantile(gains[here], 0.9, method="lower")
            other = np.quantile(gains[~here & ~np.isnan(gains)], 0.9, method="lower")
            assert level == pytest.approx(other)
    for run, (_, speedups) in zip(evidence.runs, found, strict=True):
        np.testing.assert_array_equal(reader.read(run), speedups)


def test_what_was_not_measured_is_unknown_and_what_was_made_again_does_not_count() -> None:
    evidence = evidence_of(10, has_states=False)
    last = evidence.runs[-2]
    short = replace(last, run_id="again", measurements=(last.measurements[1],))
    evidence.add(short)
    reader = SpeedupReader(SIZES)
    found = reader.rebuild(evidence)
    assert len(found) == 10
    assert found[-1][0] == TUNED
    assert np.isnan(found[-1][1]).tolist() == [True, False, True]
    foreign = replace(last, measurements=(replace(last.measurements[0], bytes=4),))
    assert np.isnan(reader.read(foreign)).all()
    assert np.isnan(reader.read(replace(last, measurements=()))).all()
    assert len(evidence.canaries(Phase.SEARCH)) == 9 * len(SIZES) + 1
    assert SpeedupReader(SIZES).rebuild(Evidence()) == []


def test_the_best_run_is_told_against_several_runs_of_the_default_one_of_which_was_disturbed() -> (
    None
):
    runs = [made_run(number, random.Random(1), has_states=False) for number in range(7)]
    slow = tuple(replace(one, time_s=9000 * one.time_s) for one in runs[1].measurements)
    runs[1] = replace(runs[1], measurements=slow)
    reader = SpeedupReader(SIZES)
    for count in (3, 5):  # one and two of the default
        reader.rebuild(Evidence.of_runs(runs[:count]))
        reader.read(runs[2])
        assert reader.best == 0
    reader.rebuild(Evidence.of_runs(runs))
    assert 0.1 < reader.best < 0.4
    reader.read(runs[1])
    assert reader.best < 0.4
    halved = tuple(replace(one, time_s=one.time_s / 2) for one in runs[2].measurements)
    reader.read(replace(runs[2], measurements=halved))
    assert 0.8 < reader.best < 1.1


def test_of_two_speeds_the_center_is_between() -> None:
    values = np.repeat([0.0, 1.0], [5, 4])
    assert float(find_center(values)) == 0.5  # the median is 0, and 1 with one slow run more
    assert float(find_center(np.array([0.0, 0.1, 9.0]))) == 0.1
    assert float(find_center(np.arange(5000.0))) == pytest.approx(2500, rel=0.02)
