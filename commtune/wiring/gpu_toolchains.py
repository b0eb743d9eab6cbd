"""What a backend needs beside MPI: GPUs, a toolchain to build with, the libraries that it uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from commtune.cluster.local.launch import HOST_ID
from commtune.cluster.machine import gpus
from commtune.cluster.machine.description import Machine, describe_machine
from commtune.errors import MissingComponent, UserError
from commtune.kernels.toolchains import Toolchain, find_toolchain, why_no_xccl
from commtune.model import Backend, GpuKind, MpiFlavour, MpiInstallation, Workload

#: Architectures to build for where there is no GPU to ask: a login node. Separated by commas.
_ARCHITECTURES_VARIABLE = "COMMTUNE_GPU_ARCHITECTURES"

#: What spaces call the libraries.
_XCCL = {GpuKind.CUDA: "nccl", GpuKind.HIP: "rccl"}
_VENDORS = {"nvidia": GpuKind.CUDA, "amd": GpuKind.HIP}


def _kind_of(machine: Machine) -> GpuKind:
    """What GPU code is built for here; CUDA where no GPU says otherwise."""
    vendors = [gpu.vendor for gpu in machine.gpus]
    return _VENDORS[vendors[0]] if vendors else GpuKind.CUDA


def toolchain_for(backend: str) -> Toolchain | None:
    """What the benchmark is built with for a backend; ``None`` for one without GPUs.

    Raises:
        MissingComponent: there is no compiler, NCCL or RCCL, or nothing tells the architecture.
    """
    if not Backend(backend).uses_gpu:
        return None
    found = _toolchain(_kind_of(_machine()))
    if backend == Backend.XCCL and found.xccl is None:
        raise MissingComponent("the backend xccl can't be built", hint=why_no_xccl(found))
    return found


def find_user_toolchain(gpu: str, architectures: Sequence[str]) -> tuple[Toolchain | None, str]:
    """The toolchain that a user asks for, or why there is none.

    Args:
        gpu: a word of ``GpuKind``, or ``auto`` for what this machine has.
        architectures: to build for; those of this machine's GPUs where none are given.

    Raises:
        MissingComponent: what was asked for by name isn't there.
    """
    if gpu == GpuKind.NONE:
        return None, "GPUs are not asked for"
    named = architectures or _named_architectures()
    if gpu != "auto":
        return find_toolchain(GpuKind(gpu), os.environ, named), ""
    is_amd = any(name.startswith("gfx") for name in named)
    kind = (GpuKind.HIP if is_amd else GpuKind.CUDA) if named else _kind_of(_machine())
    try:
        return find_toolchain(kind, os.environ, named), ""
    except MissingComponent as missing:
        return None, f"{missing.message}; {missing.hint}"


def waived_backends(
    toolchain: Toolchain | None, why: str, built: Mapping[str, str]
) -> dict[str, str]:
    """The backends that an executable lacks, each with the reason.

    Args:
        why: there is no toolchain.
        built: see ``kernels.build.backends_of``.
    """
    reasons = {name: reason for name, reason in built.items() if reason}
    if toolchain is None:
        return dict.fromkeys(reasons, why)
    no_xccl = {str(Backend.XCCL): why_no_xccl(toolchain)} if toolchain.xccl is None else {}
    return {**reasons, **no_xccl}


def require_backend(backend: str, built: Mapping[str, str]) -> None:
    """Makes sure that an executable has a backend; raises ``MissingComponent``."""
    if reason := built.get(backend, "" if backend in built else "it is not known"):
        raise MissingComponent(
            f"the backend {backend} could not be built: {reason}",
            hint="'commtune build' shows what there is",
        )


def _named_architectures() -> list[str]:
    return os.environ.get(_ARCHITECTURES_VARIABLE, "").replace(",", " ").split()


@cache
def _machine() -> Machine:
    return describe_machine()


@cache
def _toolchain(kind: GpuKind) -> Toolchain:
    return find_toolchain(kind, os.environ, _named_architectures())


def check_launch(workload: Workload, environment: Mapping[str, str]) -> None:
    """Makes sure that this machine has what a workload's ranks need.

    Raises:
        MissingComponent, UserError: too few GPUs; or nodes can't be emulated.
    """
    if Backend(workload.backend).uses_gpu:
        gpus.require_gpus(_machine().gpus, environment, workload.ranks)
    if workload.emulated_nodes and HOST_ID in environment:
        raise UserError(
            f"{HOST_ID}={environment[HOST_ID]} is set in this environment, so that nodes can't be "
            "emulated: all ranks would be on one",
            hint=f"unset {HOST_ID}, or take emulate_nodes out of the campaign",
        )


def libraries_of(backend: str, mpi: MpiInstallation) -> dict[str, str]:
    """The libraries whose variables have an effect under a backend, with their versions.

    A version is empty where it isn't known.
    """
    if backend == Backend.XCCL:
        found = toolchain_for(backend)
        if found is None or found.xccl is None:
            return {}
        return {_XCCL[found.kind]: found.xccl.version}
    named = {mpi.flavour.library: mpi.version}
    may_use_ucx = Backend(backend).uses_gpu and mpi.flavour is not MpiFlavour.INTEL
    return {**named, **({"ucx": ""} if may_use_ucx else {})}


def stack_of(backend: str) -> dict[str, Any]:
    """Versions of the GPUs' software, for what results are bound to; empty without GPUs."""
    found = toolchain_for(backend)
    if found is None:
        return {}
    versions = {str(found.kind): found.version}
    if backend == Backend.XCCL and found.xccl is not None:
        versions[found.xccl.name.lower()] = found.xccl.version
    drivers = sorted({gpu.driver for gpu in _machine().gpus})
    return {"backend": str(backend), **versions, "gpu_drivers": drivers}
