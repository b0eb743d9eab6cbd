"""The ways to move data between GPUs against each other in one session, as the SC24 study did.

De Sensi et al., "Exploring GPU-to-GPU Communication" (SC24), compare staging through the host,
GPU-aware MPI, NCCL and device copies on three machines. This program measures the same with the
benchmark's backends, launches in turn, and prints per operation the medians over launches, and
for each of the study's observations whether it holds here. It draws latency and goodput.

A backend that can't do an operation, or fails in it, is left out with what it said.

    python benchmarks/mechanisms.py --bench build/commtune-bench --json FILE \\
        --mpirun "mpirun --bind-to none --mca pml ucx" --picture FILE.svg
    python benchmarks/mechanisms.py --from FILE --picture FILE.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gpu_launches as gl
from gpu_launches import Command, Json, Session
from mechanism_checks import LARGEST_SMALL, Times, checks, nominal_Bps

_BACKENDS = ("xccl", "mpi-device", "mpi-staged", "ipc-put", "ipc-get", "mpi-host")
_OPERATIONS = ("ping-pong", "bidirectional", "alltoall", "allreduce")
#: These have no reductions: they only copy.
_COPIES = ("ipc-put", "ipc-get")
_SIZES = (*gl.powers(8, 2**29, 4), 2**30)


def measure(options: argparse.Namespace) -> Json:
    """Launches all backends and operations in turn, until the time is over."""
    session = Session(options, "mechanisms")
    session.document["ranks"] = options.ranks
    names = options.backends.split(",")
    cases = [
        (operation, name)
        for operation in options.ops.split(",")
        for name in names
        if not (operation == "allreduce" and name in _COPIES)
    ]
    failed: set[tuple[str, str]] = set()
    for turn in range(options.launches):
        for operation, backend in cases if turn % 2 == 0 else reversed(cases):
            if (operation, backend) in failed:
                continue
            if not session.has_time_for(1):
                return session.document
            labels = {"operation": operation, "backend": backend, "turn": turn}
            launch = session.launch(_command(options, operation, backend), labels)
            gl.keep_records(session, launch)
            if launch["exit_code"] != 0:
                failed.add((operation, backend))
            session.save()
    return session.document


def _command(options: argparse.Namespace, operation: str, backend: str) -> Command:
    program = [str(options.bench), "--backend", backend, "--op", operation]
    program += ["--sizes", ",".join(str(size) for size in _SIZES if size <= options.last)]
    program += ["--min-samples", "6", "--time-cap", "0.03", "--records", "{records}"]
    return Command(program)


def times_of(document: Json) -> Times:
    """Medians over launches, seconds, by operation, backend and size."""
    samples: dict[str, dict[str, dict[int, list[float]]]] = {}
    for launch in gl.launches_of(document, exit_code=0):
        sizes = samples.setdefault(launch["operation"], {}).setdefault(launch["backend"], {})
        for m in launch["measurements"]:
            if m["status"] == "ok":
                sizes.setdefault(m["bytes"], []).append(m["time_s"]["median"])
    return {
        operation: {
            backend: {size: sorted(times)[len(times) // 2] for size, times in sizes.items()}
            for backend, sizes in backends.items()
        }
        for operation, backends in samples.items()
    }


def show(document: Json, nominal: float | None) -> None:
    """Prints times, what failed, and the check list."""
    times = times_of(document)
    print(f"{gl.machine_words(document)}, {document['ranks']} ranks")
    print(f"nominal between GPUs: {gl.shown(nominal and nominal / 1e9, '.0f')} GB/s, one way")
    for operation, backends in times.items():
        print(
            f"\n{operation}: us up to {gl.size_words(LARGEST_SMALL)}, GB/s (size / time) above\n"
        )
        sizes = sorted({size for found in backends.values() for size in found})
        rows = [
            [gl.size_words(size), *(_cell(size, found.get(size)) for found in backends.values())]
            for size in sizes
        ]
        print(gl.markdown(["size", *backends], rows))
    print()
    for launch in document["launches"]:
        if launch["exit_code"] != 0:
            said = " ".join(launch["output"].split())[:160] or "took too long"
            print(f"left out: {launch['backend']} {launch['operation']}: {said}")
    print()
    head = ["observation", "here", "why"]
    lines = [[c.statement, c.verdict, c.reason] for c in checks(times, nominal)]
    print(gl.markdown(head, lines, words=3))


def _cell(size: int, seconds: float | None) -> str:
    if seconds is None:
        return "-"
    small = size <= LARGEST_SMALL
    return f"{seconds * 1e6:.2f}" if small else f"{size / seconds / 1e9:.1f} GB/s"


def main() -> None:
    """Measures or reads, prints, and draws where a picture is asked for."""
    options = _options()
    document = gl.load(options.source) if options.source else measure(options)
    nominal = options.nominal * 1e9 if options.nominal else nominal_Bps(document)
    show(document, nominal)
    if options.picture:
        from mechanism_picture import draw

        draw(times_of(document), nominal, gl.machine_words(document), options.picture)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=235, launches=3)
    parser.add_argument("--backends", default=",".join(_BACKENDS), help="(%(default)s)")
    parser.add_argument(
        "--ops",
        default="ping-pong,alltoall,allreduce",
        help=f"of {', '.join(_OPERATIONS)} (%(default)s)",
    )
    parser.add_argument("--last", type=int, default=2**30, help="largest size (%(default)s)")
    parser.add_argument("--nominal", type=float, help="GB/s of a pair, where links aren't known")
    parser.add_argument("--picture", type=Path, help="SVG file")
    return gl.parse(parser, [])


if __name__ == "__main__":
    main()
