"""How many variables of recommended profiles bring nothing, in replayed campaigns.

    python -m benchmarks.search.idle_variables nccl-sockets --percent 50 --seeds 24

A variable is idle where the recording's best estimate of the times says that leaving it out costs
less than 1 % at every size of the profile. Whole campaigns within a share of the recording's runs.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from commtune.model import Configuration, Profile, Verdict  # noqa: E402
from commtune.replay.recording import load_grid  # noqa: E402
from commtune.tuner.outcome.profiles import ALL_SIZES  # noqa: E402

from .halves import Halves, Recording, split_grid  # noqa: E402
from .ours import run_whole_campaign  # noqa: E402

GRIDS = Path(__file__).parent.parent / "grids"
#: What a variable has to bring at some size (logarithm).
_LEAST = math.log1p(0.01)


@dataclass(frozen=True)
class Counted:
    """Variables of one profile: those whose absence was recorded, and the idle among them."""

    variables: int
    idle: tuple[str, ...]


def count_idle(halves: Halves, profile: Profile) -> Counted:
    """Counts the variables of a profile."""
    inside = [
        n for n, s in enumerate(halves.sizes) if profile.bytes_low <= s <= profile.bytes_high
    ]
    index, chosen = halves.grid.index, profile.configuration
    found = {}
    for name in chosen:
        rest = Configuration({k: v for k, v in chosen.items() if k != name})
        if rest in index:
            lost = halves.truth[index[rest]] - halves.truth[index[chosen]]
            found[name] = float(np.max(lost[inside]))
    return Counted(len(found), tuple(name for name, lost in found.items() if lost < _LEAST))


def play(recording: Recording, percent: float, seeds: int) -> Iterator[Counted]:
    """Counts over the recommended profiles of campaigns with these seeds."""
    for seed in range(seeds):
        halves = split_grid(recording, seed)
        result, _ = run_whole_campaign(halves, seed, halves.runs(percent))
        for profile in result.profiles:
            if profile.verdict is Verdict.FASTER and profile.name != ALL_SIZES:
                yield count_idle(halves, profile)


def main() -> None:
    """Plays, and prints one line for each recording."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("grids", nargs="+", help="names of recordings in benchmarks/grids")
    parser.add_argument("--percent", type=float, default=50, help="of the recording's runs [50]")
    parser.add_argument("--seeds", type=int, default=24)
    options = parser.parse_args()
    for grid in options.grids:
        recording = Recording(load_grid(GRIDS / f"{grid}.jsonl.gz"))
        found = list(play(recording, options.percent, options.seeds))
        idle, variables = sum(len(one.idle) for one in found), sum(one.variables for one in found)
        clean = sum(not one.idle for one in found)
        print(
            f"{grid}, {options.percent:g} % of its runs, {options.seeds} replayed campaigns: "
            f"{idle} of {variables} variables are idle; {clean} of {len(found)} profiles have none"
        )


if __name__ == "__main__":
    main()
