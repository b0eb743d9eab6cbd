"""How much of a campaign's time is not the benchmark, and whether that grows with its length.

    python benchmarks/overhead.py real            # a real campaign on this machine, 60 s of search
    python benchmarks/overhead.py trials 10000    # a made-up benchmark that takes no time

The first prints the share of wall time outside benchmark processes, the controller's processor
time, which other load doesn't touch, and what the parts of a run cost: the bare launcher starting
two ranks of /bin/true is the floor. The second runs the whole loop (sampler, database, scores)
over a made-up benchmark, and looks for garbage as rarely as the command line does. It prints the
processor time of a run in each tenth: on average, and the two longest between runs; and the peak
memory. The space is taken whole, whatever the operation: ``--space mpich`` has 770,692,560
configurations. With ``--slow 0.3``, 30 % of runs meet a slow state of the machine.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support/runs"))

from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune import process
from commtune.app.campaigns import tuning
from commtune.campaign.plan import Budget
from commtune.cli import _NEW_OBJECTS
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.commands.campaigns.tuning import quick_campaign
from commtune.db.connection.engine import open_database
from commtune.db.lock_owner import LockOwner
from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.model import Configuration, MpiInstallation, RunRequest, RunResult
from commtune.spaces.loading import load_space
from commtune.tuner.campaign import Campaign
from commtune.tuner.execution.runner import Runner
from commtune.wiring import benchmark_setup, space_fitting


def real(search: str) -> None:
    """A real campaign: share of wall time outside benchmark processes."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    flags = {"budget": {"search": search, "confirmation": "10s"}}
    spec = quick_campaign(flags, space_fitting.preset_for(mpi, "allreduce"), "mpich")
    with tempfile.TemporaryDirectory() as folder:
        opened = open_database(f"sqlite:///{folder}/overhead.db")
        began_s = time.process_time()
        report = tuning.tune_campaign(spec, mpi, opened, QuietReporter(), take_over=False)
        controller_s = time.process_time() - began_s
        opened.close()
    outside = report.wall_s - report.benchmark_s
    print(f"{report.runs} runs, {report.trials} trials, {report.wall_s:.1f} s")
    print(f"a run: {report.benchmark_s / report.runs:.3f} s in benchmark processes")
    print(f"floor: {_launch_floor(mpi):.3f} s for the launcher with two ranks of /bin/true")
    print(
        f"outside: {outside:.2f} s, {outside / report.runs * 1e3:.1f} ms a run, "
        f"{outside / report.wall_s:.1%} of the wall time"
    )
    print(f"controller: {controller_s / report.runs * 1e3:.1f} ms of processor time a run")


def _launch_floor(mpi: MpiInstallation) -> float:
    command = local_launcher(mpi).command(2, ["/bin/true"], 0.0)
    environment = base_environment(os.environ, mpi)
    runs = [process.run_process(command, environment=environment, timeout_s=30) for _ in range(15)]
    return median(run.wall_s for run in runs)


class Stopwatch(SyntheticBenchmark):
    """A made-up benchmark that notes the processor time at which it was asked."""

    asked: list[float]

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """Notes the processor time so far, and makes something up."""
        self.asked.append(time.process_time())
        self.runs.clear()
        return super().measure(request, time_limit_s)


def trials(count: int, space: str, sizes: int, slow: float) -> None:
    """The cost of a trial in a campaign of ``count`` trials; of no sizes: the usual ones."""
    mpi = benchmark_setup.find_named_mpi("wheel:mpich")
    spec = quick_campaign({}, space, "mpich")
    budget = Budget(search_s=1e9, ablation_s=1, confirmation_s=1, trials=count)
    usual = spec.plan.workload
    workload = replace(usual, sizes=tuple(8 << n for n in range(sizes)) or usual.sizes)
    plan = replace(
        spec.plan, space=load_space(space), budget=budget, name="trials", workload=workload
    )
    clock = VirtualClock()
    benchmark = Stopwatch(_truth, clock, seed=1, slow_share=slow)
    benchmark.asked = []
    with tempfile.TemporaryDirectory() as folder:
        opened = open_database(f"sqlite:///{folder}/overhead.db")
        store = Store(opened)
        handle = store.open_campaign(
            CampaignRecord(
                name="trials", what={}, settings={}, space={}, space_key=plan.space.key, seed=1,
                system=SystemRecord("f", "made-up"), stack=StackRecord("f", str(mpi.flavour)),
                simulated=True,
            )
        )  # fmt: skip
        store.lock(handle.id, LockOwner.current())
        runner = Runner(plan, handle.id, benchmark, store, clock=clock)
        gc.set_threshold(_NEW_OBJECTS)
        gc.freeze()
        Campaign(plan, runner, QuietReporter()).run()
        opened.close()
    tenth = len(benchmark.asked) // 10
    print(
        f"{count} trials of {plan.space.count()} configurations, SIMULATED benchmark; processor "
        "time of the controller a run:"
    )
    for number in range(10):
        part = benchmark.asked[number * tenth : (number + 1) * tenth]
        spent = [(later - sooner) * 1e3 for sooner, later in pairwise(part)]
        mean, (second, most) = fmean(spent), sorted(spent)[-2:]
        print(f"  tenth {number + 1}: {mean:.2f} ms, at most {most:.0f}, then {second:.0f} ms")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(benchmark.asked)} runs of {len(workload.sizes)} sizes, at most {peak_mib:.0f} MiB"
    )


def _truth(configuration: Configuration, size: int) -> float:
    return (1e-6 + size / 5e9) * (1 + 0.1 * len(configuration))


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["real", "trials"])
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--search", default="60s")
    parser.add_argument("--space", default="mpich-host-allreduce")
    parser.add_argument("--sizes", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0.0, metavar="SHARE")
    arguments = parser.parse_args()
    if arguments.what == "real":
        real(arguments.search)
    else:
        trials(arguments.count, arguments.space, arguments.sizes, arguments.slow)


if __name__ == "__main__":
    main()
