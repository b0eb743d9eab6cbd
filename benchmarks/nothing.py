"""Campaigns on this machine over variables that do nothing: does any claim a gain?

    python benchmarks/nothing.py --campaigns 10 --output benchmarks/results/nothing.json

Real processes: MPICH from its wheel, an allreduce of 2 ranks on one node, and a space of variables
that MPICH knows and that are switches of other operations; some of which an allreduce on several
nodes may use. None is known to do anything here, so every gain that is claimed counts as false.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from honesty import Share
from quiet import QuietReporter

from commtune import formatting as text
from commtune.app.campaigns import tuning
from commtune.campaign.loading import load_campaign
from commtune.db.codec import dump_model
from commtune.db.connection.engine import open_database
from commtune.model import Verdict
from commtune.tuner.campaign import CampaignResult
from commtune.wiring import benchmark_setup

#: Switches of other operations, each with values around its default.
IDLE = {
    "MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE": [64, 256, 1024],
    "MPIR_CVAR_ALLTOALL_MEDIUM_MSG_SIZE": [8192, 32768, 131072],
    "MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE": [16384, 81920, 262144],
    "MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE": [262144, 524288, 1048576],
    "MPIR_CVAR_BCAST_MIN_PROCS": [4, 8, 16],
    "MPIR_CVAR_BCAST_SHORT_MSG_SIZE": [4096, 12288, 65536],
    "MPIR_CVAR_BCAST_LONG_MSG_SIZE": [262144, 524288, 1048576],
    "MPIR_CVAR_REDUCE_SHORT_MSG_SIZE": [1024, 2048, 8192],
    "MPIR_CVAR_SCATTER_INTER_SHORT_MSG_SIZE": [1024, 2048, 8192],
    "MPIR_CVAR_GATHER_INTER_SHORT_MSG_SIZE": [1024, 2048, 8192],
}
SPACE = "space: 1\nname: nothing\nversion: 1\nlibrary: mpich\nparameters:\n" + "".join(
    f"  - {{name: {name}, kind: integer, values: {values}, source: mpivars of MPICH 5.0}}\n"
    for name, values in IDLE.items()
)
CAMPAIGN = """campaign: 1
name: nothing-{seed}
space: ./nothing.yaml
mpi: wheel:mpich
seed: {seed}
budget: {{search: {search}, ablation: {ablate}, confirmation: {confirm}}}
"""


def campaign(folder: Path, seed: int, budget: dict[str, str]) -> CampaignResult:
    """One campaign in a database of its own."""
    (folder / "nothing.yaml").write_text(SPACE)
    file = folder / f"{seed}.yaml"
    file.write_text(CAMPAIGN.format(seed=seed, **budget))
    spec = load_campaign(file)
    opened = open_database(f"sqlite:///{folder}/{seed}.db")
    try:
        mpi = benchmark_setup.find_named_mpi(spec.mpi)
        return tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
    finally:
        opened.close()


def shown(seed: int, report: CampaignResult) -> str:
    """A line a campaign: what it claims, and the largest gain that it left open."""
    claims = [p for p in report.profiles if p.verdict is Verdict.FASTER]
    points = [p for points in report.comparison.points.values() for p in points]
    highest = max((p.gain.low for p in points if p.speed == "all"), default=float("nan"))
    said = ", ".join(f"{p.name}: {p.configuration}" for p in claims) or "nothing claimed"
    return f"seed {seed}: {report.runs} runs, highest lower end {highest:.3f}; {said}"


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--search", default="50s")
    parser.add_argument("--ablate", default="20s")
    parser.add_argument("--confirm", default="30s")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    budget = {name: getattr(options, name) for name in ("search", "ablate", "confirm")}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first_seed, options.first_seed + options.campaigns):
            report = campaign(Path(folder), seed, budget)
            claims = sum(p.verdict is Verdict.FASTER for p in report.profiles)
            rows.append(
                {"seed": seed, "claims": claims, "conclusion": dump_model(report.conclusion)}
            )
            print(shown(seed, report), flush=True)
    claiming = sum(bool(row["claims"]) for row in rows)
    print(
        f"\n{Share(claiming, len(rows))} of campaigns claim anything "
        f"({text.format_percent(0.05)} may)"
    )
    if options.output:
        options.output.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
