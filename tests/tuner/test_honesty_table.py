"""The table of simulated campaigns: shares whose intervals know what hangs together."""

from __future__ import annotations

import pytest
from honesty import clustered


@pytest.mark.parametrize(
    ("campaigns", "said"),
    [
        # Mean of 1, 0.5 and 0.9: 0.8; their deviation is 0.2646 and t(0.975, 2) = 4.3027.
        ([(10, 10), (1, 2), (90, 100)], " 80.0% [14.3%, 100.0%]"),
        # However many intervals each has, there are only two campaigns.
        ([(900, 1000), (900, 1000)], " 90.0% [90.0%, 90.0%]"),
        ([(9, 10), (0, 0)], ""),
        ([], ""),
    ],
)
def test_intervals_of_one_campaign_count_as_one(
    campaigns: list[tuple[int, int]], said: str
) -> None:
    assert clustered(campaigns) == said
