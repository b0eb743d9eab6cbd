"""What a trial on GPUs costs, part by part, against the shortest one can do: nccl-tests.

A trial is one launch of commtune-bench, backend xccl, allreduce at the 12 sizes that
``all_reduce_perf -b 8 -e 64M -f 4`` has, with the default time caps. It is launched in variants
(transport of MPI, binding, variables, fewer sizes), in turn with nccl-tests. Per variant the
medians over launches are printed, in seconds:

- wall: from the start of mpirun to its end
- launch: until main() of the ranks, as what is left of the wall time
- GPU (driver, runtime and a context; as part of the rest in results that don't tell), MPI_Init,
  asking (what the records say of the GPUs; likewise), library (the communicator of NCCL), first
  calls of all sizes, measuring (warm-up, samples, checks), and the rest of the ranks' time
  (buffers, data)
- end: from the last record to the end of mpirun

    python benchmarks/trial_cost.py --bench build/commtune-bench --nccl-tests DIR --json FILE \\
        --mpirun "mpirun --allow-run-as-root"
    python benchmarks/trial_cost.py --from FILE

A variant more: --variant "NAME|arguments of mpirun|A=B C=D|arguments of commtune-bench".
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import gpu_launches as gl
from gpu_launches import Command, Json, Session

_SIZES = gl.powers(8, 2**26, 4)
_FEW = (8, 2**15, 2**18, 2**22, 2**25)
_UCX = ("--mca", "pml", "ucx")
_VADER = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")
_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp")
_FREE = ("--bind-to", "none")
#: What the others are held against: a launch of nccl-tests as it comes.
_FLOOR = "nccl-tests"
_PARTS = (
    "wall", "launch", "GPU", "MPI_Init", "asking", "library", "first calls", "measuring", "rest",
    "end",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """A way to launch.

    Attributes:
        is_ours: commtune-bench, or all_reduce_perf.
        extra: arguments of the program.
    """

    mpirun: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    extra: Sequence[str] = ()
    sizes: Sequence[int] = _SIZES
    is_ours: bool = True


def _variants() -> dict[str, Variant]:
    free = (*_VADER, *_FREE)
    return {
        _FLOOR: Variant(free, is_ours=False),
        "nccl-tests ucx": Variant((*_UCX, *_FREE), is_ours=False),
        "ob1 vader": Variant(free),
        "bound by default": Variant(_VADER),
        "ob1 tcp": Variant((*_TCP, *_FREE)),
        "ucx": Variant((*_UCX, *_FREE)),
        "modules eager": Variant(free, {"CUDA_MODULE_LOADING": "EAGER"}),
        "no RAS": Variant(free, {"NCCL_RAS_ENABLE": "0"}),
        "no check": Variant(free, extra=("--check", "none")),
        "5 sizes": Variant(free, sizes=_FEW),
        "5 sizes, no RAS": Variant(free, {"NCCL_RAS_ENABLE": "0"}, sizes=_FEW),
    }


def _more(text: str) -> tuple[str, Variant]:
    """A variant from the command line."""
    parts = text.split("|")
    if len(parts) != 4:
        raise argparse.ArgumentTypeError("four parts are needed: NAME|MPIRUN|A=B|ARGUMENTS")
    name, mpirun, variables, extra = parts
    pairs = (word.partition("=") for word in variables.split())
    environment = {variable: value for variable, _, value in pairs}
    return name, Variant(shlex.split(mpirun), environment, shlex.split(extra))


def command(options: argparse.Namespace, variant: Variant) -> Command:
    """The launch of a variant."""
    if variant.is_ours:
        program = [str(options.bench), "--backend", options.backend, "--op", "allreduce"]
        program += ["--sizes", ",".join(map(str, variant.sizes)), "--records", "{records}"]
    else:
        program = [str(options.nccl_tests / "all_reduce_perf"), "-b", "8", "-e", "64M", "-f", "4"]
    return Command([*program, *variant.extra], variant.mpirun, variant.environment)


def measure(options: argparse.Namespace) -> Json:
    """Launches all variants in turn, every other time in reverse, until the time is over."""
    session = Session(options, "trial_cost")
    session.document["ranks"] = options.ranks
    variants = _variants() | dict(options.variant)
    names = options.only.split(",") if options.only else list(variants)
    for turn in range(options.launches):
        for name in names if turn % 2 == 0 else reversed(names):
            if not session.has_time_for(1):
                return session.document
            variant = variants[name]
            launch = session.launch(command(options, variant), {"variant": name, "turn": turn})
            if variant.is_ours:
                gl.keep_records(session, launch)
            else:
                launch.pop("records")
            session.save()
    return session.document


def parts(launch: Json) -> dict[str, float]:
    """Seconds of a launch; of nccl-tests only the wall time is known."""
    found = {"wall": launch["wall_s"]}
    footer = launch.get("footer")
    if not footer or launch["after_s"] is None:
        return found
    measurements = launch["measurements"]
    first = sum(m["first_call_s"] for m in measurements)
    sizes = sum(m["elapsed_s"] for m in measurements)
    library = launch["library_init_s"] or 0.0
    gpu, asking = launch.get("gpu_start_s"), launch.get("gpu_facts_s")
    known = (gpu or 0.0) + launch["init_s"] + (asking or 0.0) + library + sizes
    told = {"GPU": gpu, "asking": asking}
    end = max(launch["after_s"], 0.0)
    return found | {
        "launch": launch["wall_s"] - footer["elapsed_s"] - end,
        "MPI_Init": launch["init_s"],
        "library": library,
        "first calls": first,
        "measuring": sizes - first,
        "rest": footer["elapsed_s"] - known,
        "end": end,
        **{name: seconds for name, seconds in told.items() if seconds is not None},
    }


def show(document: Json) -> None:
    """Prints the table."""
    print(f"{gl.machine_words(document)}, {document['ranks']} ranks\n")
    names = list(dict.fromkeys(launch["variant"] for launch in document["launches"]))
    good = {name: gl.launches_of(document, variant=name, exit_code=0) for name in names}
    floor = gl.median([launch["wall_s"] for launch in good.get(_FLOOR, [])])
    head = ["variant", *_PARTS, "of floor", "fastest", "slowest", "n"]
    print(gl.markdown(head, [_row(name, good[name], floor) for name in names]))
    print(f"\nfloor: {_FLOOR}; all others but nccl-tests' are of commtune-bench")
    for launch in document["launches"]:
        if launch["exit_code"] != 0:
            print(f"failed: {launch['command']}: {launch['output'].strip()[-300:]}")


def _row(name: str, launches: Sequence[Json], floor: float | None) -> list[str]:
    found = [parts(launch) for launch in launches]
    cells = [name]
    for part in _PARTS:
        cells.append(gl.shown(gl.median([one[part] for one in found if part in one]), ".2f"))
    walls = [one["wall"] for one in found]
    wall = gl.median(walls)
    cells.append(gl.shown(wall / floor if wall and floor else None, ".2f"))
    cells += [gl.shown(pick(walls) if walls else None, ".2f") for pick in (min, max)]
    return [*cells, str(len(walls))]


def main() -> None:
    """Measures or reads, then prints."""
    options = _options()
    show(gl.load(options.source) if options.source else measure(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    gl.add_options(parser, seconds=235, launches=5)
    parser.set_defaults(mpirun="mpirun")
    parser.add_argument("--nccl-tests", type=Path, help="folder of all_reduce_perf")
    parser.add_argument("--backend", default="xccl", help="of commtune-bench (%(default)s)")
    parser.add_argument("--variant", type=_more, action="append", default=[], help="one more")
    parser.add_argument("--only", help="names of variants, with commas between them")
    return gl.parse(parser, ["nccl_tests"])


if __name__ == "__main__":
    main()
