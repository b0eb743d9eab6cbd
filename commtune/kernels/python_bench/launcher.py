"""What launchers say of this rank before MPI is up, as src/launcher.cpp reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_SLURM_LOCAL_RANK = "SLURM_LOCALID"
#: Slurm's come last: in a job's script, and so in what another launcher starts from there, they
#: speak of the script.
_LOCAL_RANK = (
    "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
    "MVP_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "FLUX_TASK_LOCAL_ID",
    _SLURM_LOCAL_RANK,
)  # fmt: skip
_LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
    "MVP_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE",
)  # fmt: skip
_RANKS = (
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS",
)  # fmt: skip
_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def speaks_for_all() -> bool:
    """Whether this is rank 0, as far as the launcher's variables tell."""
    return all(os.environ.get(name, "0") == "0" for name in _RANK)


def local_rank() -> int | None:
    """This rank's place on its node; ``None`` where no launcher says it."""
    name = _first_set(_LOCAL_RANK)
    return _number(os.environ[name]) if name else None


def local_ranks() -> int:
    """Ranks on this node, of srun the most on any node; 0 where no launcher says it."""
    if name := _first_set(_LOCAL_RANKS):
        return _number(os.environ[name]) or 0
    # "4(x2),1" are four tasks on each of two nodes, and one.
    tasks = os.environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    is_srun = _first_set(_LOCAL_RANK) == _SLURM_LOCAL_RANK
    return max(_number(part) or 0 for part in tasks.split(",")) if is_srun else 0


def launched_ranks() -> int:
    """The most ranks that a launcher says it started; 0 where none says it."""
    return max(_number(os.environ.get(name, "")) or 0 for name in _RANKS)


def _first_set(names: Sequence[str]) -> str:
    return next((name for name in names if name in os.environ), "")


def _number(text: str) -> int | None:
    """The number that a text begins with."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else None
