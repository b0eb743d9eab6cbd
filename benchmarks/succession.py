"""Whether an operation can be measured after another one in the same processes.

A launch costs its start-up whatever it measures: two operations one after the other in a process
(--then) cost one. That serves only if the second's times are those of a launch of its own. So for
each pair (first, second) three launches alternate, and so does which of them comes first:

- alone: the second operation by itself;
- after: the first one, then the second in the same processes;
- again: the second by itself once more, so that what chance does is seen beside it (A/A).

Per size: the median over launches of the second's medians, after / alone, beside it
again / alone, and whether all three are within 3 % from 16 MiB, 5 % from 64 KiB, 10 % or 0.05 us
(with --backend other than mpi-host: 1 us) below. Then what it saves: the wall time of a launch of
both over that of two launches.

    python benchmarks/succession.py --bench build/commtune-bench --json FILE --mpirun mpiexec
    python benchmarks/succession.py --from FILE
"""

from __future__ import annotations

import argparse
from itertools import product

import against
import gpu_launches as gl
from against import Bounds, Compared
from gpu_launches import Command, Json, Session

_SIDES = ("alone", "after", "again")
_SHARES = ((16 * 2**20, 0.03), (64 * 2**10, 0.05), (0, 0.10))
_HOST = "mpi-host"
_HEAD = ("size", "alone us", "after us", "after/alone", "again/alone", "n", "within")


def program(options: argparse.Namespace, *operations: str) -> Command:
    """commtune-bench with these operations in one process."""
    first, *then = operations
    sizes = ",".join(map(str, options.sizes))
    words = [str(options.bench), "--op", first, "--sizes", sizes, "--backend", options.backend]
    words += ["--then", ",".join(then)] if then else []
    return Command([*words, "--records", "{records}"])


def measure(options: argparse.Namespace) -> Json:
    """Launches, round by round, until all is done or the time is over."""
    session = Session(options, "succession")
    session.document |= {"ranks": options.ranks, "backend": options.backend}
    for turn, (first, second) in product(range(options.launches), options.pairs):
        if not session.has_time_for(len(_SIDES)):
            break
        begin = turn % len(_SIDES)
        for side in _SIDES[begin:] + _SIDES[:begin]:
            operations = (first, second) if side == "after" else (second,)
            labels = {"first": first, "second": second, "side": side, "turn": turn}
            launch = session.launch(program(options, *operations), labels)
            gl.keep_records(session, launch)
        session.save()
    return session.document


def _times(document: Json, pair: tuple[str, str], side: str) -> dict[int, list[tuple[int, float]]]:
    """Turn and seconds of each launch's second operation, per size."""
    wanted = pair[1] if side == "after" else None

    def times_of(launch: Json) -> dict[int, float]:
        made = [m for m in launch["measurements"] if m.get("operation") == wanted]
        return {m["bytes"]: m["time_s"]["median"] for m in made}

    launches = gl.launches_of(document, first=pair[0], second=pair[1], side=side, exit_code=0)
    return gl.times_by_size(launches, times_of)


def _wall_s(document: Json, **labels: str) -> float | None:
    launches = gl.launches_of(document, **labels, exit_code=0)
    return gl.median([launch["wall_s"] for launch in launches])


def _cells(after: Compared, again: Compared, bounds: Bounds) -> list[str]:
    is_within = after.within(bounds) and again.within(bounds)
    return [
        gl.size_words(after.bytes),
        f"{after.theirs_s * 1e6:.2f}",
        f"{after.ours_s * 1e6:.2f}",
        f"{after.ratio:.3f}",
        f"{again.ratio:.3f}",
        str(after.launches),
        "yes" if is_within else "no" if again.within(bounds) else "A/A no",
    ]


def show(document: Json) -> None:
    """Prints a table for each pair of operations, and what a launch of both saves."""
    small_s = 0.05e-6 if document["backend"] == _HOST else 1e-6
    bounds = Bounds(shares=_SHARES, small=64 * 2**10, small_s=small_s)
    print(f"{gl.machine_words(document)}, {document['ranks']} ranks, {document['backend']}")
    total: list[tuple[Compared, Compared]] = []
    pairs = dict.fromkeys((one["first"], one["second"]) for one in document["launches"])
    for pair in pairs:
        alone, after, again = (_times(document, pair, side) for side in _SIDES)
        rows = list(zip(against.compare(after, alone), against.compare(again, alone), strict=True))
        print(f"\n{pair[1]} after {pair[0]}\n")
        print(gl.markdown(_HEAD, [_cells(*row, bounds) for row in rows]))
        _show_saved(document, pair)
        total += rows
    for name, place in (("after", 0), ("again", 1)):
        count = sum(row[place].within(bounds) for row in total)
        print(f"\n{name} / alone within the bounds: {count} of {len(total)}")
    failed = [launch for launch in document["launches"] if launch["exit_code"] != 0]
    if failed:
        first = failed[0]
        print(f"failed: {len(failed)} launches; the first, {first['command']}:")
        print(first["output"].strip()[-300:])


def _show_saved(document: Json, pair: tuple[str, str]) -> None:
    """Both in one launch against two launches; the first's own are those of another pair."""
    first, second = pair
    both_s = _wall_s(document, first=first, second=second, side="after")
    second_s = _wall_s(document, second=second, side="alone")
    first_s = _wall_s(document, second=first, side="alone")
    if both_s and second_s and first_s:
        apart_s = first_s + second_s
        print(
            f"\na launch of both takes {both_s:.2f} s, one of each {apart_s:.2f} s together: "
            f"{both_s / apart_s:.2f}"
        )


def main() -> None:
    """Measures or reads, then prints."""
    options = _options()
    show(gl.load(options.source) if options.source else measure(options))


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for word in filter(None, text.split(",")):
        first, found, second = word.partition(":")
        if not found:
            raise argparse.ArgumentTypeError(f"{word} is not FIRST:SECOND")
        pairs.append((first, second))
    return pairs


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=300, launches=9)
    parser.add_argument("--backend", default=_HOST)
    parser.add_argument(
        "--pairs",
        type=_pairs,
        default=_pairs("allreduce:alltoall,alltoall:allreduce"),
        help="FIRST:SECOND, with commas (allreduce:alltoall and the other way round)",
    )
    parser.add_argument("--first", type=int, default=8, help="bytes (%(default)s)")
    parser.add_argument("--last", type=int, default=2**24, help="bytes (%(default)s)")
    parser.add_argument("--factor", type=int, default=8, help="power of two (%(default)s)")
    options = gl.parse(parser, [])
    options.sizes = gl.powers(options.first, options.last, options.factor)
    return options


if __name__ == "__main__":
    main()
