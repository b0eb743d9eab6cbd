"""In words: where a configuration has more slow runs than the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from commtune.formatting import format_percent, format_size
from commtune.model import PointEvidence
from commtune.tuner.statistics.machine_states import ALL
from commtune.tuner.statistics.tails import SLOW, Tail


def describe_slow_runs(tails: Mapping[int, Tail], sizes: Collection[int]) -> str:
    """What is said of the size that is worst off; empty where no size has a heavier tail.

    Args:
        tails: by size in bytes.
        sizes: bytes.
    """
    heavier = {size: tail for size, tail in tails.items() if size in sizes and tail.is_heavier}
    if not heavier:
        return ""
    size, tail = min(heavier.items(), key=lambda item: item[1].mean_ratio)
    others = f", and at {len(heavier) - 1} more" if len(heavier) > 1 else ""
    return (
        f"slow runs: {tail.slow} of {tail.pairs} took over {SLOW} times their median at "
        f"{format_size(size)} (the default: {tail.default_slow}){others}; "
        f"the mean of all runs there is {tail.mean_ratio:.2f}x, "
        f"the 95th percentile {tail.p95_ratio:.2f}x"
    )


def describe_unmet(points: Sequence[PointEvidence]) -> str:
    """That speedups are of mean times, and how often slow runs may be that were not met.

    Args:
        points: some, that a configuration's speedups are claimed by.
    """
    pairs = min((point.gain.pairs for point in points if point.speed == ALL), default=1)
    unmet = 1 - 0.05 ** (1 / max(1, pairs))
    return (
        f"faster on average: speedups are of mean times, as far as {pairs} pairs met slow runs; "
        f"up to {format_percent(unmet)} of runs may be slow and were not met"
    )
