"""The Python benchmark's command line: that of commtune-bench, as far as it makes sense here."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import commtune
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import ELEMENT_BYTES, OPERATIONS, WINDOW
from commtune.kernels.python_bench.sampling import StoppingRule

_LARGEST_SIZE = 2**30
_MOST = 1_000_000

_HELP = """\
usage: mpiexec -n N python -m commtune.kernels.python_bench --op OPERATION --sizes BYTES[,...]
       [option...]

Measures one communication operation, from Python, and writes JSON Lines.

  --op OPERATION      {operations}
  --python FILE:CLASS measure this pattern (docs/own-benchmark.md); --op is then own:NAME
  --sizes B[,B...]    message sizes in bytes, one element to 1073741824, each once
  --dtype TYPE        float32 (default), float64, int32 or uint8
  --reduction WHAT    sum (default) or max
  --window N          stream: messages under way (64)
  --backend NAME      python-host (default), or python-device: CuPy's arrays, a GPU-aware MPI
  --share-gpus yes|no python-device: let several ranks use one GPU, for tests (no)
  --records FILE      where records go; without it to standard output
  --run-id ID         copied into the header
  --env-names A[,B]   variables whose values each rank reports in the header
  --expect-ranks N    do nothing unless so many ranks came up together (any number)
  --operations N      operations of a sample (0: as many as the clock needs)
  --warmup N          operations dropped before the first sample, beside the first call (5)
  --min-samples N     fewest samples a size (10)
  --max-samples N     most samples a size (200)
  --relative-ci X     stop when the 95 % confidence interval of the median is narrower than
                      this share of it (0.01)
  --time-cap SECONDS  stop after this time once there are enough samples (0.05)
  --seed N            of the data pattern (1)
  --check full|none   compare every received element, outside the timed part (full)
  --libmpi PATH       MPI libraries to try, or their folders, separated by ':'; for mpi4py wheels
  --help, --version
"""


@dataclass(frozen=True)
class Options:
    """What the command line asks for, as ``--help`` describes it."""

    op: str
    python: str
    sizes: tuple[int, ...]
    dtype: str
    reduction: str
    window: int
    backend: str
    share_gpus: bool
    records: str
    run_id: str
    env_names: tuple[str, ...]
    expect_ranks: int  # 0 for any number
    operations: int  # of a sample; 0 for as many as the clock needs
    rule: StoppingRule
    seed: int
    check: bool
    libmpi: str

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Options:
        """Reads the arguments, without the program's name.

        Raises:
            UsageFault: one is wrong; it says what is legal.
            SystemExit: help or the version was asked for, and is printed.
        """
        given = vars(_parser().parse_args(arguments))
        rule = StoppingRule(**{one.name: given.pop(one.name) for one in fields(StoppingRule)})
        given["share_gpus"] = given["share_gpus"] == "yes"
        given["check"] = given["check"] == "full"
        options = cls(**given, rule=rule)
        _check(options)
        return options

    @property
    def uses_gpus(self) -> bool:
        return self.backend == "python-device"


def _check(options: Options) -> None:
    if options.python and not options.op.startswith("own:"):
        raise UsageFault("--python goes with --op own:NAME")
    if not options.python and options.op not in OPERATIONS:
        raise UsageFault(f"unknown operation '{options.op}'; one of: {', '.join(OPERATIONS)}")
    if options.rule.min_samples > options.rule.max_samples:
        raise UsageFault("--min-samples is more than --max-samples")
    if options.share_gpus and not options.uses_gpus:
        raise UsageFault(f"--share-gpus yes is for GPUs: --backend {options.backend} uses none")


class _Parser(ArgumentParser):
    def format_help(self) -> str:
        return _HELP.format(operations=", ".join(OPERATIONS))

    def error(self, message: str) -> NoReturn:
        raise UsageFault(message)


def _parser() -> ArgumentParser:
    parser = _Parser(allow_abbrev=False)
    version = f"commtune-bench {commtune.__version__} (Python {sys.version.split()[0]})"
    add, rule = parser.add_argument, StoppingRule
    add("--version", action="version", version=version)
    add("--op", required=True)
    add("--python", default="")
    add("--sizes", type=_sizes, required=True)
    add("--dtype", choices=ELEMENT_BYTES, default="float32")
    add("--reduction", choices=("sum", "max"), default="sum")
    add("--window", type=_number(int, 1, 4096), default=WINDOW)
    add("--backend", choices=("python-host", "python-device"), default="python-host")
    add("--share-gpus", choices=("yes", "no"), default="no")
    add("--records", default="")
    add("--run-id", default="")
    add("--env-names", type=_names, default=())
    add("--expect-ranks", type=_number(int, 1, _MOST), default=0)
    add("--operations", type=_number(int, 0, _MOST), default=0)
    add("--warmup", type=_number(int, 0, _MOST), default=rule.warmup)
    add("--min-samples", type=_number(int, 1, _MOST), default=rule.min_samples)
    add("--max-samples", type=_number(int, 1, _MOST), default=rule.max_samples)
    add("--relative-ci", type=_number(float, 0.0, 1.0), default=rule.relative_ci)
    add("--time-cap", type=_number(float, 1e-6, 1e5), default=rule.time_cap_s, dest="time_cap_s")
    add("--seed", type=_number(int, 0, 2**63 - 1), default=1)
    add("--check", choices=("full", "none"), default="full")
    add("--libmpi", default="")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _number(kind: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    def parse_number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return value

    return parse_number


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(map(_number(int, 1, _LARGEST_SIZE), text.split(",")))
    for size in sizes:
        if sizes.count(size) > 1:
            raise ArgumentTypeError(f"{size} is there twice")
    return sizes
