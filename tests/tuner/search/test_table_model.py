"""The model of the table: what it believes, and what a run is worth by it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.improvement import (
    _best_of_others,
    expected_improvement,
    rank_reruns,
    weigh_sizes,
)
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.proposals import Search
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies import make_strategy
from commtune.tuner.search.strategies.strategy import DEFAULT_STRATEGY

SIZES = tuple(2**power for power in range(3, 23))
SPACE = made_up_space(
    "\n".join(
        f"  - {{name: V{n}, kind: choice, values: [a, b, c, d], source: test}}" for n in range(8)
    )
)


def truth(configuration: Configuration, size: int) -> float:
    """V0=b helps at large sizes, V1=c at small ones unless V2=a; the rest is idle."""
    is_large = size > 2**14
    found = 0.8 * is_large * (configuration.get("V0") == "b")
    found -= 0.3 * (not is_large) * (configuration.get("V0") == "b")
    is_tuned = configuration.get("V1") == "c" and configuration.get("V2") != "a"
    return found + 0.3 * (not is_large) * is_tuned


def measured(configuration: Configuration, rng: np.random.Generator) -> Speedups:
    noise = 0.03 * rng.standard_normal() + 0.03 * rng.standard_normal(len(SIZES))
    return noise + [truth(configuration, size) for size in SIZES]


def fed(count: int, seed: int = 1) -> TableModel:
    rng, model = np.random.default_rng(seed), TableModel(SPACE, SIZES)
    for _ in range(6):
        model.add([(DEFAULT, measured(DEFAULT, rng))])
    for number in rng.choice(SPACE.count(), count, replace=False).tolist():
        configuration = SPACE.nth(number)
        model.add([(configuration, measured(configuration, rng))])
    return model


def test_standings_are_near_the_truth_and_their_errors_say_how_near() -> None:
    misses = []
    for standing in fed(80).standings():
        assert not standing.configuration.is_default
        for size in SIZES:
            off = standing.mean[size] - truth(standing.configuration, size)
            misses.append(abs(off) / standing.error[size])
    assert float(np.mean(np.array(misses) < 2)) > 0.85


def test_standings_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    together = fed(80).standings()
    monkeypatch.setattr("commtune.tuner.search.model._AT_ONCE", 9)
    for whole, part in zip(together, fed(80).standings(), strict=True):
        assert part.configuration == whole.configuration
        assert part.mean == pytest.approx(whole.mean)
        assert part.error == pytest.approx(whole.error)


def test_runs_with_all_sizes_are_taken_as_they_are_and_holes_are_filled() -> None:
    """With what lies between the neighbours on the logarithms of sizes, or the nearest size."""
    rng, at = np.random.default_rng(1), np.log(SIZES)
    values = rng.random((50, len(SIZES)))
    lacks = rng.random(values.shape) < np.linspace(0, 0.9, 50)[:, None]
    known, found = TableModel(SPACE, SIZES).complete(
        [(DEFAULT, row) for row in np.where(lacks, np.nan, values)]
    )
    some = np.flatnonzero(~lacks.all(axis=1))
    assert len(known) == len(found) == len(some)
    for place, row in zip(some, found, strict=True):
        seen = ~lacks[place]
        np.testing.assert_array_equal(row[seen], values[place][seen])
        np.testing.assert_allclose(row, np.interp(at, at[seen], values[place][seen]))


def test_a_run_far_off_counts_for_the_noise_as_one_that_is_less_far() -> None:
    """Drawn in by what those before it tell, whether runs come together or one by one."""
    runs = [(DEFAULT, one) for one in np.random.default_rng(1).standard_t(2, (300, len(SIZES)))]
    together, apart = TableModel(SPACE, SIZES), TableModel(SPACE, SIZES)
    together.add(runs)
    for run in runs:
        apart.add([run])
    np.testing.assert_allclose(together.noise, apart.noise, rtol=1e-12)
    wild = [*runs, (DEFAULT, np.full(len(SIZES), 1e6))]
    together.add(wild[-1:])
    assert (together.noise < 1.02 * apart.noise).all()


def test_what_was_never_run_is_told_from_its_parts() -> None:
    model = fed(80)
    unseen = Configuration({"V0": "b"})
    mean, error = model.predict(model.encoding.rows([unseen, DEFAULT]))
    assert abs(mean[0, -1] - 0.8) < 0.25
    assert mean[0, 0] < 0
    assert np.abs(mean[1]).max() < 0.02
    assert error[1].max() < 0.02 < error[0].max()


def test_more_runs_make_errors_smaller() -> None:
    rng, model, again = np.random.default_rng(1), fed(30), Configuration({"V0": "b", "V3": "a"})
    model.add([(again, measured(again, rng))])
    (first,) = [s for s in model.standings() if s.configuration == again]
    for _ in range(4):
        model.add([(again, measured(again, rng))])
    (later,) = [s for s in model.standings() if s.configuration == again]
    assert model.runs_of(again) == 5
    assert all(later.error[size] < first.error[size] for size in SIZES)


def test_sizes_that_a_machine_state_hid_are_filled_in() -> None:
    model, tried = fed(10), Configuration({"V7": "a"})
    hidden = np.full(len(SIZES), np.nan)
    model.add([(tried, np.r_[0.2, hidden[1:]]), (Configuration({"V7": "b"}), hidden)])
    found = {s.configuration: s for s in model.standings()}
    assert set(found[tried].mean) == set(SIZES)
    assert Configuration({"V7": "b"}) not in found


def test_failures_are_avoided_and_have_no_standing() -> None:
    model = fed(20)
    bad = Configuration({"V5": "d"})
    before, _ = model.predict(model.encoding.rows([bad]))
    model.add_failed(bad)
    model.fit()
    after, _ = model.predict(model.encoding.rows([bad]))
    assert after.mean() < before.mean() - 0.05  # a third of what the slowest counts
    assert bad not in {s.configuration for s in model.standings()}


def test_a_lucky_run_is_to_be_made_again() -> None:
    model, lucky = fed(40), Configuration({"V6": "a", "V7": "d"})
    model.add([(lucky, np.array([truth(lucky, size) + 1.5 * (size == 64) for size in SIZES]))])
    model.fit()
    assert lucky in model.list_single_run_leaders(2.0)
    model.add([(lucky, np.array([truth(lucky, size) for size in SIZES]))])
    assert lucky not in model.list_single_run_leaders(2.0)


def test_runs_that_could_change_the_best_are_worth_most() -> None:
    one = np.ones(1)
    mean, error = np.array([[0.5], [0.45], [0.1]]), np.array([[0.1], [0.1], [0.1]])
    value = expected_improvement(mean, error, 0.1 * one, _best_of_others(mean), one)
    assert value[0] == pytest.approx(value[1])
    assert value[2] < value[1] / 10
    surer = expected_improvement(mean, error / 5, 0.1 * one, _best_of_others(mean), one)
    assert (surer < value).all()


def test_no_run_is_worth_less_than_none_however_far_behind() -> None:
    one = np.ones(1)
    mean, error = -np.linspace(0.0, 1.0, 1000)[:, None], np.full((1000, 1), 0.05)
    value = expected_improvement(mean, error, 0.05 * one, np.zeros(1), one)
    assert (value >= 0).all()
    assert (np.diff(value) <= 0).all()


def test_reruns_end_with_enough_runs() -> None:
    model = fed(30)
    model.fit()
    assert len(rank_reruns(model, np.ones(len(SIZES)), most_runs=2)) == 30
    assert not rank_reruns(model, np.ones(len(SIZES)), most_runs=1)


def test_messages_weigh_sizes_by_their_time() -> None:
    sizes, times = np.array([8.0, 1024.0]), np.array([1e-6, 3e-6])
    assert weigh_sizes(sizes, {}, times).tolist() == [0.5, 0.5]
    small, large = weigh_sizes(sizes, {8: 1.0, 2048: 1.0}, times)
    assert large / small == pytest.approx((0.9 * 6 / 7 + 0.05) / (0.9 / 7 + 0.05))


def test_a_search_finds_both_halves_of_the_table() -> None:
    model, rng = TableModel(SPACE, SIZES), np.random.default_rng(3)
    weights = np.full(len(SIZES), 1 / len(SIZES))
    search = Search(model, make_strategy(DEFAULT_STRATEGY, model, weights, 1))
    search.rebuild([(DEFAULT, measured(DEFAULT, rng)) for _ in range(4)])
    for _ in range(60):
        proposal = search.ask()
        assert proposal is not None
        search.tell(proposal.configuration, measured(proposal.configuration, rng), "")
    tried = [standing.configuration for standing in model.standings()]
    assert max(truth(one, 8) for one in tried) > 0.29
    assert max(truth(one, SIZES[-1]) for one in tried) > 0.79


def test_a_fit_holds_no_more_than_its_limit() -> None:
    model = fed(1000)
    model.fit()
    assert len(model.fitted) <= 310
    assert len(model.standings()) == 1000
    best = max(model.standings(), key=lambda one: one.mean[SIZES[-1]])
    assert truth(best.configuration, SIZES[-1]) > 0.79


def test_learning_does_not_take_long() -> None:
    """A generous limit: it is milliseconds on an idle machine."""
    model = fed(100)
    began = time.process_time()
    model.fit()
    assert time.process_time() - began < 20
