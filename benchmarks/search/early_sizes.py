"""What it could save to end the runs of a configuration that is behind at the first sizes.

    python -m benchmarks.search.early_sizes

A configuration is behind where it is slower than the default by 10 % or more at all of the first
third of the sizes. Recordings don't tell how long each size was measured, so the most that the
timing allows is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from commtune.model import DEFAULT, Timing
from commtune.replay.recording import RecordedRun

from .__main__ import ALL, load_recording
from .halves import Floats, Recording

#: Slower, or faster, than the default beyond doubt (a logarithm).
_CLEAR = math.log(1.1)


@dataclass(frozen=True)
class Saved:
    """Of one recording, all as shares.

    Attributes:
        sizes: what measuring takes at most, of the wall time of all runs.
        behind: configurations that are behind at the first sizes.
        faster_later: of these, those that are 1.1x as fast as the default at a later size.
        all_behind, never_faster: of the wall time, what the later sizes of all that are behind
            take, and of those among them that are not faster later.
    """

    sizes: float
    behind: float
    faster_later: float
    all_behind: float
    never_faster: float


def measure_savings(recording: Recording) -> Saved:
    """What ending runs early could save on a recording."""
    grid = recording.grid
    first = len(grid.header.workload.sizes) // 3
    times = np.array([np.nanmedian(recording.log_times[recording.of == c], axis=0)
                      for c in range(len(grid.configurations))])  # fmt: skip
    gains = times[grid.index[DEFAULT]] - times
    is_behind = gains[:, :first].max(axis=1) < -_CLEAR
    is_faster = is_behind & (gains[:, first:].max(axis=1) > _CLEAR)
    wall_s = math.fsum(run.wall_s for run in grid.runs)
    later_s = np.array([_measured_s(run, grid.header.timing)[first:].sum() for run in grid.runs])
    sizes_s = math.fsum(_measured_s(run, grid.header.timing).sum() for run in grid.runs)
    of = recording.of
    return Saved(
        sizes=sizes_s / wall_s,
        behind=float(is_behind.mean()),
        faster_later=float(is_faster.sum() / max(1, is_behind.sum())),
        all_behind=float(later_s[is_behind[of]].sum()) / wall_s,
        never_faster=float(later_s[(is_behind & ~is_faster)[of]].sum()) / wall_s,
    )


def _measured_s(run: RecordedRun, timing: Timing) -> Floats:
    """Seconds that each size of a run was measured at most."""
    sample_s = np.array([size.median_s for size in run.sizes])
    least_s = (timing.min_samples + timing.warmup) * sample_s
    most_s = (timing.max_samples + timing.warmup) * sample_s
    found: Floats = np.minimum(most_s, np.maximum(timing.time_cap_s, least_s))
    return found


def main() -> None:
    """Prints a line a recording, in %."""
    for grid in ALL:
        found = measure_savings(load_recording(grid))
        shares = " | ".join(f"{100 * share:.1f}" for share in vars(found).values())
        print(f"| {grid} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
