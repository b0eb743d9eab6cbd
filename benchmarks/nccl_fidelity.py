"""Compares the benchmark's xccl backend with nccl-tests, on the same NCCL and the same GPUs.

Launches of the two programs alternate, and so does which of them comes first. Three timing modes
are compared, each aligned:

- batched: 200 operations are enqueued and waited for together (nccl-tests: its default, but for
  -n 200);
- blocking: 200 operations in turn, each waited for, without a barrier between them (nccl-tests:
  -z 2 -n 200; ours --timing blocking --operations 200);
- graph: 400 operations, recorded as one graph, which is launched and waited for (nccl-tests:
  -G 10 -n 400; ours --graph yes --operations 400).

So many, since what comes before a batch differs: nccl-tests fills its buffers anew, and records
its graph anew, which the first operation or launch after it pays for; ours goes on. Large sizes
take long enough for 20 operations to do, and are not recorded as graphs.

Sizes are done in two launches, small ones and large ones, with more batches for the small ones
(nccl-tests: -N). A launch's time is the mean of its batches, without a tenth of them at either
end, at least one: an interruption of a millisecond is half of a batch, and at small sizes batches
have two speeds, by what the cores that launch them do at the time, and a median would be one or
the other (docs/gpu.md).

In all, the longest rank counts (-a 3), operations rotate through the buffers (nccl-tests always
does; ours --rotate yes), are not in place, add float, and are waited for by asking the stream and
NCCL in turn (nccl-tests always does; ours --wait poll). Buffers are allocated by NCCL, which
registers them for graphs (nccl-tests always does; ours --allocator library). Per size: medians
over launches, their ratio, and beside it the same ratio between a program's own launches of even
and odd rounds (A/A).

    python benchmarks/nccl_fidelity.py --bench build/commtune-bench --nccl-tests DIR --json FILE
    python benchmarks/nccl_fidelity.py --from FILE [--beside FILE...]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True)
class Way:
    """A timing mode.

    Attributes:
        operations: in a batch, at small sizes and at large ones.
        ours, theirs: what asks for it.
        batches: in a launch of nccl-tests, likewise; ours does as many or more.
        seconds: ours samples so long at a small size.
    """

    operations: tuple[int, int]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    batches: tuple[int, int] = (20, 5)
    seconds: float = 0.2


_WAYS = {
    "batched": Way((200, 20), ("--timing", "batched"), ()),
    "blocking": Way((200, 20), ("--timing", "blocking"), ("-z", "2")),
    "graph": Way((400, 400), ("--timing", "batched", "--graph", "yes"), ("-G", "10"), (3, 3), 0.1),
}
#: The share of batches that is left out at either end, at least one of three or more.
_TRIMMED = 0.1
#: Of so many batches each one is stored.
_FEW = 100
_BOUNDS = Bounds(
    shares=((16 * 2**20, 0.03), (64 * 2**10, 0.05), (0, 0.10)), small=64 * 2**10, small_s=1e-6
)
#: Sizes from here on are large.
_LARGE = 16 * 2**20
#: A row of nccl-tests' table: size, and the time out of place (us).
_ROW = re.compile(r"^ +(\d+) +\d+ +\w+ +\w+ +-?\d+ +([\d.e+]+)", re.MULTILINE)
#: What nccl-tests says that it is.
_VERSION = re.compile(r"nccl-tests version .*")


def _sizes(options: argparse.Namespace, part: str) -> tuple[int, ...]:
    sizes = gl.powers(options.first, options.last, options.factor)
    return tuple(size for size in sizes if (size < _LARGE) == (part == "small"))


def ours(options: argparse.Namespace, labels: Json) -> Command:
    """commtune-bench as nccl-tests would do it."""
    way, part = _WAYS[labels["mode"]], labels["part"]
    program = [str(options.bench), "--backend", "xccl", "--op", _OPERATIONS[labels["test"]]]
    program += ["--sizes", ",".join(map(str, _sizes(options, part))), "--rotate", "yes"]
    is_large = part == "large"
    program += ["--wait", "poll", "--allocator", "library", *way.ours]
    program += ["--operations", str(way.operations[is_large])]
    fewest = way.batches[is_large]
    most, cap = (2 * fewest, 0.03) if is_large else (2000, way.seconds)
    program += ["--min-samples", str(fewest), "--max-samples", str(most), "--time-cap", str(cap)]
    program += ["--relative-ci", "0", "--end", "quick"]
    return Command([*program, "--records", "{records}"])


def theirs(options: argparse.Namespace, labels: Json) -> Command:
    """The program of nccl-tests."""
    way, sizes = _WAYS[labels["mode"]], _sizes(options, labels["part"])
    program = [str(options.nccl_tests / f"{labels['test']}_perf"), "-b", str(sizes[0])]
    program += ["-e", str(sizes[-1]), "-f", str(options.factor), "-d", "float", "-a", "3"]
    is_large = labels["part"] == "large"
    program += ["-n", str(way.operations[is_large]), "-w", "5", *way.theirs]
    return Command([*program, "-N", str(way.batches[is_large]), "-J", "{records}"])


def mean(values: Sequence[float]) -> float:
    """Without the tenth at either end, at least one where that leaves something."""
    inner = sorted(values)
    cut = max(int(len(inner) * _TRIMMED), int(len(inner) > 2))
    return statistics.fmean(inner[cut : len(inner) - cut])


def their_times(records: str, output: str) -> dict[str, list[float]]:
    """Seconds per size, of each batch, out of place.

    They are taken from nccl-tests' JSON, or its table where there is none. Sizes are rounded down
    there to 16 bytes for each rank; where nothing is left of one, it is left out.
    """
    try:
        rows = json.loads(records)["results"]
        pairs = [(int(row["size"]), float(row["out_of_place"]["time"])) for row in rows]
    except (ValueError, KeyError, TypeError):
        pairs = [(int(row[1]), float(row[2])) for row in _ROW.finditer(output)]
    times: dict[str, list[float]] = {}
    for size, time_us in pairs:
        if size > 0:
            times.setdefault(str(size), []).append(time_us * 1e-6)
    return times


def measure(options: argparse.Namespace) -> Json:
    """Launches, round by round, until all is done or the time is over."""
    session = Session(options, "nccl_fidelity")
    session.document["ranks"] = options.ranks
    cases = [
        (mode, test, part)
        for mode in _WAYS
        for test in getattr(options, mode)
        for part in ("small", "large")
        if _sizes(options, part) and (mode, part) != ("graph", "large")
    ]
    for turn in range(options.launches):
        for mode, test, part in cases:
            if not session.has_time_for(2):
                return session.document
            for side in ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours"):
                labels = {"mode": mode, "test": test, "part": part, "side": side, "turn": turn}
                _launch(session, options, labels)
            session.save()
    return session.document


def _launch(session: Session, options: argparse.Namespace, labels: Json) -> None:
    if labels["side"] == "ours":
        launch = session.launch(ours(options, labels), labels)
        gl.keep_records(session, launch, chunk=1)
        for measurement in launch["measurements"]:
            if samples := measurement.pop("chunk_means_s"):
                measurement["mean_s"] = mean(samples)
            if 0 < len(samples) <= _FEW:
                measurement["batches_s"] = samples
        return
    launch = session.launch(theirs(options, labels), labels)
    launch["times_s"] = their_times(launch.pop("records"), launch["output"])
    if launch["times_s"]:
        found = _VERSION.search(launch.pop("output"))
        launch["version"] = found[0] if found else ""


def _times(document: Json, mode: str, test: str, side: str) -> dict[int, list[tuple[int, float]]]:
    def times_of(launch: Json) -> dict[int, float]:
        if side == "theirs":
            return {int(size): mean(batches) for size, batches in launch["times_s"].items()}
        done = [each for each in launch["measurements"] if "mean_s" in each]
        return {each["bytes_total"]: each["mean_s"] for each in done}

    launches = gl.launches_of(document, mode=mode, test=test, side=side, exit_code=0)
    return gl.times_by_size(launches, times_of)


def compare(document: Json, mode: str, test: str) -> list[Compared]:
    """All sizes that both programs measured."""
    return against.compare(*(_times(document, mode, test, side) for side in ("ours", "theirs")))


def joined(documents: Sequence[Json]) -> Json:
    """The rounds of several sessions, each on its machine, as one: the first one's facts stand."""
    launches: list[Json] = []
    for document in documents:
        first = 1 + max((launch["turn"] for launch in launches), default=-1)
        launches += [launch | {"turn": first + launch["turn"]} for launch in document["launches"]]
    return documents[0] | {"launches": launches}


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
    document = gl.load(options.source) if options.source else measure(options)
    show(joined([document, *map(gl.load, options.beside)]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=235, launches=5)
    parser.add_argument("--nccl-tests", type=Path, help="folder of all_reduce_perf and the others")
    for mode in _WAYS:
        default = [*_OPERATIONS]
        parser.add_argument(
            f"--{mode}",
            type=partial(gl.names_of, _OPERATIONS),
            default=default,
            help="tests, or ''",
        )
    parser.add_argument("--first", type=int, default=8, help="bytes (%(default)s)")
    parser.add_argument("--last", type=int, default=2**30, help="bytes (%(default)s)")
    parser.add_argument("--factor", type=int, default=8, help="between sizes (%(default)s)")
    parser.add_argument(
        "--beside", type=Path, nargs="+", default=[], help="count the rounds of these files too"
    )
    return gl.parse(parser, ["nccl_tests"])


if __name__ == "__main__":
    main()
