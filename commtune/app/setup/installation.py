"""Installs MPI libraries, and builds the benchmark and NCCL's tuner plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.cluster.mpi.discovery import data_root, find_mpi, install_wheel
from commtune.cluster.mpi.wheels import WHEELS
from commtune.errors import CommtuneError, UserError
from commtune.kernels import build, library_builds
from commtune.kernels.toolchains import Toolchain
from commtune.model import GpuKind, MpiInstallation
from commtune.paths import is_file
from commtune.wiring import gpu_toolchains
from commtune.wiring.user_folders import cache_folder


@dataclass(frozen=True)
class Build:
    """A built benchmark with its backends, and reasons why others are missing."""

    mpi: MpiInstallation
    toolchain: Toolchain | None
    built: build.BuiltBenchmark
    backends: Sequence[str]
    waived: Mapping[str, str]

    @property
    def log(self) -> Path | None:
        """The log of the compilers; ``None`` if there is none."""
        return self.built.log if is_file(self.built.log) else None


def build_benchmark(
    mpi: str, gpu: str, architectures: Sequence[str], log: Path | None, *, again: bool
) -> Build:
    """Builds the benchmark, unless it was built before.

    Raises:
        UserError: there are architectures, but no GPU.
    """
    if architectures and gpu == GpuKind.NONE:
        raise UserError("--arch is for GPUs, and --gpu none asks for none", hint="leave one out")
    found = find_mpi(mpi)
    toolchain, why = gpu_toolchains.find_user_toolchain(gpu, tuple(architectures))
    cache = cache_folder()
    built = build.build_benchmark(found, cache, toolchain=toolchain, log=log, again=again)
    backends = build.backends_of(built.executable)
    waived = gpu_toolchains.waived_backends(toolchain, why, backends)
    return Build(found, toolchain, built, tuple(backends), waived)


def build_tuner(log: Path | None = None, *, again: bool = False) -> Path:
    """Returns NCCL's tuner plugin, and builds it unless it was built before."""
    return library_builds.build_tuner(cache_folder(), log=log, again=again)


def list_mpi() -> dict[str, MpiInstallation | str]:
    """Returns the known MPI libraries by name, or the reason why one is missing."""
    return {name: _attempt(name) for name in ("path", *(f"wheel:{name}" for name in WHEELS))}


def _attempt(name: str) -> MpiInstallation | str:
    try:
        return find_mpi(name)
    except CommtuneError as error:
        return error.message


def install_mpi(name: str, root: Path | None = None) -> MpiInstallation:
    """Installs an MPI from its Python wheel; ``root`` is the user's data folder by default."""
    return install_wheel(name, root.absolute() if root else data_root())
