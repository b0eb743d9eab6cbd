"""What an aggressor beside a run does to it: the default's times with one and without, in turn.

    python benchmarks/noise.py --ranks 2 --nodes 1 --beside 2 --mpi pmi2 --rounds 6

Needs a Slurm (``make slurm-demo`` gives one) and commtune on this Python. Campaigns of four runs
of the default each are made as jobs from where this is typed, with and without an aggressor in
turn; other programs on these nodes disturb both. For each size printed are the medians over runs,
and their ratio; then what the aggressor sent, and what it cost beside the runs: the time of a job
that is not inside of one, for each run. There is no limit that fails.

On the demo's Slurm all nodes share the cores of one machine: the ratio tells of busy cores there,
and not of a network.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from commtune.db.connection.engine import open_database
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store
from commtune.formatting import format_duration, format_size
from commtune.model import Outcome

_CAMPAIGN = """
campaign: 1
name: {name}
space: mpich-host
mpi: wheel:mpich
workload: {{operation: allreduce, ranks: {ranks}, nodes: {nodes}, sizes: [8, 64KiB, 1MiB]}}
slurm: {{mpi: {mpi}, poll: 1s}}
budget: {{search: 10ms, ablation: 10ms, confirmation: 10ms, trials: 1}}
"""
_AGGRESSOR = (
    "aggressor: {{pattern: {pattern}, nodes: {beside}, ranks_per_node: {each}, "
    "message: {message}}}\n"
)


@dataclass
class Found:
    """What campaigns of one kind measured; times in seconds."""

    medians: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    rates: list[float] = field(default_factory=list)
    around: list[float] = field(default_factory=list)


def _take_in(found: Found, database: str, name: str) -> None:
    opened = open_database(f"sqlite:///{database}")
    store = Store(opened)
    (campaign,) = [c for c in list_summaries(opened.whole_url) if c.name == name]
    runs = [run for run in store.runs(campaign.id) if run.outcome is Outcome.OK]
    for run in runs:
        for measured in run.measurements:
            found.medians[measured.bytes].append(measured.time_s)
    found.rates += store.traffic(campaign.id) or ()
    for job in store.job_book(campaign.id).all_jobs():
        if job.started_at and job.ended_at and runs:
            outside = job.ended_at - job.started_at - sum(run.wall_s for run in runs)
            found.around.append(outside / len(runs))
    opened.close()


def main() -> None:
    """Measures, and prints what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--beside", type=int, default=2, help="nodes of the aggressor")
    parser.add_argument("--each", type=int, default=1, help="ranks on each of them")
    parser.add_argument("--pattern", default="incast")
    parser.add_argument("--message", default="128KiB")
    parser.add_argument("--mpi", default="pmi2")
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    found = {"quiet": Found(), "noisy": Found()}
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="noise-") as folder:
        database = str(Path(folder) / "noise.db")
        environment = {**os.environ, "XDG_DATA_HOME": folder, "COMMTUNE_DB": database}
        for number in range(given.rounds):
            for kind in found:
                name = f"{kind}-{number}"
                text = _CAMPAIGN + (_AGGRESSOR if kind == "noisy" else "")
                campaign = Path(folder) / f"{name}.yaml"
                campaign.write_text(text.format(name=name, **vars(given)))
                command = [sys.executable, "-m", "commtune.cli", "tune", str(campaign)]
                subprocess.run(command, check=True, capture_output=True, env=environment)
                _take_in(found[kind], database, name)
    quiet, noisy = found["quiet"], found["noisy"]
    for bytes_, times in quiet.medians.items():
        before, after = median(times), median(noisy.medians[bytes_])
        print(
            f"{format_size(bytes_):>8}  without {format_duration(before):>8}  with "
            f"{format_duration(after):>8}  "
            f"{after / before:.2f} times, {len(times)} runs each"
        )
    print(
        f"the aggressor sent {min(noisy.rates):.2g} to {max(noisy.rates):.2g} Gb/s; outside of a "
        f"run {median(quiet.around):.2f} s without, {median(noisy.around):.2f} s with it"
    )


if __name__ == "__main__":
    main()
