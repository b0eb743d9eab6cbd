"""What a campaign asks of Slurm, beside what a description of the system says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from commtune.errors import UserError
from commtune.slurm_templates.quoting import NO_CODE, ShellCode

Placement = Literal["any", "same-switch", "same-group"]
Launcher = Literal["", "srun", "mpirun", "mpiexec"]
Mpi = Literal["", "none", "pmi2", "pmix", "cray_shasta"]


class InvalidRequest(UserError):
    """What is asked for can't be had, on this system or by this launcher.

    Args:
        key: the field of the request that is at fault.
    """

    def __init__(self, key: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


@dataclass(frozen=True)
class JobRequest:
    """What is asked of Slurm; empty where a system's description decides, or the site.

    Attributes:
        account, partition, qos, constraint, reservation, gres, memory: values of the options of
            these names (memory: of ``--mem``, for a node).
        gpus_per_node, cpus_per_rank: 0 for not asked for.
        exclusive: whether to ask for whole nodes; ``None`` does, unless a description says no.
        nodes, ranks_per_node: how many of each, for every run.
        launcher: what starts the ranks; empty is srun, if no description says otherwise.
        mpi: what srun's ``--mpi`` is given.
        launcher_options: further options of the launcher, one word each.
        cpu_bind, gpu_bind: what srun's options of these names are given.
        modules: modules to load; any replace those of the description.
        container: path of an image in which the program runs; empty for none.
        container_command: the words that stand before the image.
        prefix: words that stand before the program, such as those of numactl.
        before, after: lines of shell that a person wrote.
        templates: a folder of the user's own templates.
        jobs: how many jobs may be in flight together.
        placement: how near to each other the nodes of a job must be.
        exclude: names of nodes that no job may have.
        time_s: length of an allocation, seconds; ``None`` where it follows from the budget.
        poll_s: seconds between two questions about jobs, at first; the interval grows.
    """

    account: str = ""
    partition: str = ""
    qos: str = ""
    constraint: str = ""
    reservation: str = ""
    gres: str = ""
    gpus_per_node: int = 0
    cpus_per_rank: int = 0
    memory: str = ""
    exclusive: bool | None = None
    nodes: int = 1
    ranks_per_node: int = 1
    launcher: Launcher = ""
    mpi: Mpi = ""
    launcher_options: tuple[str, ...] = ()
    cpu_bind: str = ""
    gpu_bind: str = ""
    modules: tuple[str, ...] = ()
    container: str = ""
    container_command: tuple[str, ...] = ("apptainer", "exec")
    prefix: tuple[str, ...] = ()
    before: ShellCode = NO_CODE
    after: ShellCode = NO_CODE
    templates: Path | None = None
    jobs: int = 4
    placement: Placement = "any"
    exclude: tuple[str, ...] = ()
    time_s: float | None = None
    poll_s: float = 5.0

    def question(self) -> dict[str, object]:
        """What of it changes results, as plain data: results under another don't compare."""
        return {name: _plain(getattr(self, name)) for name in _OF_THE_QUESTION}


#: Not ``mpi``: under a wrong one nothing is measured, and it must be possible to correct it.
_OF_THE_QUESTION = (
    "partition", "constraint", "gres", "gpus_per_node", "cpus_per_rank", "memory", "exclusive",
    "nodes", "ranks_per_node", "launcher", "launcher_options", "cpu_bind", "gpu_bind", "modules",
    "container", "container_command", "prefix", "before", "placement",
)  # fmt: skip


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value
