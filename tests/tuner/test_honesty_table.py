"""The table of simulated campaigns: shares whose intervals know what hangs together."""

from __future__ import annotations

import pytest
from honesty import Result, clustered


def result(single: int, held: int) -> Result:
    flags = dict.fromkeys(("claims", "found", "wrong", "passengers", "together"), False)
    return Result(
        "recorded", 0.0, 1, 0.165, **flags, single=single, single_held=held, runs=1, seconds=1
    )


@pytest.mark.parametrize(
    ("campaigns", "said"),
    [
        # Mean of 1, 0.5 and 0.9: 0.8; their deviation is 0.2646 and t(0.975, 2) = 4.3027.
        ([(10, 10), (2, 1), (100, 90)], " 80.0% [14.3%, 100.0%]"),
        # However many intervals each has, there are only two campaigns.
        ([(1000, 900), (1000, 900)], " 90.0% [90.0%, 90.0%]"),
        ([(10, 9), (0, 0)], ""),
        ([], ""),
    ],
)
def test_intervals_of_one_campaign_count_as_one(
    campaigns: list[tuple[int, int]], said: str
) -> None:
    assert clustered([result(*counts) for counts in campaigns]) == said
