"""The twin as a program that the tuner can use; nothing of a run imports this."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.kernels.records import Records, read_records
from commtune.model import MpiFlavour, MpiInstallation, RunRequest

#: Names under which the system's own libraries are found, for an MPI that is part of it.
_SYSTEM_NAMES = {
    MpiFlavour.MPICH: ("libmpich.so.12", "libmpi.so.12"),
    MpiFlavour.OPENMPI: ("libmpi.so.40",),
    MpiFlavour.INTEL: ("libmpi.so.12",),
    MpiFlavour.CRAY: ("libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpi_gnu_91.so.12"),
}


@dataclass(frozen=True)
class TwinProgram:
    """The benchmark in Python; implements ``tuner.ports.Program``.

    Attributes:
        libmpi: where the MPI library is; see ``libmpi_of``.
        pattern: a user's pattern, FILE.py:CLASS, with an absolute path; empty for operations.
        env_names: variables whose values every rank reports in the header.
    """

    libmpi: str
    pattern: str = ""
    env_names: Sequence[str] = ()
    python: str = sys.executable

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        """The command line of one rank."""
        workload, timing = request.workload, request.timing
        options = {
            "op": workload.operation,
            "python": self.pattern,
            "sizes": ",".join(str(size) for size in workload.sizes),
            "dtype": workload.dtype,
            "reduction": workload.reduction,
            "window": workload.window or "",
            "backend": workload.backend,
            "records": records,
            "run-id": request.run_id,
            "expect-ranks": workload.ranks,
            "warmup": timing.warmup,
            "min-samples": timing.min_samples,
            "max-samples": timing.max_samples,
            "relative-ci": repr(timing.relative_ci),
            "time-cap": repr(timing.time_cap_s),
            "env-names": ",".join(self.env_names),
            "libmpi": self.libmpi,
        }
        # -P: the folder that it is started in is no place to import from.
        command = [self.python, "-P", "-m", "commtune.kernels.python_bench"]
        return [*command, *(f"--{name}={value}" for name, value in options.items() if value != "")]

    def read(self, records: Path, request: RunRequest) -> Records:
        """Reads a record file and holds it against what was asked for."""
        return read_records(records, request)


def libmpi_of(mpi: MpiInstallation) -> str:
    """Where mpi4py is to look for the library of an MPI, as MPI4PY_LIBMPI says it.

    An mpi4py that was built for one MPI has its library already, and pays no attention.
    """
    prefix = mpi.prefix
    if prefix in (Path("/"), Path("/usr")):
        return os.pathsep.join(_SYSTEM_NAMES[mpi.flavour])
    folders = [prefix / "lib", prefix / "lib64", prefix / "lib" / "release"]
    there = [str(folder) for folder in folders if any(folder.glob("libmpi*.so*"))]
    return os.pathsep.join(there or _SYSTEM_NAMES[mpi.flavour])
