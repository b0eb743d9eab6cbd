"""Compares the native benchmark with IMB-MPI1, the Intel MPI Benchmarks, on the same MPI.

Both run on MPICH, in turn, many times: IMB-MPI1 comes with the Intel MPI wheel and runs on MPICH
as well, by the ABI that the two share. Per size the best run of each program is printed, their
ratio (ours / IMB's), and the median of the ratios of pairs with its quartiles. A run's time is
the median of samples for ours and the mean for IMB, which knows no other: on a machine that does
something else as well, means grow and medians don't, so there only the best runs can be compared.

    commtune mpi install mpich --root .mpi && commtune mpi install impi --root .mpi
    python benchmarks/fidelity.py --op allreduce --pairs 20
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune import process
from commtune.cluster.launch import base_environment, mpi_command
from commtune.cluster.mpi import find_mpi
from commtune.errors import EnvironmentFault
from commtune.kernels.bench import arguments
from commtune.kernels.build import build
from commtune.kernels.records import read
from commtune.model import (
    DEFAULT,
    MpiInstallation,
    Operation,
    RunRequest,
    Timing,
    Workload,
)

_ROOT = Path(__file__).parent.parent
_LIMIT_S = 300.0
_RANKS = 2

#: IMB's name of an operation, and by what our size has to be divided to be IMB's.
_IMB = {
    Operation.PING_PONG: ("PingPong", 1),
    Operation.ALLREDUCE: ("Allreduce", 1),
    Operation.BROADCAST: ("Bcast", 1),
    Operation.ALLGATHER: ("Allgather", _RANKS),
    Operation.ALLTOALL: ("Alltoall", _RANKS),
}
#: Bytes, repetitions, then t[usec] of PingPong, or t_min and t_max (over ranks) of the others.
_IMB_ROW = re.compile(r"^ +(\d+) +\d+ +([\d.]+) +([\d.]+)", re.MULTILINE)


@dataclass(frozen=True)
class Programs:
    """What is compared, and what both run on."""

    mpi: MpiInstallation
    ours: Path
    imb: Path
    folder: Path

    def launch(self, program: Sequence[str]) -> str:
        """Runs a program with two ranks; returns what it printed."""
        environment = base_environment(os.environ, self.mpi)
        environment["LD_LIBRARY_PATH"] = str(self.mpi.prefix / "lib")
        done = process.run(
            mpi_command(self.mpi, _RANKS, program),
            environment=environment,
            timeout_s=_LIMIT_S,
            whole_output=True,
        )
        if not done.ok:
            raise EnvironmentFault(f"{program[0]} failed: {done.output[-2000:]}")
        return done.output

    def time_ours(self, operation: Operation, sizes: tuple[int, ...]) -> Mapping[int, float]:
        """Median seconds per size."""
        # As many samples at every size, as IMB does.
        timing = Timing(min_samples=200, max_samples=200, relative_ci=0.0, time_cap_s=10.0)
        request = RunRequest("fidelity", DEFAULT, Workload(operation, sizes), timing)
        records = self.folder / "records.jsonl"
        self.launch(arguments(self.ours, request, records, ()))
        found = read(records, request)
        if found.problems or found.footer is None:
            raise EnvironmentFault(f"bad records: {found.problems}")
        return {m.bytes: m.median_s for m in found.measurements}

    def time_imb(self, operation: Operation, sizes: tuple[int, ...]) -> Mapping[int, float]:
        """Seconds per size: the mean of each rank, the larger of the two ranks."""
        name, divisor = _IMB[operation]
        lengths = self.folder / "lengths"
        lengths.write_text("".join(f"{size // divisor}\n" for size in sizes))
        program = [str(self.imb), name, "-msglen", str(lengths)]
        output = self.launch([*program, "-iter", "200", "-iter_policy", "off"])
        column = 2 if operation is Operation.PING_PONG else 3
        return {int(r[1]) * divisor: float(r[column]) * 1e-6 for r in _IMB_ROW.finditer(output)}


def main() -> None:
    """Prints the table."""
    options = _options()
    mpi = find_mpi("wheel:mpich", project_mpi=[options.root])
    imb = find_mpi("wheel:impi", project_mpi=[options.root]).prefix / "bin" / "IMB-MPI1"
    operation = Operation(options.op)
    sizes = tuple(int(size) for size in options.sizes.split(","))
    with tempfile.TemporaryDirectory() as folder:
        ours = build(mpi, _ROOT / "build" / "benchmark")
        programs = Programs(mpi, ours, imb, Path(folder))
        pairs = [
            (programs.time_ours(operation, sizes), programs.time_imb(operation, sizes))
            for _ in range(options.pairs)
        ]
    print(f"{operation}, {_RANKS} ranks, MPICH {mpi.version}, {options.pairs} pairs")
    print(
        f"{'bytes':>9} {'ours us':>9} {'IMB us':>9} {'ratio':>6} {'of pairs':>9} {'quartiles':>12}"
    )
    for size in sizes:
        print(_row(size, [(a[size], b[size]) for a, b in pairs]))


def _row(size: int, pairs: Sequence[tuple[float, float]]) -> str:
    best_us = min(ours for ours, _ in pairs) * 1e6
    best_imb_us = min(imb for _, imb in pairs) * 1e6
    low, middle, high = statistics.quantiles((ours / imb for ours, imb in pairs), n=4)
    best = f"{best_us:>9.2f} {best_imb_us:>9.2f} {best_us / best_imb_us:>6.3f}"
    return f"{size:>9} {best} {middle:>9.3f} {low:>6.3f}-{high:.3f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--op", choices=[str(operation) for operation in _IMB], default="allreduce"
    )
    parser.add_argument("--sizes", default="8,64,1024,8192,65536,262144,1048576,4194304")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--root", type=Path, default=_ROOT / ".mpi", help="where wheels are")
    return parser.parse_args()


if __name__ == "__main__":
    main()
