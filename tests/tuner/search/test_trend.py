"""What runs made about the same time have in common, and what is left of runs without it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.encoding import Matrix
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups, find_center
from commtune.tuner.search.trend import find_trend

SIZES = tuple(2**power for power in range(3, 23, 2))
NAMES = tuple(f"V{n}" for n in range(8))
SPACE = made_up_space(
    "\n".join(f"  - {{name: {n}, kind: choice, values: [a], source: t}}" for n in NAMES)
)
Runs = list[tuple[Configuration, Speedups]]
seeds = st.integers(0, 2**32 - 1)


def draw_states(rng: np.random.Generator, count: int) -> Matrix:
    """Two speeds 1.5x apart; each run has that of the one before, but for one in ten."""
    found, now = np.zeros(count), 0.0
    for place in range(count):
        if rng.random() < 0.1:
            now = -np.log(1.5) if rng.random() < 0.4 else 0.0
        found[place] = now
    return found


def draw_noise(rng: np.random.Generator, count: int) -> Matrix:
    return 0.03 * rng.standard_normal((count, len(SIZES)))


@given(seeds, st.integers(1, 60))
def test_the_trend_of_faster_runs_mirrors_that_of_slower_ones(seed: int, count: int) -> None:
    residuals = draw_noise(np.random.default_rng(seed), count) * 5
    assert find_trend(-residuals) == pytest.approx(-find_trend(residuals))
    assert find_trend(residuals[::-1]) == pytest.approx(find_trend(residuals)[::-1])


def test_independent_runs_have_no_trend() -> None:
    rng = np.random.default_rng(1)
    trends = [find_trend(draw_noise(rng, 40)) for _ in range(200)]
    assert sum(bool(trend.any()) for trend in trends) <= 10


def test_a_speed_that_lasts_leaves_the_residuals() -> None:
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        residuals = draw_states(rng, 100)[:, None] + draw_noise(rng, 100)
        shares.append((residuals - find_trend(residuals)).var() / residuals.var())
    assert np.median(shares) < 0.4


def test_one_stray_run_is_no_trend() -> None:
    residuals = draw_noise(np.random.default_rng(1), 40)
    residuals[20] -= 8.0
    assert not find_trend(residuals).any()


def play(seed: int, count: int = 60) -> tuple[Runs, Matrix]:
    """Runs on a machine whose speed lasts, where V0 gains 10 %; and their speedups without it."""
    rng = np.random.default_rng(seed)
    states = draw_states(rng, count)
    configurations = [
        DEFAULT if place % 8 == 0 else Configuration({n: "a" for n in NAMES if rng.random() < 0.5})
        for place in range(count)
    ]
    gains = np.array([0.1 * ("V0" in configuration) for configuration in configurations])
    still = gains[:, None] + draw_noise(rng, count)
    moved = still + states[:, None]
    return list(zip(configurations, moved, strict=True)), still


def test_runs_come_near_those_of_a_machine_of_one_speed() -> None:
    before = after = 0.0
    for seed in range(10):
        runs, still = play(seed)
        model = TableModel(SPACE, SIZES)
        model.add(runs)
        model.fit()
        table, corrected = (
            np.array([speedups for _, speedups in some])
            for some in (runs, model.remove_trend(runs))
        )
        before += np.abs(table - still).sum()
        after += np.abs(corrected - still).sum()
    assert after < 0.7 * before


def test_the_trend_leaves_the_first_of_many_runs_as_well_as_the_last() -> None:
    runs, still = play(0, 700)
    model = TableModel(SPACE, SIZES)
    model.add(runs)
    model.fit()
    left = np.array([speedups for _, speedups in model.remove_trend_from_all(runs)])
    moved = np.array([speedups for _, speedups in runs])
    for part in (slice(0, 300), slice(300, 700)):
        before, after = (np.abs((some - still)[part]).mean() for some in (moved, left))
        assert after < 0.7 * before


def test_the_default_stays_at_no_speedup() -> None:
    runs, _ = play(3)
    model = TableModel(SPACE, SIZES)
    model.add(runs)
    defaults = [one for c, one in model.remove_trend(runs) if c.is_default]
    assert find_center(np.array(defaults)) == pytest.approx(np.zeros(len(SIZES)), abs=1e-12)


def test_what_can_t_be_compared_stays_so() -> None:
    runs, _ = play(0)
    runs[5][1][:3] = np.nan
    model = TableModel(SPACE, SIZES)
    model.add(runs)
    left = dict(enumerate(one for _, one in model.remove_trend(runs)))
    assert np.isnan(left[5]).tolist() == [True] * 3 + [False] * (len(SIZES) - 3)
    assert not any(np.isnan(one).any() for place, one in left.items() if place != 5)


def test_what_was_not_told_yet_is_expected_as_its_parts_are() -> None:
    runs, _ = play(0)
    model = TableModel(SPACE, SIZES)
    model.add(runs[:40])
    assert len(model.remove_trend(runs)) == len(runs)


def test_of_runs_that_were_not_taken_in_nothing_is_expected() -> None:
    runs, _ = play(0)
    assert TableModel(SPACE, SIZES).remove_trend(runs) == runs
