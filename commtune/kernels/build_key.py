"""Computes the cache key of a build of the benchmark, from all that the build depends on."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping

import commtune
from commtune.kernels.toolchains import Toolchain
from commtune.model import GpuKind, MpiInstallation, content_key

#: Variables by which users or environment modules affect a compiler or its wrapper. If one is
#: missing, a stale build is used when it changes. The list comes from the wrappers themselves, and
#: from HPE's and AMD's manuals.
_COMPILER_VARIABLES = (
    "CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
    "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
    "LD_RUN_PATH",
    "MPICH_CXX", "MPICXX_PROFILE",
    "OMPI_CXX", "OMPI_MPICXX", "OMPI_CPPFLAGS", "OMPI_CXXFLAGS", "OMPI_LDFLAGS", "OMPI_LIBS",
    "OPAL_PREFIX", "OPAL_INCLUDEDIR", "OPAL_LIBDIR", "OPAL_DATADIR", "OPAL_PKGDATADIR",
    "I_MPI_CXX", "I_MPI_CXXFLAGS", "I_MPI_LDFLAGS", "I_MPI_CXX_PROFILE", "I_MPI_LINK",
    "I_MPI_ROOT", "I_MPI_COMPILER_CONFIG_DIR", "I_MPI_DEBUG_INFO_STRIP",
)  # fmt: skip
_GPU_VARIABLES = {
    GpuKind.CUDA: ("CUDAFLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS"),
    GpuKind.HIP: (
        "HIPFLAGS", "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND",
        "ROCM_PATH", "HIP_PATH", "HIP_CLANG_PATH", "HIP_PLATFORM", "HIP_COMPILER", "HIP_RUNTIME",
        "HIP_ROCCLR_HOME", "HIP_LIB_PATH", "HIP_DEVICE_LIB_PATH", "DEVICE_LIB_PATH",
    ),
}  # fmt: skip
#: Set if HPE's programming environment is loaded. Its compiler driver CC reads variables of the
#: modules, such as ``CRAY_ACCEL_TARGET`` and ``PE_MPICH_GTL_DIR_amd_gfx90a`` for GPUs. Elsewhere,
#: ``PE_`` may belong to other software: Grid Engine has one that changes with every job.
_HPE = "PE_ENV"
_HPE_PREFIXES = ("CRAY_", "CRAYPE_", "PE_")
_HPE_VARIABLES = ("PKG_CONFIG_PATH",)


def build_key(
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    compiler_version: str,
    environment: Mapping[str, str],
    sources: str,
) -> str:
    """Returns the key of a build, which changes with anything that it depends on.

    Args:
        sources: digest of the benchmark's sources.
    """
    return content_key(
        {
            "sources": sources,
            "version": commtune.__version__,
            # Machines of several kinds may share a home, with equal paths and versions.
            "processor": platform.machine(),
            "compiler": [str(mpi.compiler), compiler_version],
            "mpi": [str(mpi.flavour), mpi.version, str(mpi.prefix)],
            "variables": {name: environment[name] for name in _names(toolchain, environment)},
            "gpu": toolchain.plain() if toolchain else None,
        }
    )


def _names(toolchain: Toolchain | None, environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the environment's variables that can affect a build."""
    named = {*_COMPILER_VARIABLES, *(_GPU_VARIABLES[toolchain.kind] if toolchain else ())}
    is_hpe = _HPE in environment
    for name in environment:
        of_hpe = name in _HPE_VARIABLES or name.startswith(_HPE_PREFIXES)
        if name in named or (is_hpe and of_hpe):
            yield name


def named_headers_first(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with CPATH moved behind the header folders that we pass."""
    # Environment modules set CPATH, which compilers search like -I and so before -isystem: the
    # nccl.h of another module would be used with our library. CPLUS_INCLUDE_PATH is after both.
    folders = environment.get("CPATH", "").split(":")
    if not any(folders):
        return dict(environment)
    last = [*environment.get("CPLUS_INCLUDE_PATH", "").split(":"), *folders]
    moved = {**environment, "CPLUS_INCLUDE_PATH": ":".join(filter(None, last))}
    return {name: value for name, value in moved.items() if name != "CPATH"}
