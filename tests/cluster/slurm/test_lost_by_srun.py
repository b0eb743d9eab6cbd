"""What srun 22.05 says where no configuration can be blamed for how a run ended."""

from __future__ import annotations

import pytest

from commtune.cluster.exit_codes import judge_run
from commtune.cluster.slurm.allocation import Srun
from commtune.model import Outcome
from commtune.process import Completed
from commtune.tuner.ports import Records

#: The job was over, since a node of it died, when its controller wanted a step.
EXPIRED = """\
srun: error: Slurm job 119 has expired
srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 119
"""


def ended(output: str, found: Records | None = None) -> tuple[Outcome, str]:
    completed = Completed(exit_code=1, signal=None, timed_out=False, wall_s=0.01, output=output)
    return judge_run(found or Records(), completed, 60.0, Srun().judge_failure)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (EXPIRED, "Slurm job 119 has expired"),
        (
            "srun: error: Unable to confirm allocation for job 5: Invalid job id specified\n",
            "Unable to confirm allocation for job 5: Invalid job id specified",
        ),
    ],
)
def test_a_step_that_never_was_blames_nobody(output: str, said: str) -> None:
    outcome, why = ended(output)
    assert (outcome, why) == (Outcome.NEVER_STARTED, f"Slurm did not start it: {said}")
    assert outcome.is_lost


def test_ranks_that_came_up_were_started() -> None:
    assert ended(EXPIRED, Records(header={"backend": "mpi-host"}))[0] is Outcome.FAILED


def test_a_program_that_fails_is_to_blame() -> None:
    assert ended("Slurm job 119 has expired, said a program\n")[0] is Outcome.FAILED
