"""What a profile states of itself: its confidence level, and speedups that are too good."""

from __future__ import annotations

from dataclasses import replace

from made_up_runs import comparison, point
from stated_evidence import SIZES, A, B, faster, plan, unknown

from commtune.formatting import format_size
from commtune.tuner.confirmation.comparison import Compared
from commtune.tuner.outcome.profiles import ProfileMaker


def test_the_defaults_is_that_of_no_candidate_that_is_surer() -> None:
    points = {A: tuple(map(unknown, SIZES)), B: (*map(unknown, SIZES[:-1]), faster(SIZES[-1]))}
    # The first was given up at an early look, which has the smallest share of the error rate.
    found = {A: Compared(points[A], {}, 0.9997), B: Compared(points[B], {}, 0.999)}
    kept, gained = ProfileMaker(plan(), found).recommend()
    assert kept.configuration.is_default
    assert (kept.level, gained.level) == (0.999, 0.999)


def test_a_speedup_of_a_hundred_asks_to_look_at_the_benchmark() -> None:
    points = [point(SIZES[0], 101.0, 90.0, 120.0), *map(faster, SIZES[1:])]
    (profile,) = ProfileMaker(plan(), comparison({A: points})).recommend()
    assert profile.note.startswith("100x or more at 8 B: see whether the benchmark still does")
    (profile,) = ProfileMaker(plan(), comparison({A: [*map(faster, SIZES)]})).recommend()
    assert profile.note == ""


def test_longer_medians_are_said_with_the_number_of_their_pairs() -> None:
    compared = comparison({A: [*map(faster, SIZES)]})
    medians = {SIZES[0]: (0.9, 1.1, 0.85), SIZES[1]: (0.8,) * 7, SIZES[2]: (0.9, 1.2)}
    (profile,) = ProfileMaker(plan(), {A: replace(compared[A], median_ratios=medians)}).recommend()
    first, second = map(format_size, SIZES[:2])
    assert profile.note == (
        f"medians are longer at {first}, {second}: 0.80x as fast at {second} "
        "(7 pairs, no interval)"
    )
