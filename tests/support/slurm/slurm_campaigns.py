"""Campaigns on the tests' Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dying
import slurm_cluster
from campaign_texts import with_run_limit
from cluster_campaigns import OnCluster
from clusters import Seen, Words

from commtune.cli import main


@dataclass(frozen=True, kw_only=True)
class OnSlurm(OnCluster):
    """``commtune`` beside the tests' Slurm."""

    cluster: slurm_cluster.Cluster
    words = Words(
        name="Slurm",
        submitter="sbatch",
        submit="commtune.cluster.slurm.client:SlurmScheduler.submit",
        silent="Slurm's controller does not answer",
        refuses="Slurm accepts no jobs there now; trying again\n",
        is_full="Slurm accepts no more jobs from you now; trying again",
        is_held="job {0} is held (JobHeldAdmin): 'scontrol release {0}'\n",
        over_time="job {}: TIMEOUT (TimeLimit)",
        cancelled="job {}: CANCELLED by root\n",
        steps_need_it=True,
        asks_server="scontrol ping",
        submits_by_tmp="",
        lost_answer="sbatch: error: Batch job submission failed: Socket timed out on send/recv "
        "operation",
        answer_is_lost="Socket timed out on send/recv operation; trying again\n",
    )

    @classmethod
    def made(cls, cluster: slurm_cluster.Cluster, folder: Path, *, dies: bool = False) -> OnSlurm:
        """The command line in a folder; one that can be told where to die, if it ``dies``."""
        settings = {"SLURM_CONF": cluster.environment["SLURM_CONF"]}
        return cls(folder, settings, begin=dying.main if dies else main, cluster=cluster)

    def lasting(self, text: str, seconds: int | str) -> str:
        # They only seem this long, which is less than Slurm can be asked for.
        ends = f"export SLURM_JOB_END_TIME=$(($(date +%s) + {seconds})); "
        return with_run_limit(text.replace("before: ", f"before: {ends}"), "20s")

    def queue(self) -> list[Seen]:
        question = ("squeue", "--noheader", "--states=all", "--array", "--format=%A %T %j")
        lines = [line.split(maxsplit=2) for line in self.cluster.call(*question).splitlines()]
        return [Seen(number, name.rpartition("-")[2], word) for number, word, name in lines]
