"""What a run costs: medians over a campaign's runs, part by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from commtune.model.run_costs import RunCost, named_parts

_MEANT = {
    "launch": "from the start of the launcher to the ranks' main()",
    "launch and end": "outside of the ranks: nodes have clocks of their own, so these are one",
    "MPI_Init": "longest over ranks",
    "library": "communicator of NCCL or RCCL",
    "first calls": "of all sizes: connections are made; in no sample",
    "measuring": "warm-up, samples, checks",
    "rest": "backends, buffers, data, records",
    "end": "from the last record to the launcher's end",
}


@dataclass(frozen=True)
class RunPart:
    """Seconds that a part of a run took, over the runs that tell it."""

    name: str
    meaning: str
    median_s: float
    least_s: float
    most_s: float
    runs: int


def run_parts(costs: Mapping[str, RunCost]) -> tuple[RunPart, ...]:
    """The parts in their order, then the whole; none where no run tells them.

    Medians of parts don't add up to the median of the whole.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for cost in costs.values():
        for name, seconds in named_parts(cost):
            found[name].append(max(0.0, seconds))
    known = [_part(name, _MEANT[name], found[name]) for name in _MEANT if name in found]
    if known:
        known.append(_part("whole run", "", [cost.wall_s for cost in costs.values()]))
    return tuple(known)


def _part(name: str, meaning: str, seconds: list[float]) -> RunPart:
    return RunPart(name, meaning, median(seconds), min(seconds), max(seconds), len(seconds))
