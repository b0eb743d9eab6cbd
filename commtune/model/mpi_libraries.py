"""MPI libraries as they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class MpiFlavour(StrEnum):
    """MPI families whose launcher and quirks commtune knows."""

    MPICH = "mpich"
    OPENMPI = "openmpi"
    INTEL = "intel"
    CRAY = "cray-mpich"
    #: A user's own command of one process, where there is no MPI: it is started as it is.
    NONE = "none"

    @property
    def library(self) -> str:
        """What search spaces and the catalogue call it."""
        return "intel-mpi" if self is MpiFlavour.INTEL else str(self)


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI that the benchmark can be compiled with and launched by.

    Attributes:
        compiler: the C++ compiler wrapper (mpicxx); for a user's own command it need not exist.
        launcher: mpiexec.
        environment: what this installation needs to compile and run at all (I_MPI_ROOT, say).
        origin: ``wheel:mpich``, ``path`` or ``prefix``: how it was found.
    """

    flavour: MpiFlavour
    version: str
    prefix: Path
    compiler: Path
    launcher: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    origin: str = "path"
