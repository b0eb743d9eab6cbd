"""Finds what a backend needs beside MPI: GPUs, a toolchain, NCCL or RCCL."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from commtune import process
from commtune.cluster.local.launch import HOST_ID
from commtune.cluster.machine import gpus
from commtune.cluster.machine.description import Machine
from commtune.cluster.machine.doctor import Check, Status
from commtune.errors import MissingComponent, UserError
from commtune.kernels.toolchains import (
    UNKNOWN,
    Toolchain,
    ask_xccl_version,
    find_toolchain,
    why_no_xccl,
)
from commtune.model import Backend, GpuKind, MpiFlavour, MpiInstallation, Workload
from commtune.model.configuration import Changes

#: Variable with architectures to build for, separated by commas, for login nodes without GPUs.
_ARCHITECTURES_VARIABLE = "COMMTUNE_GPU_ARCHITECTURES"

_VENDORS = {"nvidia": GpuKind.CUDA, "amd": GpuKind.HIP}


def _kind_here() -> GpuKind:
    """Returns the kind of GPU code to build here; CUDA if there is no GPU."""
    vendors = [gpu.vendor for gpu in _gpus()]
    return _VENDORS[vendors[0]] if vendors else GpuKind.CUDA


def toolchain_for(backend: str) -> Toolchain | None:
    """Returns the toolchain to build a backend with; ``None`` for one without GPUs.

    Raises:
        MissingComponent: there is no compiler, NCCL or RCCL, or the architecture is unknown.
    """
    if not Backend(backend).uses_gpu:
        return None
    found = _toolchain(_kind_here())
    if backend == Backend.XCCL and found.xccl is None:
        raise MissingComponent("the backend xccl can't be built", hint=why_no_xccl(found))
    return found


def find_user_toolchain(gpu: str, architectures: Sequence[str]) -> tuple[Toolchain | None, str]:
    """Returns the toolchain that a user asks for, or why there is none.

    Args:
        gpu: a value of ``GpuKind``, or ``auto`` for that of this machine.
        architectures: to build for; by default those of this machine's GPUs.

    Raises:
        MissingComponent: the toolchain of a kind that was named is missing.
    """
    if gpu == GpuKind.NONE:
        return None, "GPUs are not asked for"
    named = architectures or _named_architectures()
    if gpu != "auto":
        return find_toolchain(GpuKind(gpu), os.environ, named), ""
    is_amd = any(name.startswith("gfx") for name in named)
    kind = (GpuKind.HIP if is_amd else GpuKind.CUDA) if named else _kind_here()
    try:
        return find_toolchain(kind, os.environ, named), ""
    except MissingComponent as missing:
        return None, f"{missing.message}; {missing.hint}"


def waived_backends(
    toolchain: Toolchain | None, why: str, built: Mapping[str, str]
) -> dict[str, str]:
    """Returns the backends that an executable lacks, with the reasons.

    Args:
        why: the reason if there is no toolchain.
        built: see ``kernels.build.backends_of``.
    """
    reasons = {name: reason for name, reason in built.items() if reason}
    if toolchain is None:
        return dict.fromkeys(reasons, why)
    no_xccl = {str(Backend.XCCL): why_no_xccl(toolchain)} if toolchain.xccl is None else {}
    return {**reasons, **no_xccl}


def require_backend(backend: str, built: Mapping[str, str]) -> None:
    """Raises ``MissingComponent`` if an executable lacks a backend."""
    if reason := built.get(backend, "" if backend in built else "it is not known"):
        raise MissingComponent(
            f"the backend {backend} could not be built: {reason}",
            hint="'commtune build' shows what there is",
        )


def _named_architectures() -> list[str]:
    return os.environ.get(_ARCHITECTURES_VARIABLE, "").replace(",", " ").split()


@cache
def _gpus() -> tuple[gpus.Gpu, ...]:
    return gpus.list_gpus(Path("/"))


@cache
def _toolchain(kind: GpuKind) -> Toolchain:
    return find_toolchain(kind, os.environ, _named_architectures())


def check_launch(workload: Workload, environment: Mapping[str, str]) -> None:
    """Checks that this machine has what a workload's ranks need.

    Raises:
        MissingComponent, UserError: there are too few GPUs, or nodes can't be emulated.
    """
    if Backend(workload.backend).uses_gpu:
        gpus.require_gpus(_gpus(), environment, workload.ranks)
    if workload.emulated_nodes and HOST_ID in environment:
        raise UserError(
            f"{HOST_ID}={environment[HOST_ID]} is set in this environment, so that nodes can't be "
            "emulated: all ranks would be on one",
            hint=f"unset {HOST_ID}, or take emulate_nodes out of the campaign",
        )


def libraries_of(backend: str, mpi: MpiInstallation) -> dict[str, str]:
    """Returns the libraries that a backend uses, with their versions, empty if unknown."""
    if backend == Backend.XCCL:
        found = toolchain_for(backend)
        assert found and found.xccl  # as ``toolchain_for`` checks
        return {found.xccl.name.lower(): found.xccl.version}
    named = {mpi.flavour.library: mpi.version}
    may_use_ucx = Backend(backend).uses_gpu and mpi.flavour is not MpiFlavour.INTEL
    return {**named, **({"ucx": ""} if may_use_ucx else {})}


def stack_of(backend: str) -> dict[str, Any]:
    """Returns the versions of the GPUs' software, a part of the stack; empty without GPUs."""
    found = toolchain_for(backend)
    if found is None:
        return {}
    versions = {str(found.kind): found.version}
    if backend == Backend.XCCL and found.xccl is not None:
        versions[found.xccl.name.lower()] = found.xccl.version
    drivers = sorted({gpu.driver for gpu in _gpus()})
    return {"backend": str(backend), **versions, "gpu_drivers": drivers}


_LIMIT_S = 30.0
#: The libraries' sonames.
_SONAMES = {GpuKind.CUDA: "libnccl.so.2", GpuKind.HIP: "librccl.so.1"}
#: What ompi_info prints if Open MPI was built with GPU support, or with UCX, which may have it.
_BUILT_WITH = re.compile(
    r"(mpi|opal)_built_with_cuda_support:value:true|mca:accelerator:(cuda|rocm):version"
)
_HAS_UCX = re.compile(r"mca:pml:ucx:version")


def check_backends(machine: Machine, mpi: MpiInstallation | None) -> Iterator[Check]:
    """Yields a line for each backend, with the reason if it is waived."""
    yield Check("backend", Status.OK, f"{Backend.MPI_HOST}: MPI over host memory")
    if not machine.gpus:
        yield Check("backend", Status.OK, "no GPU here, so backends for GPUs are left out")
        return
    toolchain, why = find_user_toolchain("auto", ())
    if toolchain is None:
        names = ", ".join(backend for backend in Backend if backend.uses_gpu)
        yield Check("backend", Status.WARNING, f"{names}: waived: {why}")
        return
    compiler = f"{str(toolchain.kind).upper()} {toolchain.version}, {toolchain.compiler}"
    yield Check("toolchain", Status.OK, compiler)
    yield _check_xccl(toolchain)
    yield from _check_loaded_xccl(toolchain, os.environ)
    staged = f"{Backend.MPI_STAGED}, {Backend.IPC_PUT}, {Backend.IPC_GET}: can be built"
    yield Check("backend", Status.OK, staged)
    if mpi is not None:
        aware = _is_gpu_aware(mpi, os.environ)
        what = f"{Backend.MPI_DEVICE}: {mpi.flavour} {mpi.version}: {aware}"
        yield Check("backend", Status.OK, what)


def _check_xccl(toolchain: Toolchain) -> Check:
    found = toolchain.xccl
    if found is None:
        what = f"{Backend.XCCL}: waived: {why_no_xccl(toolchain)}"
        return Check("backend", Status.WARNING, what)
    what = f"{Backend.XCCL}: {found.name} {found.version}, {found.library}"
    return Check("backend", Status.OK, what)


def _check_loaded_xccl(toolchain: Toolchain, environment: Mapping[str, str]) -> Iterator[Check]:
    """Warns if LD_LIBRARY_PATH has another NCCL or RCCL than the one to compile with.

    The executable has the latter's folder as RUNPATH, which is searched after that variable.
    """
    built = toolchain.xccl
    folders = [f for f in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if f]
    if built is None or built.version == UNKNOWN:
        return
    for folder in folders:
        library = Path(folder) / _SONAMES[toolchain.kind]
        if not os.access(library, os.R_OK):
            continue
        version = ask_xccl_version(library, environment)
        if version != built.version:
            kept = os.pathsep.join(other for other in folders if other != folder)
            yield Check(
                "backend",
                Status.WARNING,
                f"{Backend.XCCL}: LD_LIBRARY_PATH brings {built.name} {version} ({library}), and "
                f"the benchmark is built with {built.version}: runs end with MISMATCH. Take the "
                f"folder out, or build with that one: {built.name}_HOME={library.parent.parent} "
                "commtune build",
                Changes(LD_LIBRARY_PATH=kept or None),
            )
        return


def _is_gpu_aware(mpi: MpiInstallation, environment: Mapping[str, str]) -> str:
    """Describes whether an MPI accepts pointers to GPU memory, as far as that is known."""
    if mpi.flavour is not MpiFlavour.OPENMPI:
        return "it doesn't say whether it takes GPU memory; if it doesn't, runs crash"
    program = shutil.which("ompi_info", path=str(mpi.launcher.parent))
    if program is None:
        return "there is no ompi_info that says whether it takes GPU memory"
    try:
        done = process.run_process(
            [program, "--parsable", "--all"],
            environment={**environment, **mpi.environment},
            timeout_s=_LIMIT_S,
            whole_output=True,
        )
    except MissingComponent as missing:
        return missing.message
    return _describe_gpu_support(done.output)


def _describe_gpu_support(ompi_info: str) -> str:
    if _BUILT_WITH.search(ompi_info):
        return "built with support for GPU memory"
    if _HAS_UCX.search(ompi_info):
        return (
            "built without GPUs, but with UCX: takes GPU memory by a UCX that was built with it, "
            "first on LD_LIBRARY_PATH, and OMPI_MCA_pml=ucx"
        )
    return "built without GPUs: runs crash"
