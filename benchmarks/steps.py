"""How much of an allocation's time is inside benchmark steps, and what srun alone costs.

    python benchmarks/steps.py --nodes 2 --mpi pmi2 --search 120s --output steps.json

Needs a Slurm (``make slurm-demo`` gives one) and commtune on this Python. A campaign whose runs
take about 5 s each is submitted with ``commtune submit``. When it is done, printed are

- inside: the share of the allocation's time, from its script's start to the controller's end, in
  which a step of the benchmark ran, untimed ones that trace what a library does among them;
- timed: the same for runs that count as evidence only;
- floor: the median time of an empty step, ``srun true`` on as many nodes, in an allocation of its
  own, and what share of a run that is.

Both ends are taken in one campaign on one machine; there is no limit that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from commtune.db.connection.engine import open_database
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store

_CAMPAIGN = """
campaign: 1
name: steps
space: mpich-host
mpi: wheel:mpich
workload: {{operation: allreduce, ranks: {ranks}, nodes: {nodes}, sizes: [8, 1KiB, 64KiB, 1MiB]}}
timing: {{time_cap: 1.2s, max_samples: 100000, relative_ci: 0%}}
slurm: {{mpi: {mpi}}}
budget: {{search: {search}, ablation: 25s, confirmation: 60s}}
"""
_EMPTY_STEPS = 20
_POLL_S = 2.0


@dataclass(frozen=True)
class Shares:
    """What was measured; times in seconds."""

    allocation_s: float
    runs: int
    run_s: float
    inside: float
    timed: float
    traces: int
    floor_s: float


def _commtune(*arguments: str) -> str:
    command = [sys.executable, "-m", "commtune.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _floor(nodes: int, mpi: str) -> float:
    """Median seconds of an empty step, all of them in one allocation."""
    step = f"srun --nodes={nodes} --ntasks={nodes} --mpi={mpi} --export=ALL true"
    script = f"for i in $(seq {_EMPTY_STEPS}); do date +%s%N; {step}; done; date +%s%N"
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        output = Path(folder) / "out"
        options = [f"--nodes={nodes}", f"--ntasks={nodes}", f"--output={output}", "--wait"]
        subprocess.run(["sbatch", *options, f"--wrap={script}"], check=True, capture_output=True)
        stamps = [int(line) / 1e9 for line in output.read_text().split() if line.isdigit()]
    return median(later - earlier for earlier, later in pairwise(stamps))


def _measured(database: Path, floor_s: float) -> Shares:
    opened = open_database(f"sqlite:///{database}")
    store = Store(opened)
    (campaign,) = list_summaries(opened.whole_url)
    runs = list(store.runs(campaign.id))
    executions = len(store.executions(campaign.id))
    (job,) = [j for j in store.job_book(campaign.id).all_jobs() if j.started_at and j.node_hours]
    opened.close()
    allocation_s = (job.ended_at or 0.0) - (job.started_at or 0.0)
    timed_s = sum(run.wall_s for run in runs)
    # A trace is a step like the others, but nobody stores how long it took: an empty one at least.
    untimed_s = executions * floor_s
    return Shares(
        allocation_s=allocation_s,
        runs=len(runs),
        run_s=median(run.wall_s for run in runs),
        inside=(timed_s + untimed_s) / allocation_s,
        timed=timed_s / allocation_s,
        traces=executions,
        floor_s=floor_s,
    )


def main() -> None:
    """Measures, and prints or stores what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=0, help="[one a node]")
    parser.add_argument("--mpi", default="pmi2")
    parser.add_argument("--search", default="120s")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="steps-") as folder:
        os.environ["XDG_DATA_HOME"] = folder
        os.environ["COMMTUNE_DB"] = str(Path(folder) / "steps.db")
        campaign = Path(folder) / "steps.yaml"
        ranks = given.ranks or given.nodes
        campaign.write_text(
            _CAMPAIGN.format(ranks=ranks, nodes=given.nodes, mpi=given.mpi, search=given.search)
        )
        print(_commtune("submit", str(campaign)), end="", flush=True)
        while json.loads(_commtune("status", "--json"))[0]["finished"] is None:
            time.sleep(_POLL_S)
        time.sleep(_POLL_S)
        found = _measured(Path(os.environ["COMMTUNE_DB"]), _floor(given.nodes, given.mpi))
    print(
        f"{found.allocation_s:.0f} s of allocation, {found.runs} runs of {found.run_s:.2f} s\n"
        f"inside steps {found.inside:.1%}, timed runs {found.timed:.1%}\n"
        f"an empty step takes {found.floor_s * 1000:.0f} ms, "
        f"{found.floor_s / found.run_s:.1%} of a run"
    )
    if given.output:
        given.output.write_text(json.dumps(asdict(found), indent=2) + "\n")


if __name__ == "__main__":
    main()
