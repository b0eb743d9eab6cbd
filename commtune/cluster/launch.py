"""Launchers: how a command becomes N ranks. They only say the command line; nothing runs here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune.model import MpiFlavour, MpiInstallation

#: What a run takes over from the controller's environment. Everything else stays outside: what
#: happens to be set in somebody's shell neither changes a campaign nor leaks into it.
BASE_NAMES = (
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ",
    "USER", "XDG_RUNTIME_DIR",
)  # fmt: skip

#: Set by administrators to keep hardware safe; they pass to every run unchanged wherever they
#: are set, and no space may search them: NVLink multicast can take shared GPUs out of service.
GUARD_NAMES = ("NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST")


@dataclass(frozen=True)
class Launcher:
    """How a command becomes the ranks of a run.

    Attributes:
        command: from the number of ranks, the program's words and the seconds that it may take,
            to the words that start them.
        is_local: all ranks are processes of this machine, below the one that is started: its
            load and its shared memory tell of them.
        grace_s: seconds that a launcher which keeps the limit itself needs to end its ranks.
        around: for timed runs, from the run's identifier, its own variables, the launcher's words
            and the seconds that it may take, to words that are started without these variables:
            they set them for the launcher, and start something else besides.
    """

    command: Callable[[int, Sequence[str], float], Sequence[str]]
    is_local: bool = True
    grace_s: float = 0.0
    around: Callable[[str, Mapping[str, str], Sequence[str], float], Sequence[str]] | None = None


def local(mpi: MpiInstallation) -> Launcher:
    """Starts the ranks on this machine."""
    return Launcher(lambda ranks, program, limit_s: mpi_command(mpi, ranks, program))  # noqa: ARG005  # ours to keep


def mpi_command(mpi: MpiInstallation, ranks: int, program: Sequence[str]) -> list[str]:
    """The command line that starts ``ranks`` ranks of a program on this machine."""
    return [str(mpi.launcher), *_OPTIONS[mpi.flavour](ranks), *program]


def base_environment(
    inherited: Mapping[str, str], mpi: MpiInstallation, guards: Sequence[str] = ()
) -> dict[str, str]:
    """The environment under every run, before pinned variables and the configuration.

    Args:
        inherited: the controller's environment; only ``BASE_NAMES`` and guards are taken from it.
        guards: names of further variables that pass unchanged where they are set.
    """
    names = (*BASE_NAMES, *GUARD_NAMES, *guards)
    environment = {name: inherited[name] for name in names if name in inherited}
    environment["PATH"] = _prepended(mpi.launcher.parent, environment.get("PATH", os.defpath))
    return {**environment, **mpi.environment}


def _prepended(folder: Path, path: str) -> str:
    return os.pathsep.join([str(folder), path]) if path else str(folder)


def _mpich(ranks: int) -> list[str]:
    # Inside a batch job hydra would start its proxies through the scheduler; here is one machine.
    return ["-launcher", "fork", "-n", str(ranks)]


def _open_mpi(ranks: int) -> list[str]:
    # More ranks than cores is our business to flag, not the launcher's to refuse.
    return ["--map-by", ":OVERSUBSCRIBE", "-n", str(ranks)]


_OPTIONS = {
    MpiFlavour.MPICH: _mpich,
    MpiFlavour.INTEL: _mpich,
    MpiFlavour.OPENMPI: _open_mpi,
}
