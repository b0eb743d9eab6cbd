"""Prepares the benchmark of a workload on this machine, and builds it if necessary."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from commtune import model
from commtune.campaign.protected import check_pins, protected_settings
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import HOST_ID, base_environment, command_path, local_launcher
from commtune.cluster.machine.doctor import public_names
from commtune.cluster.mpi.discovery import find_launcher, find_mpi
from commtune.errors import UserError
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import backends_of, build_benchmark
from commtune.kernels.programs import AnyProgram, other_program
from commtune.kernels.toolchains import UNKNOWN
from commtune.paths import is_file
from commtune.private_files import replace_own_file, require_own, writing_data
from commtune.wiring.gpu_toolchains import check_launch, require_backend, toolchain_for
from commtune.wiring.user_folders import cache_folder, data_folder

if TYPE_CHECKING:
    from commtune.campaign.plan import Plan

#: Time limit of a run by hand, seconds, for launchers that need one.
_LIMIT_S = 60.0


def _build_native(
    mpi: model.MpiInstallation, workload: model.Workload, names: Sequence[str]
) -> NativeProgram:
    toolchain = toolchain_for(workload.backend)
    found = build_benchmark(mpi, cache_folder(), toolchain=toolchain)
    built = backends_of(found.executable)
    for backend in (workload.backend, *workload.shape.backends):
        require_backend(backend, built)
    xccl = toolchain.xccl if toolchain and workload.backend == model.Backend.XCCL else None
    library = f"{xccl.name} {xccl.version}" if xccl and xccl.version != UNKNOWN else ""
    # Tested on NVIDIA's GPUs only: with AMD's runtime, memory is freed as usual.
    on_cuda = toolchain is not None and toolchain.kind is model.GpuKind.CUDA
    return NativeProgram(
        found.executable, names, library, _keep_matrix(workload), leaves_memory=on_cuda
    )


def _keep_matrix(workload: model.Workload) -> Path | None:
    """Returns the file of a workload's traffic matrix; ``None`` for other operations."""
    shape = workload.shape
    if not shape.matrix or workload.operation is not model.Operation.MATRIX:
        return None
    file = data_folder() / "matrices" / f"{shape.matrix}.txt"
    require_own(f"the matrix {file} is not used", file)
    if shape.content is not None:
        if not is_file(file):  # else it has the same content, of which its name is a hash
            with writing_data("the matrix can't be kept", file.parent):
                replace_own_file(file, shape.content.text)
    elif not is_file(file):
        raise UserError(
            f"the measured matrix is missing: {file}",
            hint="'commtune tune' with the campaign's file, and its matrix beside it, restores it",
        )
    return file


def prepare_benchmark(
    mpi: model.MpiInstallation,
    pinned: Mapping[str, str],
    watched: Sequence[str],
    workload: model.Workload,
    folder: Path,
    guards: Sequence[str] = (),
) -> LocalBenchmark:
    """Builds the benchmark against an MPI; returns it as a ``tuner.ports.Benchmark``.

    Args:
        pinned, watched: pins and names of variables of a space.
        workload: its backend decides what is built, its ranks which GPUs are required.
        folder: of the record files.
        guards: names of protected variables that every run inherits.

    Raises:
        MissingComponent, UserError: this machine lacks what the backend needs.
        CampaignError: a pin would replace a protected variable that is set here.
    """
    check_launch(workload, os.environ)
    protected = protected_settings(tuple(guards), os.environ)
    check_pins(pinned, protected)
    on_gpu = model.Backend(workload.backend).uses_gpu
    # Each rank reports the values of these, which are stored with the run's header.
    told = sorted(public_names(protected)) if on_gpu else []
    emulated = [HOST_ID] if workload.emulated_nodes else []
    names = list(dict.fromkeys([*watched, *told, *emulated]))
    return LocalBenchmark(
        mpi=mpi,
        program=program_for(mpi, workload, names, command_path(os.environ, mpi)),
        environment={**base_environment(os.environ, mpi, guards), **pinned},
        watched=watched,
        folder=folder,
        launcher=local_launcher(mpi, bound=not on_gpu, emulated_nodes=workload.emulated_nodes),
    )


@contextmanager
def unstored_benchmark(
    mpi: model.MpiInstallation,
    pinned: Mapping[str, str],
    workload: model.Workload,
    guards: Sequence[str] = (),
    watched: Sequence[str] = (),
) -> Iterator[LocalBenchmark]:
    """Yields the benchmark as ``prepare_benchmark`` does; its records are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        yield prepare_benchmark(mpi, pinned, watched, workload, Path(folder), guards)


def program_for(
    mpi: model.MpiInstallation, workload: model.Workload, names: Sequence[str], path: str = ""
) -> AnyProgram:
    """Returns the benchmark program of a workload; ``path`` is PATH for a user's own command."""
    other = other_program(workload, mpi, names, path)
    return other or _build_native(mpi, workload, names)


def command_by_hand(benchmark: LocalBenchmark, plan: Plan) -> str:
    """Returns how to run a user's own benchmark by hand; empty if 'commtune bench' does it."""
    workload, own = plan.workload, plan.workload.own
    if own is None or benchmark.launcher is None:
        return ""
    request = model.RunRequest("by-hand", model.DEFAULT, workload, plan.timing)
    program, folder = benchmark.program, own.folder
    if isinstance(program, CommandProgram):
        words: Sequence[str] = program.words(request, Path("by-hand.jsonl"))
    else:
        # It prints its records instead; started in its folder, as it may import other files there.
        words = [
            word
            for word in program.arguments(request, Path("-"))
            if not word.startswith(("--records=", "--run-id=", "--env-names="))
        ]
        folder = str(Path(own.pattern.partition(".py:")[0]).parent)
    command = benchmark.launcher.command(workload.ranks, words, _LIMIT_S)
    # Pins, and variables that the MPI needs to start; the user's shell has all others.
    wanted = {**benchmark.environment}
    if isinstance(program, CommandProgram) and program.libmpi:
        wanted.setdefault("MPI4PY_LIBMPI", program.libmpi)
    variables = {n: v for n, v in wanted.items() if os.environ.get(n) != v}
    given = [f"{name}={value}" for name, value in variables.items() if name != "PATH"]
    shown = shlex.join([*(["env", *given] if given else []), *command])
    return f"run it by hand: cd {shlex.quote(folder)} && {shown}"


def find_named_mpi(named: str, workload: model.Workload | None = None) -> model.MpiInstallation:
    """Finds an MPI (``cluster.mpi``); for a user's own command, its launcher is enough."""
    if workload is not None and workload.own is not None and workload.own.command:
        return find_launcher(named, ranks=workload.ranks)
    return find_mpi(named)
