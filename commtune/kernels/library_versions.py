"""Versions of the libraries that an MPI loads by itself, without a launcher and a build."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from commtune import process
from commtune.errors import CommtuneError
from commtune.kernels.programs import libmpi_of
from commtune.kernels.python_bench.libraries import VERSIONS_SIGN
from commtune.model import MpiFlavour, MpiInstallation

_LIMIT_S = 30.0
#: What is loaded only for ranks on several nodes; what the user says of it comes first.
_BETWEEN_NODES = {MpiFlavour.INTEL: {"I_MPI_FABRICS": "shm:ofi"}}


def probe_library_versions(
    mpi: MpiInstallation, environment: Mapping[str, str]
) -> dict[str, str] | None:
    """Versions, by the catalogue's names, of what a process of its own loads with the MPI.

    Args:
        environment: of that process; what the MPI needs is added.

    Returns:
        ``None`` where the MPI does not start like that, as on a login node from which only jobs
        may.
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
                return versions_in({"versions": json.loads(line.removeprefix(VERSIONS_SIGN))})
            except ValueError:
                return {}
    return None


def versions_in(header: Mapping[str, Any] | None) -> dict[str, str]:
    """What a run's header says of versions that it knows."""
    said = (header or {}).get("versions")
    if not isinstance(said, Mapping):
        return {}
    return {n: v for n, v in said.items() if isinstance(n, str) and isinstance(v, str)}
