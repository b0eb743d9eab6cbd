"""Finds the search space for the example campaign."""

from __future__ import annotations

from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.model import MpiFlavour
from commtune.spaces.preset_choice import choose_preset


def find_other_space() -> str:
    """Returns the allreduce space of this machine's MPI; empty for MPICH, or without an MPI."""
    try:
        mpi = find_mpi("auto")
    except CommtuneError:
        return ""
    if mpi.flavour is MpiFlavour.MPICH:
        return ""
    return choose_preset(mpi.flavour.library, mpi.version, operation="allreduce")
