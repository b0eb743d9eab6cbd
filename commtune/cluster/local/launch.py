"""Builds the command lines and environments of local launchers; starts nothing itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from commtune.cluster.exit_codes import JudgeLauncher
from commtune.errors import MissingComponent
from commtune.model import PROTECTED_NAMES, MpiFlavour, MpiInstallation

#: Variables that a run inherits from the controller. No others, so that settings in a user's shell
#: neither change a campaign nor leak into its records.
_BASE_NAMES = (
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ",
    "USER", "XDG_RUNTIME_DIR",
)  # fmt: skip

#: Variables of schedulers and users that select GPUs and their order.
_DEVICE_NAMES = (
    "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)  # fmt: skip

#: Variables for how Open MPI's launcher starts processes, and for PMIx's data store. Some machines
#: need them to start any process; they don't change results.
LAUNCHER_NAMES = ("OMPI_MCA_plm", "OMPI_MCA_plm_rsh_agent", "PMIX_MCA_gds", "PRTE_MCA_plm")

#: NCCL's identifier of a node; two values on one machine emulate two nodes.
HOST_ID = "NCCL_HOSTID"


@dataclass(frozen=True)
class Launcher:
    """A way to start the ranks of a run."""

    #: Takes the number of ranks, the program's command line and its time limit (seconds); returns
    #: the command line that starts the ranks.
    command: Callable[[int, Sequence[str], float], Sequence[str]]
    #: Whether all ranks are descendants of the started process, so that they share this machine's
    #: load and shared memory.
    is_local: bool = True
    #: Seconds that a launcher which enforces the limit itself needs to end its ranks.
    grace_s: float = 0.0
    #: For timed runs: takes the run's identifier, its variables, the launcher's command line and
    #: its time limit (seconds); returns the command line of a wrapper, which sets the variables
    #: for the launcher and starts something else besides.
    around: Callable[[str, Mapping[str, str], Sequence[str], float], Sequence[str]] | None = None
    #: Judges whether the launcher is to blame for a failed run.
    judge: JudgeLauncher | None = None


def local_launcher(
    mpi: MpiInstallation, *, bound: bool = True, emulated_nodes: int = 0
) -> Launcher:
    """Returns a launcher for this machine.

    Args:
        bound: whether the launcher may bind ranks to cores by its default. Ranks that bind
            themselves could only use the cores that it left them.
        emulated_nodes: number of equal groups of consecutive ranks that NCCL takes for different
            nodes; 0 for none.

    Raises:
        MissingComponent: the MPI has no launcher of its own, and needs Slurm's.
    """
    if mpi.flavour is MpiFlavour.CRAY:
        raise MissingComponent(
            f"ranks of Cray MPICH {mpi.version} are started by srun, in jobs",
            hint="run a campaign on Slurm: add `slurm: {}` to its file, with what your site asks "
            "for, or `system: NAME`",
        )

    loose = () if bound else _LOOSE.get(mpi.flavour, ())
    launcher = [str(mpi.launcher), *_OPTIONS.get(mpi.flavour, ()), *loose]

    def command(ranks: int, program: Sequence[str], limit_s: float) -> list[str]:
        del limit_s  # the caller enforces it
        if mpi.flavour is MpiFlavour.NONE:
            return [*program]
        if not emulated_nodes:
            return [*launcher, "-n", str(ranks), *program]
        each = str(ranks // emulated_nodes)
        words: list[str] = []
        for group in range(emulated_nodes):
            # Launchers differ in their options for a group's variables; env works with all.
            named = ["-n", each, "env", f"{HOST_ID}=commtune-{group}", *program]
            words += [":", *named] if words else named
        return [*launcher, *words]

    return Launcher(command)


def base_environment(
    inherited: Mapping[str, str], mpi: MpiInstallation, guards: Sequence[str] = ()
) -> dict[str, str]:
    """Returns the environment of every run, before pinned variables and the configuration.

    Args:
        inherited: the controller's environment, of which few variables are kept.
        guards: names of further protected variables that are kept unchanged.
    """
    names = (*_BASE_NAMES, *_DEVICE_NAMES, *LAUNCHER_NAMES, *PROTECTED_NAMES, *guards)
    environment = {name: inherited[name] for name in names if name in inherited}
    folders = (str(mpi.launcher.parent), environment.get("PATH", os.defpath))
    environment["PATH"] = os.pathsep.join(filter(None, folders))
    return {**_without_ssh(mpi, environment), **environment, **mpi.environment}


def command_path(inherited: Mapping[str, str], mpi: MpiInstallation) -> str:
    """Returns PATH for a user's own command: that of their shell, then the MPI's folder."""
    path = inherited.get("PATH", os.defpath)
    return os.pathsep.join(filter(None, (path, str(mpi.launcher.parent))))


def _without_ssh(mpi: MpiInstallation, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variable that Open MPI 4 needs to start ranks if there is no ssh."""
    if mpi.flavour is not MpiFlavour.OPENMPI or not mpi.version.startswith("4."):
        return {}
    found = any(shutil.which(name, path=environment["PATH"]) for name in ("ssh", "rsh"))
    return {} if found else {"OMPI_MCA_plm": "isolated"}


#: Inside a batch job, hydra would start its proxies by the scheduler; one machine needs none.
_HYDRA = ("-launcher", "fork")
_OPTIONS: Mapping[MpiFlavour, tuple[str, ...]] = {
    MpiFlavour.MPICH: _HYDRA,
    MpiFlavour.INTEL: _HYDRA,
    MpiFlavour.MVAPICH: _HYDRA,
    # We report more ranks than cores ourselves; the launcher must not refuse them.
    MpiFlavour.OPENMPI: ("--map-by", ":OVERSUBSCRIBE"),
}
#: Options that leave ranks unbound, which is the default of MPICH's launcher.
_LOOSE: Mapping[MpiFlavour, tuple[str, ...]] = {
    MpiFlavour.INTEL: ("-genv", "I_MPI_PIN", "0"),
    MpiFlavour.OPENMPI: ("--bind-to", "none"),
}
