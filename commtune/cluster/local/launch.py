"""Launchers: how a command becomes N ranks. They only say the command line; nothing runs here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from commtune.cluster.exit_codes import JudgeLauncher
from commtune.errors import MissingComponent
from commtune.model import PROTECTED_NAMES, MpiFlavour, MpiInstallation

#: What a run takes over from the controller's environment. Everything else stays outside: what
#: happens to be set in somebody's shell neither changes a campaign nor leaks into it.
_BASE_NAMES = (
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ",
    "USER", "XDG_RUNTIME_DIR",
)  # fmt: skip

#: Which GPUs are ours, in which order: set by schedulers and users, for all that we start.
_DEVICE_NAMES = (
    "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)  # fmt: skip

#: How Open MPI's launcher starts processes and where PMIx keeps what they tell each other: where a
#: machine needs them, nothing starts without; they change nothing that is measured.
LAUNCHER_NAMES = ("OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "PMIX_MCA_gds", "PRTE_MCA_plm")

#: By which NCCL knows a node; two values on one machine make it two nodes.
HOST_ID = "NCCL_HOSTID"


@dataclass(frozen=True)
class Launcher:
    """How a command becomes the ranks of a run."""

    #: From the number of ranks, the program's words and the seconds that it may take, to the words
    #: that start them.
    command: Callable[[int, Sequence[str], float], Sequence[str]]
    #: All ranks are processes of this machine, below the one that is started: its load and its
    #: shared memory tell of them.
    is_local: bool = True
    #: Seconds that a launcher which keeps the limit itself needs to end its ranks.
    grace_s: float = 0.0
    #: For timed runs, from the run's identifier, its own variables, the launcher's words and the
    #: seconds that it may take, to words that are started without these variables: they set them
    #: for the launcher, and start something else besides.
    around: Callable[[str, Mapping[str, str], Sequence[str], float], Sequence[str]] | None = None
    #: Whether the launcher is to blame for a run that failed.
    judge: JudgeLauncher | None = None


def local_launcher(
    mpi: MpiInstallation, *, bound: bool = True, emulated_nodes: int = 0
) -> Launcher:
    """Starts the ranks on this machine; arguments as for ``mpi_command``.

    Raises:
        MissingComponent: the MPI has no launcher of its own, and needs Slurm's.
    """
    if mpi.flavour is MpiFlavour.CRAY:
        raise MissingComponent(
            f"ranks of Cray MPICH {mpi.version} are started by srun, in jobs",
            hint="run a campaign on Slurm: add `slurm: {}` to its file, with what your site asks "
            "for, or `system: NAME`",
        )

    def command(ranks: int, program: Sequence[str], limit_s: float) -> Sequence[str]:
        del limit_s  # ours to keep
        return _mpi_command(mpi, ranks, program, bound=bound, emulated_nodes=emulated_nodes)

    return Launcher(command)


def _mpi_command(
    mpi: MpiInstallation,
    ranks: int,
    program: Sequence[str],
    *,
    bound: bool = True,
    emulated_nodes: int = 0,
) -> list[str]:
    """The command line that starts ``ranks`` ranks of a program on this machine.

    Args:
        bound: whether the launcher may bind ranks to cores by its own lights. Not where ranks
            bind themselves: what it took away they can't have back.
        emulated_nodes: so many groups of ranks in a row, equally large, that NCCL takes for
            different nodes; 0 for none.
    """
    if mpi.flavour is MpiFlavour.NONE:
        return [*program]
    loose = () if bound else _LOOSE.get(mpi.flavour, ())
    launcher = [str(mpi.launcher), *_OPTIONS.get(mpi.flavour, ()), *loose]
    if not emulated_nodes:
        return [*launcher, "-n", str(ranks), *program]
    each = str(ranks // emulated_nodes)
    words: list[str] = []
    for group in range(emulated_nodes):
        # Launchers have options for a group's variables, each its own; env is the same for all.
        named = ["-n", each, "env", f"{HOST_ID}=commtune-{group}", *program]
        words += [":", *named] if words else named
    return [*launcher, *words]


def base_environment(
    inherited: Mapping[str, str], mpi: MpiInstallation, guards: Sequence[str] = ()
) -> dict[str, str]:
    """The environment under every run, before pinned variables and the configuration.

    Args:
        inherited: the controller's environment, of which little is taken.
        guards: names of further protected variables that pass unchanged where they are set.
    """
    names = (*_BASE_NAMES, *_DEVICE_NAMES, *LAUNCHER_NAMES, *PROTECTED_NAMES, *guards)
    environment = {name: inherited[name] for name in names if name in inherited}
    folders = (str(mpi.launcher.parent), environment.get("PATH", os.defpath))
    environment["PATH"] = os.pathsep.join(filter(None, folders))
    return {**_without_ssh(mpi, environment), **environment, **mpi.environment}


def command_path(inherited: Mapping[str, str], mpi: MpiInstallation) -> str:
    """PATH of a user's own command: what their shell finds, then the MPI's."""
    path = inherited.get("PATH", os.defpath)
    return os.pathsep.join(filter(None, (path, str(mpi.launcher.parent))))


def _without_ssh(mpi: MpiInstallation, environment: Mapping[str, str]) -> dict[str, str]:
    """Without ssh Open MPI 4 starts nothing, not even here, unless it is told to."""
    if mpi.flavour is not MpiFlavour.OPENMPI or not mpi.version.startswith("4."):
        return {}
    found = any(shutil.which(name, path=environment["PATH"]) for name in ("ssh", "rsh"))
    return {} if found else {"OMPI_MCA_plm": "isolated"}


#: Inside a batch job hydra would start its proxies through the scheduler; here is one machine.
_HYDRA = ("-launcher", "fork")
_OPTIONS: Mapping[MpiFlavour, tuple[str, ...]] = {
    MpiFlavour.MPICH: _HYDRA,
    MpiFlavour.INTEL: _HYDRA,
    MpiFlavour.MVAPICH: _HYDRA,
    # More ranks than cores is our business to flag, not the launcher's to refuse.
    MpiFlavour.OPENMPI: ("--map-by", ":OVERSUBSCRIBE"),
}
#: Leaves ranks unbound; MPICH's launcher does so by itself.
_LOOSE: Mapping[MpiFlavour, tuple[str, ...]] = {
    MpiFlavour.INTEL: ("-genv", "I_MPI_PIN", "0"),
    MpiFlavour.OPENMPI: ("--bind-to", "none"),
}
