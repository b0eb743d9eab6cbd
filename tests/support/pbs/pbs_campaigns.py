"""Campaigns on the tests' PBS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pbs_cluster
from campaign_texts import with_run_limit
from cluster_campaigns import DYING, OnCluster
from clusters import Seen, Words
from made_files import write_script
from pbs_config import PBS

#: hydra quotes its words for a shell on the other node, and pbs_tmrsh starts none.
_REMOTE_SHELL = f"""\
host=$1
shift
exec {PBS}/bin/pbs_tmrsh "$host" /bin/sh -c "$*"
"""
_STATES = {"R": "RUNNING", "Q": "PENDING", "H": "PENDING", "E": "RUNNING", "F": "COMPLETED"}


def with_keys(text: str, **keys: str) -> str:
    """The campaign with more of what it asks of the scheduler."""
    words = "".join(f"{key}: {value}, " for key, value in keys.items())
    return text.replace("slurm: {", f"slurm: {{{words}")


@dataclass(frozen=True, kw_only=True)
class OnPbs(OnCluster):
    """``commtune`` as the cluster's user, in a folder of that user's."""

    cluster: pbs_cluster.Cluster
    words = Words(
        name="PBS",
        submitter="qsub",
        submit="commtune.cluster.pbs.client:PbsScheduler.submit",
        silent="the PBS server does not answer",
        refuses="PBS accepts no jobs there now; trying again\n",
        is_full="PBS accepts no more jobs from you now; trying again",
        is_held="job {0} is held",
        over_time="job {}: F (exceeded resource walltime)",
        cancelled="job {}: F (terminated by root@",
        steps_need_it=False,
        asks_server="qstat -B",
        submits_by_tmp="error writing copy of script",
        lost_answer="qsub: Communication failure",
        answer_is_lost="qsub: Communication failure; trying again\n",
    )

    @classmethod
    def made(cls, cluster: pbs_cluster.Cluster, *, dies: bool = False) -> OnPbs:
        """The command line in a new folder; one that can be told where to die, if it ``dies``."""
        folder, top = cluster.user_folder(), cluster.folder
        program = (str(top / "repository" / DYING),) if dies else ("-m", "commtune.cli")
        words = (*cluster.as_user, "env", f"--chdir={folder}", f"{top}/python/bin/python3")
        campaign = cls(folder, {}, (*words, *program), cluster=cluster)
        write_script(folder / "remote-shell", _REMOTE_SHELL)
        return campaign

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

    def write(self, text: str, name: str = "campaign.yaml") -> Path:
        """Writes a file; in a campaign, what is asked of Slurm is asked of PBS."""
        if name != "campaign.yaml":
            return super().write(text, name)
        shell = self.folder / "remote-shell"
        options = f"launcher_options: [-launcher, rsh, -launcher-exec, {shell}]"
        text = text.replace("mpi: pmi2", options).replace("slurm:", "pbs:")
        # What a site gives each job.
        variables = ("HOME", "PATH", "PBS_CONF_FILE", "PYTHONPATH")
        exported = " ".join(f"{name}={self.environment()[name]}" for name in variables)
        text = re.sub(r"before: ('?)", rf"before: \1export {exported}; ", text)
        return super().write(text.replace("$HOME", str(self.folder)), name)

    def lasting(self, text: str, seconds: int | str) -> str:
        # It asks for more, since commtune asks for no less than two minutes.
        cuts = f"qalter -l walltime={seconds} $PBS_JOBID; "
        return with_run_limit(text.replace("before: ", f"before: {cuts}"), "20s")

    def check_whole(self, *, name: str = "small", lost: bool = True, other: str = "ok") -> None:
        # The script's last file is there before PBS calls its job over.
        self.until_over()
        super().check_whole(name=name, lost=lost, other=other)

    def queue(self) -> list[Seen]:
        found = []
        for line in self.cluster.call("qstat", "-x", "-f", "-F", "dsv", "-D", "~").splitlines():
            said = dict(word.partition("=")[::2] for word in line.split("~"))
            number = line.partition(".")[0].removeprefix("Job Id: ")
            word = _STATES[said["job_state"]]
            if word == "COMPLETED" and said.get("substate") == "91":
                word = "CANCELLED"
            elif word == "COMPLETED" and said.get("Exit_status") != "0":
                word = "FAILED"
            found.append(Seen(number, said["Job_Name"].rpartition("-")[2], word))
        return found
