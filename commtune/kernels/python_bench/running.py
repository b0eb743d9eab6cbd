"""A run of the Python benchmark, on every rank; and the patterns that users write for it."""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from commtune.kernels.python_bench import devices, faults, records
from commtune.kernels.python_bench.measuring import Measurer
from commtune.kernels.python_bench.messages import MessagePattern
from commtune.kernels.python_bench.options import Options
from commtune.kernels.python_bench.work import Operations, Patterns
from commtune.kernels.python_bench.world import Placement, World, launched_ranks
from commtune.paths import is_file

#: How long launchers need to pass on what a rank said, before the rank or its fellows end.
_TIME_TO_BE_HEARD_S = 1.0
_OWN_FOLDER = str(Path(__file__).parent) + os.sep
#: Variables by which launchers say which rank this is.
_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_Made = TypeVar("_Made")
_MISFIT = (
    "launcher and MPI library don't fit each other. mpi4py may have loaded another MPI library "
    "than the launcher's: name the right one with --libmpi, or MPI4PY_LIBMPI"
)
_Write = Callable[[Mapping[str, Any]], None]


def run_command(arguments: Sequence[str], began: float) -> int:
    """Does what the command line asks for; ``began`` is of time.perf_counter."""
    try:
        options = Options.parse(arguments[1:])
    except faults.UsageFault as fault:
        return _exit_of_all(fault.status, str(fault), speak=_speaks_for_all())
    return _run_benchmark(options, arguments, began)


def _speaks_for_all() -> bool:
    """Whether this is rank 0, as far as the launcher's variables tell."""
    return all(os.environ.get(name, "0") == "0" for name in _RANK)


def _exit_of_all(status: int, message: str, *, speak: bool) -> int:
    """Prints what is wrong on one rank; others wait, as a launcher may end all with the first."""
    if speak:
        print(f"commtune-bench: {message}", file=sys.stderr, flush=True)
    else:
        time.sleep(_TIME_TO_BE_HEARD_S)
    return status


def _run_benchmark(options: Options, arguments: Sequence[str], began: float) -> int:
    """Begins MPI, measures all sizes, ends MPI."""
    # Before MPI_Init: an MPI that is aware of GPUs takes the one that is current then.
    gpu = _early_gpu(options)
    try:
        world = World(options.libmpi)
    except faults.UsageFault as fault:
        return _exit_of_all(fault.status, str(fault), speak=_speaks_for_all())
    if options.expect_ranks not in (0, world.size):
        world.mpi.Finalize()
        return _exit_of_all(
            faults.WRONG_WORLD,
            _wrong_world(options.expect_ranks, world.size),
            speak=_speaks_for_all(),
        )
    _warn_of_lone_world(world)
    try:
        wrong = world.from_first(_measured_run(options, arguments, world, gpu, began))
    except faults.UsageFault as fault:
        status = _exit_of_all(fault.status, str(fault), speak=world.is_first)
        world.mpi.Finalize()
        return status
    except Exception as error:
        _end_all(world, error)
        return faults.FAILURE
    world.mpi.Finalize()
    return faults.WRONG_RESULT if wrong else faults.OK


def _measured_run(
    options: Options, arguments: Sequence[str], world: World, gpu: devices.Gpu | None, began: float
) -> bool:
    kind = _together(world, lambda: _load_pattern(options.python)) if options.python else None
    write = records.open_records(options.records) if world.is_first else lambda _: None
    init_s = world.to_first([world.init_s], max)[0]
    totals = _measure_all(options, arguments, world, kind, write, gpu=gpu, init_s=init_s)
    wrong = bool(totals.pop("wrong"))
    status = "wrong" if wrong else "ok"
    elapsed_s = time.perf_counter() - began
    write(
        {"record": "footer", "status": status, **totals, "elapsed_s": elapsed_s, "init_s": init_s}
    )
    return wrong


def _measure_all(
    options: Options,
    arguments: Sequence[str],
    world: World,
    kind: type[MessagePattern] | None,
    write: _Write,
    *,
    gpu: devices.Gpu | None,
    init_s: float,
) -> dict[str, Any]:
    """Writes header and measurements, and returns totals; ``gpu``: this rank's, if chosen."""
    placement = Placement.of(world, options.env_names)
    memory: devices.Memory
    denied = ""
    gpus: list[dict[str, Any]] = []
    if options.uses_gpus:
        own = _together(world, lambda: gpu or _late_gpu(options, world, placement))
        memory, gpus = devices.DeviceMemory(own), world.gather(own.facts())
        # Ranks have to agree on whether an operation is a call.
        denied = world.from_first(devices.denied_by(own.kind))
    else:
        memory = devices.HostMemory()
    maker = Patterns(kind, options, world, denied) if kind else Operations(options, world, denied)
    longest_send = max(layout.send_count for layout in maker.layouts)
    longest_received = max(layout.receive_count for layout in maker.layouts)
    send = memory.allocate(longest_send, options.dtype)
    received = memory.allocate(longest_received, options.dtype)
    measurer = Measurer(options, world, memory, send, received)
    if world.is_first:
        write(
            records.header_record(
                options,
                arguments,
                world,
                placement,
                arrays=memory.words(),
                gpus=gpus,
                resolution_s=measurer.resolution_s,
                init_s=init_s,
            )
        )
    totals = {"wrong": 0, "measurements": 0, "measure_s": 0.0}
    for layout in maker.layouts:
        result = measurer.measure(maker.work(layout, send, received))
        if world.is_first:
            write(records.size_record(result, oversubscribed=placement.oversubscribed))
        totals["wrong"] += result.wrong
        totals["measurements"] += 1
        totals["measure_s"] += result.elapsed_s
    return totals


def _early_gpu(options: Options) -> devices.Gpu | None:
    return devices.Gpu.choose_early(shares=options.share_gpus) if options.uses_gpus else None


def _late_gpu(options: Options, world: World, placement: Placement) -> devices.Gpu:
    machines, rank = placement.machines, world.rank
    on_machine = machines.count(machines[rank])
    return devices.Gpu.choose(placement.machine_ranks[rank], on_machine, shares=options.share_gpus)


def _together(world: World, make: Callable[[], _Made]) -> _Made:
    """What ``make`` gives on every rank; a fault of the first that failed is the fault of all."""
    made, failed = None, (faults.OK, "")
    try:
        made = make()
    except faults.UsageFault as fault:
        failed = (fault.status, str(fault))
    first = world.from_first(next((f for f in world.gather(failed) if f[1]), (faults.OK, "")))
    status, words = first if first[1] else failed
    if made is None or words:
        raise faults.Waived(words) if status == faults.WAIVED else faults.UsageFault(words)
    return made


_MEASURE_OPTIONS = (
    "--sizes", "--dtype", "--backend", "--share-gpus", "--warmup", "--min-samples",
    "--max-samples", "--relative-ci", "--time-cap", "--seed", "--check", "--libmpi",
)  # fmt: skip


class Pattern(MessagePattern):
    """A communication pattern for one size; subclasses say in ``define`` which messages it has.

    ::

        class Shift(Pattern):
            def define(self):
                for rank in range(self.ranks):
                    self.add(rank, (rank + 1) % self.ranks, self.size)

    Messages of one part may all be under way at once. A pattern is a part itself; where some
    messages have to wait for others it has further parts, and ``run`` says in which order they go.

    Attributes:
        ranks: how many there are.
        size: bytes, as the campaign's ``sizes`` say them; what they mean is the pattern's affair.
        comm: all ranks, an mpi4py communicator; there while it is measured, ``None`` before.
    """

    @classmethod
    def measure(cls, sizes: Sequence[int], **options: Any) -> list[dict[str, Any]]:
        """Measures the pattern at these sizes (bytes); call it on all ranks. MPI stays up.

        Args:
            options: as on the command line, with ``_`` for ``-``: ``dtype``, ``time_cap`` ...

        Returns:
            The measurement records of the contract on rank 0, nothing on the others.

        Raises:
            UsageFault: an option, or a message of the pattern, is wrong.
        """
        name = re.sub(r"[^A-Za-z0-9._-]", "-", cls.__name__)
        words = {"--" + key.replace("_", "-"): value for key, value in options.items()}
        words["--sizes"] = ",".join(str(size) for size in sizes)
        unknown = [word for word in words if word not in _MEASURE_OPTIONS]
        if unknown:
            raise faults.UsageFault(
                f"no such option: {unknown[0]}; options are: {' '.join(_MEASURE_OPTIONS)}"
            )
        words |= {"--op": "own:" + name, "--python": name}
        asked = Options.parse([f"{word}={value}" for word, value in words.items()])
        gpu = _early_gpu(asked)
        world = World(asked.libmpi)
        if world.began_it:
            atexit.register(world.mpi.Finalize)
        _warn_of_lone_world(world)
        found: list[dict[str, Any]] = []
        write: _Write = lambda record: found.append(dict(record))  # noqa: E731
        try:
            _measure_all(asked, [name], world, cls, write, gpu=gpu, init_s=0.0)
        except faults.UsageFault:  # on all ranks alike
            raise
        except Exception as error:
            if world.began_it and world.size > 1:
                _end_all(world, error)
            raise
        return [record for record in found if record["record"] == "measurement"]


def _load_pattern(named: str) -> type[Pattern]:
    """The class that ``FILE.py:CLASS`` names; CLASS may be left out where the file has one."""
    written, _, name = named.partition(".py:")
    path = Path(written + ".py" if name else named)
    if not is_file(path):
        raise faults.UsageFault(f"--python: there is no file {path}")
    module_name = f"commtune_pattern_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise faults.UsageFault(f"--python: {path} is no Python file; its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))  # what lies beside it can be imported
    spec.loader.exec_module(module)
    found = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Pattern) and value is not Pattern
    }
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    there = ", ".join(sorted(found)) or "none"
    wanted = f"there is no pattern '{name}' in {path}" if name else f"{path} has several patterns"
    raise faults.UsageFault(f"--python: {wanted}; subclasses of Pattern there: {there}")


def _end_all(world: World, error: Exception) -> None:
    """The other ranks may be waiting for this one for ever: all have to go."""
    print(f"commtune-bench: rank {world.rank}: {_words(error)}", file=sys.stderr, flush=True)
    time.sleep(_TIME_TO_BE_HEARD_S)
    world.comm.Abort(faults.FAILURE)


def _wrong_world(expected: int, size: int) -> str:
    found = "each came up as a world of its own" if size == 1 else f"this world has {size}"
    return f"asked for were {expected} ranks, but {found}: {_MISFIT}"


def _warn_of_lone_world(world: World) -> None:
    """Warns that each rank is by itself, so that no network is measured."""
    *_, started = launched_ranks()
    if world.size == 1 and started > 1 and _speaks_for_all():
        library = world.library().partition(",")[0]
        print(
            f"commtune-bench: warning: the launcher started {started} ranks, but each came up as "
            f"a world of its own, of {library}: {_MISFIT}",
            file=sys.stderr,
            flush=True,
        )


def _words(error: Exception) -> str:
    """The error, and where in the user's own file it came from, if it did."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDER)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
