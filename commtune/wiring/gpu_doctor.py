"""What of the backends on GPUs could be had here, for ``commtune doctor``."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from commtune import process
from commtune.cluster.machine.description import Machine
from commtune.cluster.machine.doctor import Check, Status
from commtune.errors import MissingComponent
from commtune.kernels.toolchains import UNKNOWN, Toolchain, ask_xccl_version, why_no_xccl
from commtune.model import Backend, GpuKind, MpiFlavour, MpiInstallation
from commtune.wiring.gpu_toolchains import find_user_toolchain

_LIMIT_S = 30.0
#: By which executables ask for them.
_SONAMES = {GpuKind.CUDA: "libnccl.so.2", GpuKind.HIP: "librccl.so.1"}
#: How Open MPI says that it was built with CUDA, or has a UCX that may be.
_BUILT_WITH = re.compile(
    r"(mpi|opal)_built_with_cuda_support:value:true|mca:accelerator:(cuda|rocm):version"
)
_HAS_UCX = re.compile(r"mca:pml:ucx:version")


def check_backends(machine: Machine, mpi: MpiInstallation | None) -> Iterator[Check]:
    """Each backend, or why it is waived."""
    yield Check("backend", Status.OK, f"{Backend.MPI_HOST}: MPI over host memory")
    if not machine.gpus:
        yield Check("backend", Status.OK, "GPU backends are waived: no GPU here")
        return
    toolchain, why = find_user_toolchain("auto", ())
    if toolchain is None:
        names = ", ".join(backend for backend in Backend if backend.uses_gpu)
        yield Check("backend", Status.WARNING, f"{names}: waived: {why}")
        return
    compiler = f"{str(toolchain.kind).upper()} {toolchain.version}, {toolchain.compiler}"
    yield Check("toolchain", Status.OK, compiler)
    yield _xccl(toolchain)
    yield from _check_loaded_xccl(toolchain, os.environ)
    staged = f"{Backend.MPI_STAGED}, {Backend.IPC_PUT}, {Backend.IPC_GET}: can be built"
    yield Check("backend", Status.OK, staged)
    if mpi is not None:
        aware = _is_gpu_aware(mpi, os.environ)
        what = f"{Backend.MPI_DEVICE}: {mpi.flavour} {mpi.version}: {aware}"
        yield Check("backend", Status.OK, what)


def _xccl(toolchain: Toolchain) -> Check:
    found = toolchain.xccl
    if found is None:
        what = f"{Backend.XCCL}: waived: {why_no_xccl(toolchain)}"
        return Check("backend", Status.WARNING, what)
    what = f"{Backend.XCCL}: {found.name} {found.version}, {found.library}"
    return Check("backend", Status.OK, what)


def _check_loaded_xccl(toolchain: Toolchain, environment: Mapping[str, str]) -> Iterator[Check]:
    """Warns of an NCCL or RCCL that LD_LIBRARY_PATH puts before the one that is compiled with.

    The executable keeps the folder of its own as RUNPATH, which is searched after that variable.
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
                f"export LD_LIBRARY_PATH={shlex.quote(kept)}" if kept else "unset LD_LIBRARY_PATH",
            )
        return


def _is_gpu_aware(mpi: MpiInstallation, environment: Mapping[str, str]) -> str:
    """Whether an MPI takes pointers to GPU memory, as far as it says."""
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
    """What ``ompi_info --parsable --all`` says of GPUs."""
    if _BUILT_WITH.search(ompi_info):
        return "built with support for GPU memory"
    if _HAS_UCX.search(ompi_info):
        return (
            "built without GPUs, but with UCX: takes GPU memory by a UCX that was built with it, "
            "first on LD_LIBRARY_PATH, and OMPI_MCA_pml=ucx"
        )
    return "built without GPUs: runs crash"
