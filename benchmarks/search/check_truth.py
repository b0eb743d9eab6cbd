"""How lucky the best configuration of a held-out half is, by its raw median and as it is shrunk.

    python -m benchmarks.search.check_truth

The best of one half is looked up in the other, which didn't choose it: the difference, over sizes
and seeds, is luck. Beside it, how far the two halves are apart for the best quarter.
"""

from __future__ import annotations

import numpy as np

from commtune.replay.recording import load_grid

from .__main__ import ALL, GRIDS
from .halves import Floats, Halves, Recording, split_grid
from .truth import take_medians

_SEEDS = range(1, 7)


def half_medians(halves: Halves) -> tuple[Floats, Floats]:
    """Medians of the held and of the seen half; ``nan`` for what a half has no run of."""
    recording = halves.recording
    seen = np.setdiff1d(np.arange(len(recording.of)), halves.held)
    found = []
    for places in (halves.held, seen):
        rows, medians = take_medians(recording.log_times[places], recording.of[places])
        table = np.full(halves.truth.shape, np.nan)
        table[rows] = medians
        found.append(table)
    return found[0], found[1]


def luck(truth: Floats, other: Floats) -> tuple[float, float]:
    """The best's luck, and the distance of the best quarter from the other half."""
    known = np.where(np.isnan(other), np.nan, truth)
    lucky, apart = [], []
    for mine, theirs in zip(known.T, other.T, strict=True):
        order = np.argsort(mine)[: len(mine) // 4]
        lucky.append(theirs[order[0]] - mine[order[0]])
        apart.append(np.sqrt(np.nanmean((mine[order] - theirs[order]) ** 2)))
    return float(np.mean(lucky)), float(np.mean(apart))


def main() -> None:
    """Prints a line a recording."""
    for grid in ALL:
        recording = Recording(load_grid(GRIDS / f"{grid}.jsonl.gz"))
        rows = []
        for seed in _SEEDS:
            halves = split_grid(recording, seed)
            held, seen = half_medians(halves)
            rows.append([*luck(held, seen), *luck(halves.truth, seen)])
        lucky, apart, shrunk, shrunk_apart = np.mean(rows, axis=0)
        print(
            f"{grid}: luck of the best {lucky:.3f} raw, {shrunk:.3f} shrunk; "
            f"distance between halves {apart:.3f} raw, {shrunk_apart:.3f} shrunk",
            flush=True,
        )


if __name__ == "__main__":
    main()
