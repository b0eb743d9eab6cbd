"""Who gets another run: from what runs of the default differ by."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest
from made_up_runs import made_up_run, sizes

from commtune.model import DEFAULT, Configuration, Phase
from commtune.tuner.search.racing import MOST_RUNS, find_contenders, find_surest, to_repeat
from commtune.tuner.search.scores import Scoreboard, split_ranges
from commtune.tuner.statistics.evidence import Evidence

SIZES = (8, 1048576)
RANGES = split_ranges(SIZES)
SMALL, LARGE = (r.label for r in RANGES)
BEST, CLOSE, FAR = (Configuration({"V": v}) for v in ("best", "close", "far"))


def board(
    ratios: Mapping[Configuration, Sequence[float]],
    default: Sequence[float],
    large: Mapping[Configuration, Sequence[float]] | None = None,
) -> Scoreboard:
    """A board after runs with these ratios (above 1 faster), at small sizes or at large ones."""
    evidence = Evidence()
    elsewhere = large or {}
    rows = [(DEFAULT, value, value) for value in default]
    for configuration, values in ratios.items():
        others = elsewhere.get(configuration, values)
        rows += [(configuration, a, b) for a, b in zip(values, others, strict=True)]
    for number, (configuration, small_ratio, large_ratio) in enumerate(rows):
        times = {SIZES[0]: 1e-6 / small_ratio, SIZES[1]: 1e-3 / large_ratio}
        evidence.add(
            made_up_run(
                configuration, number, sizes(times), phase=Phase.SEARCH, run_id=str(number)
            )
        )
    found = Scoreboard(RANGES)
    found.rebuild(evidence)
    return found


def spread_of(values: Sequence[float]) -> float:
    logs = [math.log(v) for v in values]
    mean = sum(logs) / len(logs)
    return math.sqrt(sum((v - mean) ** 2 for v in logs) / (len(logs) - 1))


QUIET = [1.0, 1.02, 0.98, 1.01, 0.99, 1.02, 0.98]


def test_the_spread_is_that_of_the_default_runs() -> None:
    found = board({BEST: [1.3]}, QUIET)
    assert found.spread(SMALL) == pytest.approx(spread_of(QUIET), rel=0.01)


def test_a_hidden_slow_mode_of_the_default_widens_the_race() -> None:
    modes = [1.0, 0.67, 1.01, 0.66, 1.0, 0.67, 0.99]
    assert board({}, modes).spread(SMALL) > 5 * board({}, QUIET).spread(SMALL)
    ratios = {BEST: [1.3], FAR: [1.0]}
    assert find_contenders(board(ratios, QUIET), SMALL) == [BEST]
    assert find_contenders(board(ratios, modes), SMALL) == [BEST, FAR]


def test_few_default_runs_leave_everything_open() -> None:
    assert board({}, [1.0, 1.0]).spread(SMALL) == pytest.approx(0.1)
    assert board({}, [1.0] * 7).spread(SMALL) > 0  # equal runs are no proof of no noise


def test_the_far_are_not_repeated_and_the_close_are() -> None:
    found = board({BEST: [1.30], CLOSE: [1.28], FAR: [1.10]}, QUIET)
    assert find_contenders(found, SMALL) == [BEST, CLOSE]
    assert set(to_repeat(found, [SMALL], 5)) == {BEST, CLOSE}


def test_runs_settle_a_race() -> None:
    ratios = {BEST: [1.30], CLOSE: [1.26]}
    once = board(ratios, QUIET)
    often = board({c: values * 8 for c, values in ratios.items()}, QUIET)
    assert find_contenders(once, SMALL) == [BEST, CLOSE]
    assert find_contenders(often, SMALL) == [BEST]


def test_one_lucky_run_does_not_end_the_race_of_one_measured_often() -> None:
    ratios = {BEST: [1.30] * 7, CLOSE: [1.34]}
    assert find_contenders(board(ratios, QUIET), SMALL) == [CLOSE, BEST]
    # The one that is known less gets the next run.
    assert to_repeat(board(ratios, QUIET), [SMALL], 1) == [CLOSE]


def test_enough_is_enough() -> None:
    found = board({BEST: [1.3] * MOST_RUNS, CLOSE: [1.3] * (MOST_RUNS - 1)}, QUIET)
    assert to_repeat(found, [SMALL], 5) == [CLOSE]


def test_the_default_never_races() -> None:
    assert find_contenders(board({BEST: [0.9]}, QUIET), SMALL) == [BEST]
    assert find_contenders(board({}, QUIET), SMALL) == []
    assert to_repeat(board({}, QUIET), [SMALL, LARGE], 3) == []


def test_every_range_has_its_turn_and_none_is_named_twice() -> None:
    found = board(
        {BEST: [1.3], CLOSE: [1.29], FAR: [1.0]},
        QUIET,
        large={BEST: [1.0], CLOSE: [1.0], FAR: [1.3]},
    )
    assert to_repeat(found, [SMALL, LARGE], 2) == [BEST, FAR]
    assert sorted(map(str, to_repeat(found, [SMALL, LARGE], 9))) == sorted(
        map(str, [BEST, CLOSE, FAR])
    )


def test_the_true_best_stays_in_nearly_every_race() -> None:
    """Twelve configurations over noise of 5 %, three runs each; the best is 3 % ahead."""
    kept = left = 0
    for seed in range(200):
        rng = random.Random(seed)
        noisy = [math.exp(rng.gauss(0, 0.05)) for _ in range(20)]
        ratios = {
            Configuration({"V": str(n)}): [
                (1.2 if n == 0 else 1.16 - 0.02 * n) * math.exp(rng.gauss(0, 0.05))
                for _ in range(3)
            ]
            for n in range(12)
        }
        racing = find_contenders(board(ratios, noisy), SMALL)
        kept += Configuration({"V": "0"}) in racing
        left += len(racing)
    # A distance of two standard deviations is lost in about one race of 50.
    assert kept >= 190
    assert left / 200 < 7


def test_a_lucky_single_run_is_not_the_best_but_one_beyond_doubt_is() -> None:
    """What differs is how far the single run is ahead, against what the default's runs tell."""
    several = [1.10, 1.11, 1.09]
    lucky = board({BEST: several, FAR: [1.12]}, QUIET)
    assert find_surest(lucky, SMALL, 3) == [BEST]
    ahead = board({BEST: several, FAR: [2.5]}, QUIET)
    assert find_surest(ahead, SMALL, 3) == [FAR]
    noisy = [1.0, 0.3, 3.0, 1.1, 0.4, 2.8, 1.0]
    assert find_surest(board({BEST: several, FAR: [2.5]}, noisy), SMALL, 3) == [BEST]


def test_where_nothing_ran_often_enough_the_surest_counts_in_each_range_by_itself() -> None:
    """A campaign whose search ended early had repeated some, and none of what was best."""
    found = board(
        {BEST: [1.2, 1.2], CLOSE: [1.0], FAR: [1.05]},
        QUIET,
        large={BEST: [0.9, 0.9], CLOSE: [4.0], FAR: [1.1]},
    )
    assert find_surest(found, SMALL, 3) == [BEST]
    assert find_surest(found, LARGE, 3) == [CLOSE]
    assert find_surest(board({}, QUIET), SMALL, 3) == []
