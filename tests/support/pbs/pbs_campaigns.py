"""Campaigns on the tests' PBS, as a person runs them; what must hold is as for Slurm's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pbs_cluster
from pbs_config import PBS
from slurm_campaigns import ONE_BLOCK, ONE_CANDIDATE, OnSlurm, Seen

#: hydra quotes its words for a shell on the other node, and pbs_tmrsh starts none.
_REMOTE_SHELL = """\
#!/bin/sh
host=$1
shift
exec {pbs}/bin/pbs_tmrsh "$host" /bin/sh -c "$*"
"""
_WORDS = {"R": "RUNNING", "Q": "PENDING", "H": "PENDING", "E": "RUNNING", "F": "COMPLETED"}


def on_pbs(text: str, folder: Path, **keys: str) -> str:
    """A campaign of the Slurm tests with what it asks of PBS instead."""
    words = "".join(f", {key}: {value}" for key, value in keys.items())
    shell = folder / "remote-shell"
    options = f"launcher_options: [-launcher, rsh, -launcher-exec, {shell}]{words}"
    return (
        text.replace("mpi: pmi2", options).replace("slurm:", "pbs:").replace("$HOME", f"{folder}")
    )


__all__ = ["ONE_BLOCK", "ONE_CANDIDATE", "OnPbs", "on_pbs"]


@dataclass(frozen=True, kw_only=True)
class OnPbs(OnSlurm):
    """``commtune`` as the cluster's user, in a folder of that user's."""

    cluster: pbs_cluster.Cluster  # type: ignore[assignment]  # in the place of Slurm's

    def environment(self) -> dict[str, str]:
        top = self.cluster.folder
        return {
            **super().environment(),
            **self.cluster.environment,
            "HOME": str(self.folder),
            "PYTHONPATH": f"{top}/repository:{top}/packages",
            "XDG_CACHE_HOME": f"{top}/user/cache",
            "COMMTUNE_MPI_PATH": f"{top}/mpi",
            **self.extra,
        }

    def prepare(self) -> None:
        """Makes what campaigns need in the folder."""
        shell = self.folder / "remote-shell"
        shell.write_text(_REMOTE_SHELL.format(pbs=PBS))
        shell.chmod(0o755)

    def check_whole(self, *, name: str = "small", lost: bool = True) -> None:
        # The script's last file is there before PBS calls its job over.
        self.until_over()
        super().check_whole(name=name, lost=lost)

    def jobs(self) -> list[Seen]:
        """The campaigns' jobs that PBS still knows, also those that are over."""
        asked = self.cluster.call("qselect", "-x").split()
        printed = self.cluster.call("qstat", "-x", "-f", "-F", "dsv", "-D", "~", *asked)
        folders = {folder.name for folder in self.folder.glob("data/commtune/campaigns/*/jobs/*")}
        found = []
        for line in printed.splitlines():
            said = dict(word.partition("=")[::2] for word in line.split("~"))
            number = line.partition(".")[0].removeprefix("Job Id: ")
            word = _WORDS[said["job_state"]]
            if word == "COMPLETED" and said.get("substate") == "91":
                word = "CANCELLED"
            found.append(Seen(number, said["Job_Name"].rpartition("-")[2], word))
        return [job for job in found if job.key in folders]
