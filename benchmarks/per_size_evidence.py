"""How many launches would a search save whose launches measure another configuration at each size?

    python benchmarks/per_size_evidence.py

From recordings, of the configurations that differ only in what a file of rules can say. A launch
gives one time at each size, with variables or with a file. Variables measure one configuration at
all sizes, so every configuration that is still of interest at any size needs launches of its own.
A file needs as many as are of interest at the size where most are. Of interest is what may be the
best: within a margin of the fastest median. The quotient is by how much a file multiplies the
evidence of a launch, at best; with a margin of 0, of a confirmation of the winners.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_GRIDS = Path(__file__).parent / "grids"
_MARGINS = (0.0, 0.05, 0.1, 0.2)
#: What a file can say, by recording.
_SAID = {
    "mpich-allreduce-dense": ("ALLREDUCE_INTRA_ALGORITHM", "ALLREDUCE_POSIX_INTRA_ALGORITHM"),
    "mpich-alltoall-dense": ("ALLTOALL_INTRA_ALGORITHM",),
    "openmpi-broadcast-dense": ("bcast_algorithm", "use_dynamic_rules"),
    "nccl-sockets-dense": ("NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS"),
}


def medians(name: str) -> NDArray[np.float64]:
    """Median times: a row for each configuration whose other variables are unset, by size."""
    with gzip.open(_GRIDS / f"{name}.jsonl.gz", "rt") as opened:
        lines = opened.read().splitlines()
    table = json.loads(lines[1])
    times = defaultdict(list)
    for run in map(json.loads, lines[2:]):
        if run.get("m"):
            times[run["c"]].append([size[0] for size in run["m"]])
    said = {at for at, v in enumerate(table["variables"]) if v.endswith(_SAID[name])}
    alone = {
        number
        for number, values in enumerate(table["configurations"])
        if all(value is None or at in said for at, value in enumerate(values))
    }
    return np.array([np.median(times[number], axis=0) for number in sorted(alone & set(times))])


def main() -> None:
    """Prints a row for each recording and margin."""
    print("recording                configurations  margin  with variables  with a file  quotient")
    for name in _SAID:
        table = medians(name)
        for margin in _MARGINS:
            near = table <= table.min(axis=0) * (1 + margin)
            variables, file = int(near.any(axis=1).sum()), int(near.sum(axis=0).max())
            print(f"{name:24} {len(table):14}  {margin:6.0%}  {variables:14}  {file:11}  "
                  f"{variables / file:8.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
