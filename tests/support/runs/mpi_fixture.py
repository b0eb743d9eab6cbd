"""The MPI that tests run on: the project's MPICH wheel, or one that the environment names."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

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
        return find_mpi(named or "wheel:mpich", project_mpi=[_ROOT / ".mpi"])
    except CommtuneError:
        if named:  # someone meant it: a skip would hide the mistake
            raise
        return None


@cache
def session_benchmark() -> Path | None:
    """The native benchmark built for ``session_mpi``, kept between test sessions; or none.

    The cache goes by content, so that an old executable is never taken for a new one.
    """
    mpi = session_mpi()
    return build_benchmark(mpi, BUILT).executable if mpi else None
