"""The confidence level that a profile states."""

from __future__ import annotations

from stated_evidence import SIZES, A, B, faster, plan, unknown

from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.profiles import recommend_profiles


def test_the_defaults_is_that_of_no_candidate_that_is_surer() -> None:
    points = {A: tuple(map(unknown, SIZES)), B: (*map(unknown, SIZES[:-1]), faster(SIZES[-1]))}
    # The first was given up at an early look, which has the smallest share of the error rate.
    levels = {A: 0.9997, B: 0.999}
    kept, gained = recommend_profiles(plan(), Comparison(points, {}, levels, {}), {})
    assert kept.configuration.is_default
    assert (kept.level, gained.level) == (0.999, 0.999)
