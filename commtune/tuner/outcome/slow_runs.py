"""In words: where a configuration has more slow runs than the default."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from commtune.formatting import format_size
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
        f"the mean of all runs there is {tail.mean_ratio:.2f}x"
    )
