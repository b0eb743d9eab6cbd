"""Does every operation run on every backend, with right data? Launches them all and says so.

Nothing is compared in speed: several backends may be tried at the same time. Of an operation that
a backend doesn't have, the refusal is what is expected (exit status 2).

    python benchmarks/operations.py --bench build/commtune-bench --ranks 4 --json FILE \\
        --backends xccl,ipc-put --mpirun "mpirun --bind-to none"
    python benchmarks/operations.py --from FILE
"""

from __future__ import annotations

import argparse
import shlex

import gpu_launches as gl
from gpu_launches import Command, Json, Session

_BACKENDS = ("xccl", "mpi-device", "mpi-staged", "ipc-put", "ipc-get")
_EVERYWHERE = (
    "ping-pong",
    "bidirectional",
    "stream",
    "alltoall",
    "ring",
    "incast",
    "one-to-many",
    "self",
    "pairs",
    "allreduce",
    "reduce",
    "broadcast",
    "allgather",
    "reduce-scatter",
)
#: Of groups, as nodes of half of the ranks would be.
_OF_GROUPS = tuple(
    f"{pattern} --direction {way}"
    for pattern in ("rail", "asymmetric", "symmetric")
    for way in ("outbound", "bidirectional", "omnidirectional")
)
_BOTH = ("matrix --matrix {matrix} {both}", "striping {both}")
_XCCL_ALONE = (
    "allreduce --dtype float64",
    "allreduce --dtype int32",
    "allreduce --dtype uint8",
    "allreduce --reduction max",
    "allreduce --timing batched",
    "allreduce --timing batched --timer device",
    "allreduce --timing batched --graph yes",
    "alltoall --timing batched --graph yes",
    "allreduce --wait poll",
    "allreduce --rotate yes",
    "allreduce --allocator library",
    "ring --allocator library --timing batched --graph yes",
    "allreduce --bind gpu",
    "ping-pong --timer device",
)
_REFUSED = 2
_SIZES = (8, 1000, 2**16, 2**22)


def cases(options: argparse.Namespace, backend: str) -> list[str]:
    """Arguments after ``--op``."""
    group = max(1, options.ranks // 2)
    of_groups = [f"{case} --group-size {group} --active {group}" for case in _OF_GROUPS]
    matrix = options.json.with_suffix(".matrix")
    ranks = range(options.ranks)
    rows = [f"{i} {j} {1000 * (1 + (i + 2 * j) % 5)}" for i in ranks for j in ranks if i != j]
    matrix.parent.mkdir(parents=True, exist_ok=True)
    matrix.write_text("\n".join(rows) + "\n")
    steps = ["", *(["--inside ipc-put --between xccl"] if backend == "xccl" else [])]
    of_both = [case.format(matrix=matrix, both=step).strip() for case in _BOTH for step in steps]
    of_both = [f"{case} --group-size {group}" if "striping" in case else case for case in of_both]
    alone = [*_XCCL_ALONE, "stream --window 8"] if backend == "xccl" else ["ring --dtype float64"]
    return [*_EVERYWHERE, *of_groups, *of_both, *alone]


def measure(options: argparse.Namespace) -> Json:
    """Launches all, until the time is over."""
    session = Session(options, "operations")
    session.document["ranks"] = options.ranks
    part, of = options.part
    for backend in options.backends.split(","):
        for case in cases(options, backend)[part - 1 :: of]:
            if not session.has_time_for(1):
                return session.document
            program = [str(options.bench), "--backend", backend, "--op", *shlex.split(case)]
            program += ["--sizes", ",".join(map(str, _SIZES)), "--max-samples", "10"]
            program += ["--time-cap", "0.01", "--end", "quick" if backend == "xccl" else "clean"]
            command = Command([*program, "--records", "{records}"])
            labels = {"backend": backend, "case": case.replace(str(options.json.parent) + "/", "")}
            launch = session.launch(command, labels)
            gl.keep_records(session, launch)
            shorten(launch)
            session.save()
    return session.document


def shorten(launch: Json) -> None:
    """Leaves out how long it all took."""
    launch["measurements"] = [
        {
            name: each[name]
            for name in ("bytes", "part", "wrong", "checked", "status")
            if name in each
        }
        for each in launch["measurements"]
    ]
    launch["footer"] = None


def state_of(launch: Json) -> tuple[str, int, int]:
    """What is to be said of a launch; elements that were wrong, and that were compared."""
    wrong, checked = (
        sum(m.get(name) or 0 for m in launch["measurements"]) for name in ("wrong", "checked")
    )
    if launch["exit_code"] == _REFUSED and not launch["measurements"]:
        return "refused", wrong, checked
    done = len({m["bytes"] for m in launch["measurements"]})
    if launch["exit_code"] != 0 or done < len(_SIZES):
        return f"exit {launch['exit_code']}", wrong, checked
    return ("wrong" if wrong else "right" if checked else "unchecked"), wrong, checked


def show(document: Json) -> None:
    """Prints a line for each, and how many went well."""
    print(f"{gl.machine_words(document)}, {document['ranks']} ranks\n")
    rows = []
    for launch in document["launches"]:
        state, wrong, checked = state_of(launch)
        rows.append([launch["backend"], launch["case"], state, f"{wrong:,}", f"{checked:,}"])
    print(gl.markdown(["backend", "operation", "state", "wrong", "checked"], rows, words=3))
    counts = {state: sum(row[2] == state for row in rows) for state in {row[2] for row in rows}}
    print("\n" + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))


def main() -> None:
    """Measures or reads, then prints."""
    options = _options()
    show(gl.load(options.source) if options.source else measure(options))


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text} is not NUMBER/OF, as 2/3")
    return int(number), int(of)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=235, launches=1)
    parser.add_argument("--backends", default=",".join(_BACKENDS), help="(%(default)s)")
    parser.add_argument("--part", type=_part, default=(1, 1), help="2/3: the second third of them")
    return gl.parse(parser, [])


if __name__ == "__main__":
    main()
