"""Compares the benchmark in Python with the native one, on the same MPI.

Both run in turn, many times. Per size the best run of each is printed (a run's time is the median
of its samples), their difference, the ratio (Python / native) as the median of pairs with its
quartiles, and beside it the same ratio of the native benchmark with itself, from neighbouring
runs: what is no difference but noise. At the end it says what others took of the cores meanwhile.

    make .mpi/mpich; export COMMTUNE_MPI_PATH=$PWD/.mpi
    python benchmarks/python_bench.py --op allreduce --pairs 10
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import EnvironmentFault
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import build_benchmark
from commtune.kernels.programs import PythonProgram, libmpi_of
from commtune.kernels.python_bench.layout import OPERATIONS
from commtune.model import DEFAULT, Backend, Operation, Outcome, RunRequest, Timing, Workload

_ROOT = Path(__file__).parent.parent
_LIMIT_S = 300.0
Times = Mapping[int, float]


class Contest:
    """The two programs, and runs of them in turn."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        mpi = find_mpi(options.mpi)
        self.mpi = mpi
        self.loads: list[float] = []
        environment = base_environment(os.environ, mpi)
        executable = build_benchmark(mpi, _ROOT / "build" / "benchmark").executable
        native = LocalBenchmark(mpi, NativeProgram(executable), environment, (), folder)
        self._benchmarks = {
            Backend.MPI_HOST: native,
            Backend.PYTHON_HOST: replace(native, program=PythonProgram(libmpi_of(mpi))),
        }
        sizes = tuple(int(size) for size in options.sizes.split(","))
        self.workload = Workload(Operation(options.op), sizes, options.ranks)
        # As many samples at every size of both, and no end by convergence.
        self._timing = Timing(
            min_samples=100, max_samples=100, relative_ci=0.0, time_cap_s=options.time_cap
        )

    def times(self, backend: Backend) -> Times:
        """Median seconds per size of one run.

        Raises:
            EnvironmentFault: it did not end well.
        """
        workload = replace(self.workload, backend=backend)
        request = RunRequest(uuid.uuid4().hex, DEFAULT, workload, self._timing)
        result = self._benchmarks[backend].measure(request, _LIMIT_S)
        if result.outcome is not Outcome.OK:
            raise EnvironmentFault(f"{backend}: {result.detail}\n{result.output_tail}")
        self.loads.append(result.other_load or 0.0)
        return {m.bytes: m.median_s for m in result.measurements}


def main() -> None:
    """Prints the table."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(options, Path(folder))
        # Native, Python, native, Python, ...: neighbours are pairs of either kind.
        rounds = [
            (contest.times(Backend.MPI_HOST), contest.times(Backend.PYTHON_HOST))
            for _ in range(options.pairs)
        ]
    print(f"{options.op}, {options.ranks} ranks, {contest.mpi.flavour} {contest.mpi.version}, "
          f"{options.pairs} pairs")  # fmt: skip
    print(f"{'bytes':>9} {'native us':>10} {'Python us':>10} {'difference':>10} "
          f"{'Python/native':>20} {'native/native':>20}")  # fmt: skip
    for size in contest.workload.sizes:
        print(_row(size, [(a[size], b[size]) for a, b in rounds]))
    load = statistics.median(contest.loads)
    print(f"others used {load:.0%} of the cores (median of all runs)")


def _row(size: int, rounds: Sequence[tuple[float, float]]) -> str:
    native = [a * 1e6 for a, _ in rounds]
    python = [b * 1e6 for _, b in rounds]
    between = [b / a for a, b in rounds]
    within = [later / former for former, later in pairwise(native)]
    best, other = min(native), min(python)
    times = f"{size:>9} {best:>10.2f} {other:>10.2f} {other - best:>10.2f}"
    return f"{times} {_spread(between):>20} {_spread(within):>20}"


def _spread(ratios: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} {low:.3f}-{high:.3f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--op", choices=OPERATIONS, default="allreduce")
    parser.add_argument("--sizes", default="8,1024,8192,65536,1048576,4194304")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--time-cap", type=float, default=1.0, help="seconds a size")
    parser.add_argument("--mpi", default="wheel:mpich")
    return parser.parse_args()


if __name__ == "__main__":
    main()
