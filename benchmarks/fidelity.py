"""Compares the benchmark on host memory with IMB-MPI1 and OSU's micro-benchmarks, on the same MPI.

Launches of the three programs alternate, and so does which of them comes first. Timing is aligned:

- collectives: each operation is timed by itself, between barriers (ours: --operations 1). A
  launch's time is the mean: of the longest rank's times for ours, of each rank's times and then
  the longest of these for IMB and OSU (their column of maxima), which tell no other.
- ping-pong: rounds follow each other without a barrier in all three; a launch's time is the mean.

All do as many iterations, on floats where the operation adds, ours and OSU's after as many that
warm up (IMB's number can't be set). A size is what ours calls bytes;
IMB and OSU count the block for one rank in allgather and alltoall. Per size: medians over
launches, their ratio, and beside it the same ratio between a program's own launches of even and
odd rounds (A/A).

IMB-MPI1 comes with the wheel of Intel MPI and runs on MPICH by the ABI that the two share; OSU's
have to be built with the mpicc of that MPICH (./configure CC=mpicc && make).

    commtune mpi install mpich --root .mpi && commtune mpi install impi --root .mpi
    export LD_LIBRARY_PATH=$PWD/.mpi/mpich-5.0.2/lib
    python benchmarks/fidelity.py --mpirun .mpi/mpich-5.0.2/bin/mpiexec --bench BENCH \\
        --imb .mpi/impi-2021.18.1/bin/IMB-MPI1 --osu osu-micro-benchmarks/c/mpi --json FILE
    python benchmarks/fidelity.py --from FILE
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import against
import gpu_launches as gl
from against import Bounds, Compared
from gpu_launches import Command, Json, Session


@dataclass(frozen=True)
class Operation:
    """One operation under the names of the others.

    Attributes:
        imb: what IMB calls it.
        osu: OSU's program, below its folder ``c/mpi``.
        blocks: whether the others' sizes are of the block for one rank.
        adds: whether it adds numbers.
    """

    imb: str
    osu: str
    blocks: bool = False
    adds: bool = False


_COLLECTIVE, _POINT = "collective/blocking/osu_", "pt2pt/standard/osu_"
_OPERATIONS = {
    "ping-pong": Operation("PingPong", f"{_POINT}latency"),
    "allreduce": Operation("Allreduce", f"{_COLLECTIVE}allreduce", adds=True),
    "broadcast": Operation("Bcast", f"{_COLLECTIVE}bcast"),
    "allgather": Operation("Allgather", f"{_COLLECTIVE}allgather", blocks=True),
    "alltoall": Operation("Alltoall", f"{_COLLECTIVE}alltoall", blocks=True),
    "reduce": Operation("Reduce", f"{_COLLECTIVE}reduce", adds=True),
}
_SIDES = ("ours", "imb", "osu")
_NAMES = {"imb": "IMB", "osu": "OSU"}
_BOUNDS = Bounds(
    shares=((16 * 2**20, 0.03), (64 * 2**10, 0.05), (0, 0.10)), small=64 * 2**10, small_s=0.05e-6
)
#: IMB: bytes, repetitions, then the time of PingPong, or the least and the longest rank's.
_IMB_ROW = re.compile(r"^ +(\d+) +\d+ +([\d.]+) +([\d.]+)", re.MULTILINE)
#: OSU: bytes and the mean; with -f the least and the longest rank's as well.
_OSU_ROW = re.compile(r"^(\d+) +([\d.]+)(?: +[\d.]+ +([\d.]+))?", re.MULTILINE)


def ours(options: argparse.Namespace, name: str) -> Command:
    """commtune-bench as the others do it."""
    program = [str(options.bench), "--op", name, "--sizes", ",".join(map(str, options.sizes))]
    program += ["--min-samples", str(options.iterations), "--max-samples", str(options.iterations)]
    program += ["--relative-ci", "0", "--time-cap", "20", "--warmup", str(options.warmup)]
    if name != "ping-pong":
        program += ["--operations", "1"]
    return Command([*program, "--records", "{records}"])


def imb(options: argparse.Namespace, name: str) -> Command:
    """IMB-MPI1, with all powers of two between the first and the last size."""
    first, last = _their_sizes(options, name)
    program = [str(options.imb), _OPERATIONS[name].imb, "-mem", "1"]
    program += ["-msglog", f"{first.bit_length() - 1}:{last.bit_length() - 1}"]
    return Command([*program, "-iter", str(options.iterations), "-iter_policy", "off"])


def osu(options: argparse.Namespace, name: str) -> Command:
    """OSU's program, with the same sizes."""
    first, last = _their_sizes(options, name)
    operation = _OPERATIONS[name]
    program = [str(options.osu / operation.osu), "-m", f"{first}:{last}"]
    program += ["-i", str(options.iterations), "-x", str(options.warmup)]
    program += ["-f"] if name != "ping-pong" else []
    return Command([*program, *(["-T", "mpi_float"] if operation.adds else [])])


def _their_sizes(options: argparse.Namespace, name: str) -> tuple[int, int]:
    """The first and the last size as they count."""
    divisor = options.ranks if _OPERATIONS[name].blocks else 1
    return max(1, options.sizes[0] // divisor), max(1, options.sizes[-1] // divisor)


def their_times(side: str, name: str, ranks: int, output: str) -> dict[str, float]:
    """Seconds per size, as ours counts sizes."""
    factor = ranks if _OPERATIONS[name].blocks else 1
    row = _IMB_ROW if side == "imb" else _OSU_ROW
    column = 2 if name == "ping-pong" else 3
    return {
        str(int(found[1]) * factor): float(found[column]) * 1e-6 for found in row.finditer(output)
    }


def measure(options: argparse.Namespace) -> Json:
    """Launches, round by round, until all is done or the time is over."""
    session = Session(options, "fidelity")
    session.document |= {"ranks": options.ranks, "iterations": options.iterations}
    session.document |= {"warmup": options.warmup}
    for turn, name in product(range(options.launches), options.operations):
        if not session.has_time_for(len(_SIDES)):
            break
        first = turn % len(_SIDES)
        for side in _SIDES[first:] + _SIDES[:first]:
            _launch(session, options, {"test": name, "side": side, "turn": turn})
        session.save()
    return session.document


def _launch(session: Session, options: argparse.Namespace, labels: Json) -> None:
    name, side = labels["test"], labels["side"]
    if side == "ours":
        launch = session.launch(ours(options, name), labels)
        gl.keep_records(session, launch)
        return
    command = osu(options, name) if side == "osu" else imb(options, name)
    launch = session.launch(command, labels)
    launch["times_s"] = their_times(side, name, options.ranks, launch["output"])
    if launch["times_s"] and launch["exit_code"] == 0:
        del launch["output"], launch["records"]


def _times(document: Json, name: str, side: str) -> dict[int, list[tuple[int, float]]]:
    def times_of(launch: Json) -> dict[int, float]:
        if side == "ours":
            return {m["bytes"]: m["time_s"]["mean"] for m in launch["measurements"]}
        return {int(size): seconds for size, seconds in launch["times_s"].items()}

    launches = gl.launches_of(document, test=name, side=side, exit_code=0)
    return gl.times_by_size(launches, times_of)


def show(document: Json) -> None:
    """Prints a table for each operation and program, and how much is within the bounds."""
    print(
        f"{gl.machine_words(document)}, {document['ranks']} ranks, "
        f"{document['iterations']} iterations after {document['warmup']}"
    )
    total: list[Compared] = []
    names = dict.fromkeys(launch["test"] for launch in document["launches"])
    for name, side in product(names, ("imb", "osu")):
        rows = against.compare(_times(document, name, "ours"), _times(document, name, side))
        print(f"\n{name} against {_NAMES[side]}\n")
        head = ["size", "ours us", f"{_NAMES[side]} us", *against.HEAD]
        print(gl.markdown(head, [row.cells(_BOUNDS) for row in rows]))
        total += rows
    against.end(document, total, _BOUNDS)


def main() -> None:
    """Measures or reads, then prints."""
    options = _options()
    show(gl.load(options.source) if options.source else measure(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=600, launches=10)
    parser.add_argument("--imb", type=Path, help="the executable IMB-MPI1")
    parser.add_argument("--osu", type=Path, help="OSU's folder c/mpi, built")
    parser.add_argument(
        "--operations", type=partial(gl.names_of, _OPERATIONS), default=[*_OPERATIONS]
    )
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--warmup", type=int, default=100, help="iterations before these")
    parser.add_argument("--first", type=int, default=8, help="bytes (%(default)s)")
    parser.add_argument("--last", type=int, default=2**24, help="bytes (%(default)s)")
    parser.add_argument("--factor", type=int, default=8, help="power of two (%(default)s)")
    options = gl.parse(parser, ["imb", "osu"])
    options.sizes = gl.powers(options.first, options.last, options.factor)
    return options


if __name__ == "__main__":
    main()
