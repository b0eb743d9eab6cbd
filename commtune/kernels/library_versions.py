"""Finds the versions of libraries that an MPI loads, without a launcher and a build."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from commtune import process
from commtune.errors import CommtuneError
from commtune.kernels.programs import libmpi_of
from commtune.kernels.python_bench.libraries import VERSIONS_SIGN
from commtune.model import MpiFlavour, MpiInstallation

_LIMIT_S = 30.0
#: Settings to load libraries that are for several nodes only; the user's take precedence.
_BETWEEN_NODES = {MpiFlavour.INTEL: {"I_MPI_FABRICS": "shm:ofi"}}


def probe_library_versions(
    mpi: MpiInstallation, environment: Mapping[str, str]
) -> dict[str, str] | None:
    """Returns versions of libraries that a single process with the MPI loads, by catalogue.

    ``None`` if the MPI can't start without a launcher here, as on some login nodes.
    """
    module = "commtune.kernels.python_bench.libraries"
    between = _BETWEEN_NODES.get(mpi.flavour, {})
    try:
        done = process.run_process(
            [sys.executable, "-P", "-m", module, libmpi_of(mpi)],
            environment={**between, **environment, **mpi.environment},
            timeout_s=_LIMIT_S,
            whole_output=True,
        )
    except CommtuneError:
        return None
    for line in done.output.splitlines():
        if line.startswith(VERSIONS_SIGN):
            try:
                return read_versions(json.loads(line.removeprefix(VERSIONS_SIGN)))
            except ValueError:
                return {}
    return None


def read_versions(said: object) -> dict[str, str]:
    """Returns the versions of libraries in a record, which may be damaged."""
    if not isinstance(said, Mapping):
        return {}
    return {n: v for n, v in said.items() if isinstance(n, str) and isinstance(v, str)}
