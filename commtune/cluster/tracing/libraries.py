"""Which library is traced how."""

from __future__ import annotations

from commtune.cluster.tracing.library import TracedLibrary
from commtune.cluster.tracing.mpich import MPICH
from commtune.cluster.tracing.nccl import NCCL
from commtune.cluster.tracing.openmpi import OPENMPI
from commtune.model import Backend, MpiFlavour

#: Control variables of Intel MPI and Cray MPICH don't have the names of the environment variables,
#: so that nothing can be told there beyond fingerprints.
_LIBRARIES = {
    MpiFlavour.MPICH: MPICH,
    MpiFlavour.OPENMPI: OPENMPI,
    MpiFlavour.INTEL: TracedLibrary(),
    MpiFlavour.CRAY: TracedLibrary(),
    MpiFlavour.NONE: TracedLibrary(),
}


def library_of(flavour: MpiFlavour, backend: str = Backend.MPI_HOST) -> TracedLibrary:
    """How what a backend communicates by is traced: an MPI family, or NCCL and its kin."""
    return NCCL if backend == Backend.XCCL else _LIBRARIES[flavour]
