"""What the example campaign is made to fit."""

from __future__ import annotations

from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.model import MpiFlavour
from commtune.spaces.preset_choice import choose_preset


def find_other_space() -> str:
    """The allreduce space of this machine's MPI; empty where that is MPICH, or none is here."""
    try:
        mpi = find_mpi("auto")
    except CommtuneError:
        return ""
    if mpi.flavour is MpiFlavour.MPICH:
        return ""
    return choose_preset(mpi.flavour.library, mpi.version, operation="allreduce")
