"""What is made of effects: whether a smaller configuration lacks too much."""

from __future__ import annotations

import pytest

from commtune.tuner.ablation.effects import Effects, measure_shortfall
from commtune.tuner.statistics.intervals import Estimate

SIZES = tuple(8**power for power in range(8))


def effects(*means: float) -> Effects:
    """By size, each from eight blocks."""
    found = (Estimate(mean, error=0.03, freedom=7, pairs=8) for mean in means)
    return Effects(zip(SIZES, found, strict=True))


@pytest.mark.parametrize(
    ("lost", "is_too_much"),
    [
        ([0.0] * 8, False),
        ([0.08] * 8, True),
        ([*[-0.05] * 7, 0.35], True),  # what it gains at the largest size it costs at the others
        ([*[-0.05] * 7, 0.08], False),
    ],
    ids=["nothing", "some at all sizes", "much at one size", "some at one size"],
)
def test_much_lost_at_one_size_is_too_much(lost: list[float], is_too_much: bool) -> None:
    found = measure_shortfall(effects(*lost), effects(*[0.6] * 8), SIZES)
    assert found is not None
    assert found.is_too_much == is_too_much
