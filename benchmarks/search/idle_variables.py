"""How many variables of recommended profiles do nothing, in replayed campaigns.

    python -m benchmarks.search.idle_variables nccl-sockets --percent 50 --seeds 50
    python -m benchmarks.search.idle_variables nccl-sockets --runs 172 --seeds 16

Variables that no library knows are added to a recording's space: a replay takes no notice of
them. So it is certain that they do nothing. Of the recorded ones nobody knows that for sure: a
recording has a few runs of each configuration. Whole campaigns within a share of the recording's
runs, or within so many runs. What their recommendations gain, and how far they are from the
recording's best at each size, is judged by runs that they never saw.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy is there
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from commtune.campaign.plan import Plan  # noqa: E402
from commtune.model import Profile, Verdict  # noqa: E402
from commtune.model.profile import ALL_SIZES  # noqa: E402
from commtune.replay.recording import load_grid  # noqa: E402
from commtune.spaces.customizing import customize_space  # noqa: E402

from .halves import Floats, Halves, Recording, split_grid  # noqa: E402
from .ours import run_whole_campaign  # noqa: E402

GRIDS = Path(__file__).parent.parent / "grids"
_PREFIX = "DOES_NOTHING_"


class WithIdle(Halves):
    """A recording whose space has variables that do nothing, of two values each."""

    count = 6

    @property
    def plan(self) -> Plan:
        """The recording's own campaign, in the larger space."""
        plan = self.recording.plan
        idle = [
            {"name": f"{_PREFIX}{number}", "kind": "choice", "values": ["a", "b"]}
            for number in range(self.count)
        ]
        return replace(plan, space=customize_space(plan.space, extend=idle))


class CountedVariables(NamedTuple):
    """Numbers of variables of a profile.

    Attributes:
        silent: idle ones that it does not name as not shown to contribute.
        named: all that it names so.
    """

    variables: int
    idle: int
    silent: int
    named: int


@dataclass(frozen=True)
class Counted:
    """What one campaign recommends.

    Attributes:
        gain, regret: logarithms at each size; over the default, and behind the best.
    """

    profiles: tuple[CountedVariables, ...]
    gain: Floats
    regret: Floats


def count_idle(halves: Halves, profiles: tuple[Profile, ...]) -> Counted:
    """Counts the variables of the profiles of a campaign, and judges its table."""
    rows = np.full(len(halves.sizes), halves.default)
    found = []
    for profile in profiles:
        if profile.verdict is not Verdict.FASTER or profile.name == ALL_SIZES:
            continue
        chosen = profile.configuration
        idle = {name for name in chosen if name.startswith(_PREFIX)}
        named = set(profile.unproven_variables)
        found.append(CountedVariables(len(chosen), len(idle), len(idle - named), len(named)))
        for place, size in enumerate(halves.sizes):
            if profile.bytes_low <= size <= profile.bytes_high:
                rows[place] = halves.recorded(chosen)
    times = halves.truth[rows, np.arange(len(rows))]
    return Counted(tuple(found), halves.truth[halves.default] - times, times - halves.best)


def play(
    recording: Recording, percent: float, seeds: range, runs: int | None = None
) -> Iterator[Counted]:
    """One campaign with each of these seeds, within so many runs or percent of the recording's."""
    for seed in seeds:
        found = split_grid(recording, seed)
        halves = WithIdle(recording, found.seen, found.held)
        result, _ = run_whole_campaign(halves, seed, runs or halves.runs(percent))
        yield count_idle(halves, result.profiles)


def main() -> None:
    """Plays, and prints two lines for each recording and share."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("grids", nargs="+", help="names of recordings in benchmarks/grids")
    parser.add_argument(
        "--percent", type=float, nargs="+", default=[50], help="of the recording's runs [50]"
    )
    parser.add_argument("--runs", type=int, help="of each campaign, whatever the percentage")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0, help="[0]")
    options = parser.parse_args()
    for grid in options.grids:
        recording = Recording(load_grid(GRIDS / f"{grid}.jsonl.gz"))
        for percent in options.percent:
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            found = list(play(recording, percent, seeds, options.runs))
            within = f"{options.runs} runs" if options.runs else f"{percent:g} % of its runs"
            print(f"{grid}, {within}, {options.seeds} replayed campaigns:")
            print(f"  {describe(found)}", flush=True)


def describe(found: list[Counted]) -> str:
    """The counts of all campaigns, and what their recommendations are worth."""
    profiles = [profile for one in found for profile in one.profiles]
    variables, idle, silent, named = (
        sum(column) for column in zip((0, 0, 0, 0), *profiles, strict=True)
    )
    clean, naming = sum(not one.idle for one in profiles), sum(one.named > 0 for one in profiles)
    gain = fmean(float(one.gain.mean()) for one in found)
    regret = median(float(one.regret.mean()) for one in found)
    return (
        f"{idle} of {variables} variables do nothing, {silent} of them without a word; {clean} of "
        f"{len(profiles)} profiles have none; {named} variables in {naming} profiles are named as "
        f"not shown to contribute; mean gain {np.expm1(gain):.1%}, "
        f"median regret {np.expm1(regret):.1%}"
    )


if __name__ == "__main__":
    main()
