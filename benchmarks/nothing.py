"""Campaigns on this machine over variables that the library ignores: does any claim a gain?

    python benchmarks/nothing.py --library openmpi --campaigns 10 --output FILE.jsonl
    python benchmarks/nothing.py --library nccl --sizes "8 .. 32MiB x8" --output FILE.jsonl
    python benchmarks/nothing.py --campaigns 0 --output FILE.jsonl

Real processes of an MPI from its wheel, and a shipped space whose variables all have another name,
one that the library does not have. So none does anything, and every gain that is claimed is false.
The library is not asked what it made of them: it would say that it lacks them all, and nothing
would be compared. NCCL takes two GPUs, as two nodes over sockets. The last command only prints
what is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from honesty_table import Share
from quiet import QuietReporter

from commtune import spaces
from commtune.app.campaigns import tuning
from commtune.app.campaigns.preparing import prepare_campaign
from commtune.campaign.loading import load_campaign
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.db.connection.engine import open_database
from commtune.model import FEWEST_PAIRS, Verdict
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.statistics.machine_states import ALL

#: By library: the preset, how its variables begin, and how those begin that it lacks.
SPACES = {
    "mpich": ("mpich-host-allreduce", "MPIR_CVAR_", "MPIR_CVAR_IGNORED_"),
    "openmpi": ("openmpi-host", "OMPI_MCA_", "OMPI_MCA_ignored_"),
}
#: The presets of NCCL take their facts from the catalogue, by the names that NCCL has.
_NCCL = "nccl"
_NCCL_SPACE = """space: 1
name: nothing
version: 1
summary: Variables that NCCL does not have.
library: nccl
parameters:
  - {name: NCCL_IGNORED_ALGO, kind: choice, values: [Ring, Tree]}
  - {name: NCCL_IGNORED_PROTO, kind: choice, values: [LL, Simple]}
  - {name: NCCL_IGNORED_BUFFSIZE, kind: bytes, values: [1MiB, 2MiB, 8MiB, 16MiB]}
  - {name: NCCL_IGNORED_MAX_NCHANNELS, kind: integer, values: [1, 2, 4, 8, 16]}
  - {name: NCCL_IGNORED_SOCKET_NTHREADS, kind: integer, values: [1, 2, 4, 8]}
  - {name: NCCL_IGNORED_NSOCKS_PERTHREAD, kind: integer, values: [1, 2, 4]}
"""
_NCCL_WORKLOAD = "backend: xccl, emulate_nodes: 2, "
LIBRARIES = (*SPACES, _NCCL)
CAMPAIGN = """campaign: 1
name: nothing-{library}-{seed}
space: ./nothing.yaml
mpi: {mpi}
seed: {seed}
workload: {{{backend}ranks: {ranks}, sizes: "{sizes}"}}
timing: {{time_cap: {time_cap}}}
budget: {{search: {search}, ablation: {ablation}, confirmation: {confirmation}}}
"""


def ignored_space(library: str) -> str:
    """The preset of a library as text, with names that the library does not have."""
    if library == _NCCL:
        return _NCCL_SPACE
    preset, real, ignored = SPACES[library]
    text = (Path(spaces.__file__).parent / "presets" / f"{preset}.yaml").read_text()
    return text.replace(real, ignored).replace(f"name: {preset}\n", "name: nothing\n", 1)


def run_campaign(folder: Path, asked: dict[str, Any]) -> CampaignResult:
    """One campaign in a database of its own."""
    (folder / "nothing.yaml").write_text(ignored_space(asked["library"]))
    file, url = folder / "campaign.yaml", f"sqlite:///{folder}/campaign.db"
    on_gpus = asked["library"] == _NCCL
    named, backend = ("path", _NCCL_WORKLOAD) if on_gpus else (f"wheel:{asked['library']}", "")
    file.write_text(CAMPAIGN.format(**asked, mpi=named, backend=backend))
    spec, mpi = prepare_campaign(load_campaign(file), url)
    opened = open_database(url)
    try:
        return tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
    finally:
        opened.close()


def row_of(asked: dict[str, Any], result: CampaignResult) -> dict[str, Any]:
    """What a campaign came to, as plain data."""
    compared = {
        str(configuration): [
            [p.bytes, p.gain.ratio, p.gain.low, p.gain.high, p.gain.pairs]
            for p in one.points
            if p.speed == ALL
        ]
        for configuration, one in result.comparison.items()
    }
    claims = [str(p.configuration) for p in result.profiles if p.verdict is Verdict.FASTER]
    return {**asked, "runs": result.runs, "claims": claims, "compared": compared}


def describe(rows: Sequence[dict[str, Any]]) -> str:
    """By library: how much was compared, campaigns that claim a gain, and intervals without 1."""
    lines = []
    for library in LIBRARIES:
        of = [row for row in rows if row["library"] == library]
        compared = [[p for ps in row["compared"].values() for p in ps] for row in of]
        stated = [[p for p in ps if p[4] >= FEWEST_PAIRS] for ps in compared]
        misses = sum(any(not p[2] <= 1 <= p[3] for p in ps) for ps in stated)
        if pairs := [p[4] for ps in stated for p in ps]:
            lines.append(
                f"{library}: {len(of)} campaigns, {sum(row['runs'] for row in of)} runs; "
                f"{sum(map(bool, stated))} compared something, median {median(pairs):g} pairs\n"
                f"  claim a gain: {Share(sum(bool(row['claims']) for row in of), len(of))}\n"
                f"  an interval leaves out 1: {Share(misses, len(of))}"
            )
    return "\n".join(lines)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="mpich")
    parser.add_argument("--campaigns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start none later")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="8 .. 4MiB x8")
    parser.add_argument("--time-cap", default="50ms")
    parser.add_argument("--search", default="50s")
    parser.add_argument("--ablation", default="20s")
    parser.add_argument("--confirmation", default="30s")
    parser.add_argument("--output", type=Path, required=True, help="JSON Lines, added to")
    options = parser.parse_args()
    LocalBenchmark.trace = lambda *_: None  # type: ignore[method-assign]  # see above
    asked = vars(options).copy()
    seeds = range(asked.pop("first_seed"), options.first_seed + asked.pop("campaigns"))
    output, end = asked.pop("output"), time.monotonic() + asked.pop("seconds")
    for seed in seeds:
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as folder, output.open("a") as file:
            of_one = {**asked, "seed": seed}
            row = row_of(of_one, run_campaign(Path(folder), of_one))
            print(json.dumps(row, separators=(",", ":")), file=file)
    print(describe([json.loads(line) for line in output.read_text().splitlines()]))


if __name__ == "__main__":
    main()
