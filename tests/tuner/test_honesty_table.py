"""The table of simulated campaigns: shares whose intervals know what hangs together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from honesty_table import Result, clustered, table


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


FINE = Result("normal", 0.0, 0, 1.5, 0, False, False, False, False, True, 0, 0, 48, 0.1)
GAINING = replace(FINE, gain=0.1, claims=True, found=True, oracle=True)
#: Campaigns of a hundred that miss a goal, with the most that the goal allows.
MISSES = [
    ("false claims", replace(FINE, claims=True), 2),
    ("all hold: no speedup", replace(FINE, together=False), 7),
    ("planted", replace(GAINING, together=False), 7),
    ("found", replace(GAINING, found=False), 10),
    ("idle", replace(GAINING, idle=True), 5),
    ("power", replace(FINE, stated=0.1, shown=0.9, powered=10), 3),
    ("where largest", replace(FINE, stated=0.1, powered=10, powered_found=9), 3),
]


@pytest.mark.parametrize(("column", "miss", "allowed"), MISSES)
def test_what_misses_its_goal_is_bold(column: str, miss: Result, allowed: int) -> None:
    assert not _bold(miss, allowed)
    assert _bold(miss, allowed + 1) == [column]


@pytest.mark.parametrize(("found", "mark"), [(90, ""), (84, "*"), (82, "**")])
def test_a_known_miss_is_italic_down_to_what_is_known(found: int, mark: str) -> None:
    one = replace(
        FINE, noise="memory-neighbours", stated=0.1, shown=0.9, powered=100, powered_found=found
    )
    cell = table([one, one]).splitlines()[-1].strip("| ").split(" | ")[-2]
    assert cell == f"{mark}{found:.1f}% [{found:.1f}%, {found:.1f}%]{mark}"


def _bold(miss: Result, count: int) -> list[str]:
    """Titles of the bold cells: of a hundred campaigns of each gain, so many miss a goal."""
    usual = [replace(FINE, stated=0.1, shown=0.9, powered=10, powered_found=9), GAINING]
    results = [miss] * count + [
        one for one in usual for _ in range(100 - count * (one.gain == miss.gain))
    ]
    titles, _, cells = (line.strip("| ").split(" | ") for line in table(results).splitlines())
    return [title for title, cell in zip(titles, cells, strict=True) if "**" in cell]
