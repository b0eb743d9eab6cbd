"""What ``commtune bench`` and ``trace`` are to run, from their options."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune import model
from commtune.app.measure.comparison import emulated_nodes
from commtune.campaign.patterns import PatternFields, matrix_path
from commtune.campaign.timing import DEFAULT_BATCH, LARGEST_BATCH, MODES, TIMERS, check_timing
from commtune.campaign.workload import MOST_RANKS, check_elements
from commtune.commands import options as flags
from commtune.documents.quantities import parse_seconds
from commtune.errors import InvalidKey, UserError

#: Seconds that the benchmark takes for ``--time-cap``.
_LEAST_CAP_S, _LONGEST_CAP_S = 1e-6, 1e5
#: Records of pairs: each has some 1.4 KB, and a file of 64 MiB is read.
_MOST_PAIRS = 40_000
#: Samples of a size, and those of a pair, of which there are many.
_MOST_SAMPLES, _MOST_OF_PAIRS = 1000, 50


@dataclass(frozen=True)
class BenchOptions:
    """What to run, as written on the command line; ``None`` and empty where nothing is."""

    op: str = "allreduce"
    ranks: int = 2
    sizes: str = "8"
    settings: Sequence[str] | None = None
    dtype: str = "float32"
    time_cap: str = "0.2s"
    backend: str | None = None
    emulate_nodes: int | None = None
    group_size: int | None = None
    active: int | None = None
    direction: str = ""
    matrix: str = ""
    inside: str = ""
    between: str = ""
    assemble: str = ""
    window: int | None = None
    rotate: str = ""
    mode: str = ""
    operations: int | None = None
    timer: str = ""
    graph: str = ""


@flags.keys_are_flags()
def request_of(options: BenchOptions) -> model.RunRequest:
    """The run that the command line describes.

    Raises:
        UserError: a flag that can't be read, or doesn't go with the others.
    """
    operation = flags.operation_flag(options.op)
    dtype = flags.word_flag("--dtype", options.dtype, list(model.ELEMENT_BYTES))
    sizes = flags.sizes_flag(options.sizes)
    time_cap_s = _time_cap_s(options.time_cap)
    alone = operation.is_collective or operation in (model.Operation.RING, model.Operation.SELF)
    _check_range("ranks", options.ranks, 1 if alone else 2, MOST_RANKS)
    backend, shape = _shape(options, operation)
    with flags.reading_flag("--sizes"):
        check_elements(sizes, dtype, backend)
    workload = model.Workload(
        operation,
        sizes,
        options.ranks,
        backend=backend,
        dtype=dtype,
        emulated_nodes=emulated_nodes(options.emulate_nodes or 0, options.ranks, backend),
        window=options.window or 0,
        shape=shape,
        rotate=_rotate(options.rotate, backend),
    )
    if operation is model.Operation.PAIRS:
        _check_pairs(workload)
    timing = _timing(options, workload, time_cap_s)
    settings = _settings(options.settings or ())
    return model.RunRequest(uuid.uuid4().hex, settings, workload, timing)


def _settings(written: Sequence[str]) -> model.Configuration:
    values = {}
    for setting in written:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UserError(f"-x {setting}: no value", hint="write -x NAME=VALUE")
        values[name] = value
    return model.Configuration(values)


def _check_range(key: str, number: int | None, least: int, most: int) -> None:
    if number is not None and not least <= number <= most:
        raise InvalidKey(key, f"{number} is out of range", f"from {least} to {most}")


def _time_cap_s(written: str) -> float:
    with flags.reading_flag("--time-cap"):
        seconds = parse_seconds(written)
    if not _LEAST_CAP_S <= seconds <= _LONGEST_CAP_S:
        raise UserError(
            f"--time-cap: {written!r} is out of range", hint="from 1us to 100000s, as in 0.2s"
        )
    return seconds


def _check_pairs(workload: model.Workload) -> None:
    pairs, sizes = workload.measured_a_size, len(workload.sizes)
    if pairs * sizes > _MOST_PAIRS:
        raise UserError(
            f"--sizes: {pairs:,} pairs at {sizes} sizes are more than {_MOST_PAIRS:,} times",
            hint="use fewer ranks, or fewer sizes, such as 8,1MiB",
        )


def _shape(
    options: BenchOptions, operation: model.Operation
) -> tuple[model.Backend, model.PatternParameters]:
    """The backend and the shape that flags ask for, by the checks of campaign files."""
    named = {
        name: flags.backend_flag(getattr(options, name), f"--{name}")
        for name in ("backend", "inside", "between", "assemble")
        if getattr(options, name)
    }
    way = options.direction and flags.word_flag(
        "--direction", options.direction, list(model.Direction)
    )
    for name in ("window", "group_size", "active"):
        _check_range(name, getattr(options, name), 1, MOST_RANKS)
    asked = PatternFields(
        operation,
        options.ranks,
        nodes=options.emulate_nodes or 1,
        window=options.window,
        group_size=options.group_size,
        active=options.active,
        direction=model.Direction(way) if way else None,
        matrix=matrix_path(options.matrix, Path()),
        **named,
    )
    return asked.choose_backend(), asked.parameters()


def _rotate(word: str, backend: model.Backend) -> bool:
    is_yes = _yes("--rotate", word)
    if is_yes and not backend.is_native:
        raise UserError(f"--rotate: the backend {backend} does not rotate", hint="leave it out")
    return is_yes


def _yes(flag: str, word: str) -> bool:
    return bool(word) and flags.word_flag(flag, word, ("yes", "no")) == "yes"


def _timing(options: BenchOptions, workload: model.Workload, time_cap_s: float) -> model.Timing:
    """How flags ask for operations to be timed, by the checks of campaign files."""
    mode = flags.word_flag("--mode", options.mode or model.BLOCKING, MODES)
    counted = options.operations
    _check_range("operations", counted, 1, LARGEST_BATCH)
    timing = model.Timing(
        max_samples=_MOST_OF_PAIRS
        if workload.operation is model.Operation.PAIRS
        else _MOST_SAMPLES,
        time_cap_s=time_cap_s,
        mode=mode,
        operations=(counted or DEFAULT_BATCH) if mode == model.BATCHED else 0,
        timer=flags.word_flag("--timer", options.timer or model.WALL, TIMERS),
        graph=_yes("--graph", options.graph),
    )
    check_timing(timing, workload, is_counted=counted is not None)
    return timing
