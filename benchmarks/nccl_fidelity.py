"""Compares the benchmark's xccl backend with nccl-tests, on the same NCCL and the same GPUs.

Launches of the two programs alternate, and so does which of them comes first. Both modes of
timing are compared, each aligned:

- batched: 20 operations are enqueued and waited for together (nccl-tests: its default). Both do
  5 such batches or more in a launch (nccl-tests: -N 5); a launch's time is their median.
- blocking: each of 20 operations is waited for; the barrier between them is not in the time
  (nccl-tests: -z 3). Both do 5 times 20, and a launch's time is the median of the 5 means, since
  nccl-tests tells only means; ours are of the longest rank's times, theirs the longest rank's.

In both, the longest rank counts (-a 3), operations rotate through the buffers (nccl-tests always
does; ours --rotate yes), are not in place, add float, and are waited for by asking the stream and
NCCL in turn (nccl-tests always does; ours --wait poll). Per size: medians over launches, their
ratio, and beside it the same ratio between a program's own launches of even and odd rounds (A/A).

    python benchmarks/nccl_fidelity.py --bench build/commtune-bench --nccl-tests DIR --json FILE
    python benchmarks/nccl_fidelity.py --from FILE
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from itertools import product
from pathlib import Path

import against
import gpu_launches as gl
from against import Bounds, Compared
from gpu_launches import Command, Json, Session

#: nccl-tests' program, and our operation.
_OPERATIONS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "alltoall",
    "sendrecv": "ring",
}
_BATCH, _BATCHES = 20, 5
_BOUNDS = Bounds(
    shares=((16 * 2**20, 0.03), (64 * 2**10, 0.05), (0, 0.10)), small=64 * 2**10, small_s=1e-6
)
#: A row of nccl-tests' table: size, and the time out of place (us).
_ROW = re.compile(r"^ +(\d+) +\d+ +\w+ +\w+ +-?\d+ +([\d.e+]+)", re.MULTILINE)
#: What nccl-tests says that it is.
_VERSION = re.compile(r"nccl-tests version .*")


def ours(options: argparse.Namespace, mode: str, test: str) -> Command:
    """commtune-bench as nccl-tests would do it."""
    sizes = gl.powers(options.first, options.last, options.factor)
    program = [str(options.bench), "--backend", "xccl", "--op", _OPERATIONS[test]]
    program += ["--sizes", ",".join(map(str, sizes)), "--rotate", "yes", "--relative-ci", "0"]
    program += ["--wait", "poll"]
    if mode == "batched":
        program += ["--timing", "batched", "--operations", str(_BATCH)]
        program += ["--min-samples", str(_BATCHES), "--max-samples", "10", "--time-cap", "0.03"]
    else:
        samples = str(_BATCH * _BATCHES)
        program += ["--min-samples", samples, "--max-samples", samples]
    return Command([*program, "--records", "{records}"])


def theirs(options: argparse.Namespace, mode: str, test: str) -> Command:
    """The program of nccl-tests."""
    program = [str(options.nccl_tests / f"{test}_perf"), "-b", str(options.first)]
    program += ["-e", str(options.last), "-f", str(options.factor), "-d", "float", "-a", "3"]
    program += ["-n", str(_BATCH), "-w", "5", "-N", str(_BATCHES)]
    return Command([*program, *(["-z", "3"] if mode == "blocking" else []), "-J", "{records}"])


def their_times(records: str, output: str) -> dict[str, float]:
    """Seconds per size, out of place, from nccl-tests' JSON, or its table where there is none.

    A size that was done several times counts with its median. Sizes are rounded down there to 16
    bytes for each rank; where nothing is left of one, it is left out.
    """
    try:
        rows = json.loads(records)["results"]
        pairs = [(int(row["size"]), float(row["out_of_place"]["time"])) for row in rows]
    except (ValueError, KeyError, TypeError):
        pairs = [(int(row[1]), float(row[2])) for row in _ROW.finditer(output)]
    sizes = dict.fromkeys(size for size, _ in pairs if size > 0)
    return {
        str(size): statistics.median(time_us for of, time_us in pairs if of == size) * 1e-6
        for size in sizes
    }


def measure(options: argparse.Namespace) -> Json:
    """Launches, round by round, until all is done or the time is over."""
    session = Session(options, "nccl_fidelity")
    session.document["ranks"] = options.ranks
    cases = [*product(["batched"], options.batched), *product(["blocking"], options.blocking)]
    for turn in range(options.launches):
        for mode, test in cases:
            if not session.has_time_for(2):
                return session.document
            pair = ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours")
            for side in pair:
                _launch(session, options, {"mode": mode, "test": test, "side": side, "turn": turn})
            session.save()
    return session.document


def _launch(session: Session, options: argparse.Namespace, labels: Json) -> None:
    command = ours if labels["side"] == "ours" else theirs
    launch = session.launch(command(options, labels["mode"], labels["test"]), labels)
    if labels["side"] == "ours":
        gl.keep_records(session, launch, chunk=_BATCH)
        return
    launch["times_s"] = their_times(launch.pop("records"), launch["output"])
    if launch["times_s"]:
        found = _VERSION.search(launch.pop("output"))
        launch["version"] = found[0] if found else ""


def _times(document: Json, mode: str, test: str, side: str) -> dict[int, list[tuple[int, float]]]:
    """Turn and seconds of each launch, per size."""
    found: dict[int, list[tuple[int, float]]] = {}
    for launch in gl.launches_of(document, mode=mode, test=test, side=side, exit_code=0):
        if side == "theirs":
            times = {int(size): seconds for size, seconds in launch["times_s"].items()}
        else:
            times = {m["bytes_total"]: _our_time(m, mode) for m in launch["measurements"]}
        for size, seconds in times.items():
            found.setdefault(size, []).append((launch["turn"], seconds))
    return found


def _our_time(measurement: Json, mode: str) -> float:
    """Seconds of a launch."""
    if mode == "blocking" and measurement["chunk_means_s"]:
        return float(statistics.median(measurement["chunk_means_s"]))
    return float(measurement["time_s"]["median"])


def compare(document: Json, mode: str, test: str) -> list[Compared]:
    """All sizes that both programs measured."""
    return against.compare(*(_times(document, mode, test, side) for side in ("ours", "theirs")))


def show(document: Json) -> None:
    """Prints a table for each mode and operation, and how much is within the bounds."""
    print(f"{gl.machine_words(document)}, {document['ranks']} ranks")
    cases = dict.fromkeys((launch["mode"], launch["test"]) for launch in document["launches"])
    total: list[Compared] = []
    head = ["size", "ours us", "nccl-tests us", *against.HEAD]
    for mode, test in cases:
        rows = compare(document, mode, test)
        print(f"\n{mode}: {_OPERATIONS[test]} against {test}_perf\n")
        print(gl.markdown(head, [row.cells(_BOUNDS) for row in rows]))
        total += rows
    against.end(document, total, _BOUNDS)


def main() -> None:
    """Measures or reads, then prints."""
    options = _options()
    show(gl.load(options.source) if options.source else measure(options))


def _tests(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in _OPERATIONS:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(_OPERATIONS)}")
    return names


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=235, launches=5)
    parser.add_argument("--nccl-tests", type=Path, help="folder of all_reduce_perf and the others")
    parser.add_argument("--batched", type=_tests, default=[*_OPERATIONS], help="tests, or ''")
    parser.add_argument("--blocking", type=_tests, default=["all_reduce", "sendrecv"])
    parser.add_argument("--first", type=int, default=8, help="bytes (%(default)s)")
    parser.add_argument("--last", type=int, default=2**30, help="bytes (%(default)s)")
    parser.add_argument("--factor", type=int, default=8, help="between sizes (%(default)s)")
    return gl.parse(parser, ["nccl_tests"])


if __name__ == "__main__":
    main()
