"""The MPI that tests run on: the project's MPICH wheel, or one that the environment names."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from pathlib import Path

import pytest
from components import require_component

from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.kernels.build import build_benchmark
from commtune.model import MpiInstallation

_ROOT = Path(__file__).parents[3]
#: Cache of built benchmarks; where the command line of end-to-end tests looks as well, so that no
#: session builds twice.
BUILT = _ROOT / "build" / "end-to-end-cache" / "commtune"


@cache
def session_mpi() -> MpiInstallation | None:
    """The MPI named by COMMTUNE_TEST_MPI (a prefix), else the project's MPICH wheel, or none."""
    named = os.environ.get("COMMTUNE_TEST_MPI", "")
    try:
        return find_mpi(named or "wheel:mpich")
    except CommtuneError:
        if named:  # someone meant it: a skip would hide the mistake
            raise
        return None


def built_benchmark(mpi: MpiInstallation) -> Path:
    """The native benchmark for an MPI, kept between test sessions.

    The cache goes by content, so that an old executable is never taken for a new one.
    """
    BUILT.mkdir(parents=True, exist_ok=True)
    # Of several processes of a session that want it, one builds, and the others wait for it.
    with (BUILT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_benchmark(mpi, BUILT).executable


@pytest.fixture(scope="session")
def mpi() -> MpiInstallation:
    """The MPI that tests run on."""
    found = session_mpi()
    require_component("an MPI (make .mpi/mpich)", found is not None)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def executable(mpi: MpiInstallation) -> Path:
    """The native benchmark for it, where the command line looks as well."""
    return built_benchmark(mpi)


@pytest.fixture
def shared_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process look for benchmarks where all tests build them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(BUILT.parent))
