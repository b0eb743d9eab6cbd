"""The Python benchmark's command line: that of commtune-bench, as far as it makes sense here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import ELEMENT_BYTES, OPERATIONS, WINDOW
from commtune.kernels.python_bench.sampling import StoppingRule

_BACKENDS = ("python-host", "python-device")
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
    """What the command line asks for, as ``help`` describes it.

    Attributes:
        expect_ranks: 0 for any number.
        print: ``help`` or ``version``: nothing else is asked for.
    """

    op: str = ""
    sizes: tuple[int, ...] = ()
    dtype: str = "float32"
    reduction: str = "sum"
    window: int = WINDOW
    backend: str = "python-host"
    shares_gpus: bool = False
    records: str = ""
    run_id: str = ""
    env_names: tuple[str, ...] = ()
    expect_ranks: int = 0
    rule: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 1
    check: bool = True
    python: str = ""
    libmpi: str = ""
    print: str = ""

    @staticmethod
    def help() -> str:
        return _HELP.format(operations=", ".join(OPERATIONS))

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Options:
        """Reads the arguments, without the program's name; a ``UsageFault`` says what is legal."""
        given: dict[str, str] = {}
        rest = list(arguments)
        while rest:
            name, equals, value = rest.pop(0).partition("=")
            if name in ("--help", "--version"):
                return cls(print=name.removeprefix("--"))
            if name not in _OPTIONS:
                raise UsageFault(f"unknown option '{name}'; options are: {' '.join(_OPTIONS)}")
            if not equals:
                if not rest:
                    raise UsageFault(f"{name} needs a value")
                value = rest.pop(0)
            given[name] = value
        return cls.of_words(given)

    @classmethod
    def of_words(cls, given: Mapping[str, str]) -> Options:
        """Options from texts by their names on the command line; faults as ``parse``."""
        values: dict[str, Any] = {}
        rule: dict[str, Any] = {}
        for name, text in given.items():
            key, parse_value = _OPTIONS[name]
            try:
                (rule if key in _OF_RULE else values)[key] = parse_value(text)
            except UsageFault as fault:
                raise UsageFault(f"{name}: {fault}") from None
        options = cls(rule=StoppingRule(**rule), **values)
        _check(options)
        return options

    @property
    def uses_gpus(self) -> bool:
        return self.backend == "python-device"


def _check(options: Options) -> None:
    if options.python and not options.op.startswith("own:"):
        raise UsageFault("--python goes with --op own:NAME")
    if not options.op:
        raise UsageFault("--op is missing: say which operation")
    if not options.python and options.op not in OPERATIONS:
        raise UsageFault(f"unknown operation '{options.op}'; one of: {', '.join(OPERATIONS)}")
    if not options.sizes:
        raise UsageFault("--sizes is missing: give sizes in bytes")
    if options.rule.min_samples > options.rule.max_samples:
        raise UsageFault("--min-samples is more than --max-samples")
    if options.shares_gpus and not options.uses_gpus:
        raise UsageFault(f"--share-gpus yes is for GPUs: --backend {options.backend} uses none")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _one_of(*words: str) -> Callable[[str], str]:
    def parse_word(text: str) -> str:
        if text not in words:
            raise UsageFault(f"unknown '{text}'; one of: {', '.join(words)}")
        return text

    return parse_word


def _is(yes: str, no: str) -> Callable[[str], bool]:
    return lambda text: _one_of(yes, no)(text) == yes


def _number(kind: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    def parse_number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise UsageFault(f"'{text}' is not a number from {low} to {high}")
        return value

    return parse_number


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(map(_number(int, 1, _LARGEST_SIZE), text.split(",")))
    for size in sizes:
        if sizes.count(size) > 1:
            raise UsageFault(f"{size} is there twice")
    return sizes


_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--op": ("op", str),
    "--python": ("python", str),
    "--sizes": ("sizes", _sizes),
    "--dtype": ("dtype", _one_of(*ELEMENT_BYTES)),
    "--reduction": ("reduction", _one_of("sum", "max")),
    "--window": ("window", _number(int, 1, 4096)),
    "--backend": ("backend", _one_of(*_BACKENDS)),
    "--share-gpus": ("shares_gpus", _is("yes", "no")),
    "--records": ("records", str),
    "--run-id": ("run_id", str),
    "--env-names": ("env_names", _names),
    "--expect-ranks": ("expect_ranks", _number(int, 1, _MOST)),
    "--warmup": ("warmup", _number(int, 0, _MOST)),
    "--min-samples": ("min_samples", _number(int, 1, _MOST)),
    "--max-samples": ("max_samples", _number(int, 1, _MOST)),
    "--relative-ci": ("relative_ci", _number(float, 0.0, 1.0)),
    "--time-cap": ("time_cap_s", _number(float, 1e-6, 1e5)),
    "--seed": ("seed", _number(int, 0, 2**63 - 1)),
    "--check": ("check", _is("full", "none")),
    "--libmpi": ("libmpi", str),
}
_OF_RULE = frozenset(StoppingRule.__dataclass_fields__)
