"""Handing jobs to Slurm and taking them back: sbatch and scancel.

sbatch may accept a job and its answer be lost. So a submission that failed says whether the job
may be in the queue all the same; only its name or comment tells then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune import process
from commtune.cluster.slurm.queries import (
    SlurmError,
    SlurmFault,
    asking_environment,
    classify_error,
    fault_of,
)
from commtune.cluster.slurm.states import PendingReason, classify_reason
from commtune.errors import UserError

_IDS_IN_A_CALL = 5_000
_JOB_ID = re.compile(r"[1-9]\d{0,9}([_+]\d{1,10})?", re.ASCII)
_ACCEPTED = re.compile(r"^([1-9]\d{0,9})(?:;[^\s;]+)?$", re.ASCII | re.MULTILINE)

#: What Slurm's programs read, and jobs inherit: options by variable, and what is true of the job
#: that the caller runs in.
_SLURMS = re.compile(r"(SBATCH|SLURMD?|SCANCEL|SALLOC|SRUN|SQUEUE|SACCT|SINFO)_\w+")
#: How to reach the cluster, and prove who one is.
_KEPT = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)")

_FAILED = r"(submission failed|allocation failure): "
_ALONE = r"sbatch: (error|fatal): (?!.*fail(ed|ure): ).*\b"
#: Slurm's messages (src/common/slurm_errno.c of 22.05 to 25.11), the more telling first. What
#: isn't here is judged as every other program's.
_MESSAGES = (
    (r"No cluster '.*' known", SlurmError.REFUSED),
    (r"can't be reached now", SlurmError.CONTROLLER_DOWN),
    (r"job queue full|Unable to create job record|max\w* .*submitted jobs", SlurmError.QUEUE_FULL),
    (r"temporarily (unable to accept|unavailable)", SlurmError.QUEUE_FULL),
    (r"Required partition not available|Partition in DOWN state", SlurmError.CLOSED),
    (r"submissions disabled|operation is presently disabled", SlurmError.CLOSED),
    (r"Required node not available|maintenance reservation", SlurmError.CLOSED),
    (r"reservation (not usable now|is in use)|Requested nodes are busy", SlurmError.CLOSED),
    (r"Job creation temporarily disabled|Prolog\w* is still running", SlurmError.CLOSED),
    (_FAILED + r"Invalid (?!user|group id)", SlurmError.REFUSED),
    (_FAILED + r"(Requested|Duplicate|Multiple|Circular|Immediate) ", SlurmError.REFUSED),
    (_FAILED + r"Job (size|script|dep|--batch|cannot be submitted)", SlurmError.REFUSED),
    (_FAILED + r"(CPU|Core|Node|Task|Memory)\b.*(invalid|not available)", SlurmError.REFUSED),
    (_FAILED + r"(More processors|No partition|Only batch jobs|Pathname of)", SlurmError.REFUSED),
    (_FAILED + r"(User's group not permitted|Access denied to requested)", SlurmError.REFUSED),
    (_FAILED + r"(Burst Buffer|Environment is missing|(In)?sufficient GRES)", SlurmError.REFUSED),
    (_FAILED + r"(Insane message|Data too large|Preemption is required)", SlurmError.REFUSED),
    # A site's own filter of jobs says what it wants, and then this.
    (r"error: (?!slurm_).*\n(.*\n)*.*" + _FAILED + r"Unspecified error", SlurmError.REFUSED),
    # sbatch itself, before it asks the controller.
    (_ALONE + r"(invalid|not valid|bad|unable to open file)", SlurmError.REFUSED),
    (r"does not look like a batch script|script (is empty|contains)", SlurmError.REFUSED),
)
#: A limit, by the name of the reason for which a job would wait: one line of what sbatch says.
_LIMIT = re.compile(r"^sbatch: error: ((?:Assoc|QOS|Max)\w+)$", re.ASCII | re.MULTILINE)

_NEVER_ACCEPTED = frozenset(
    {
        SlurmError.REFUSED,
        SlurmError.QUEUE_FULL,
        SlurmError.CLOSED,
        SlurmError.BUSY,
        SlurmError.NOT_PERMITTED,
        SlurmError.NOT_UNDERSTOOD,
    }
)
#: The controller was never reached.
_NOT_REACHED = re.compile(
    r"\(connect failure\)|Connection refused|No route to host|standby mode|can't be reached now"
)


class SubmissionFault(SlurmFault):
    """sbatch gave no number.

    Args:
        perhaps_accepted: the job may be in the queue all the same.
    """

    def __init__(self, fault: SlurmFault, perhaps_accepted: bool) -> None:
        super().__init__(fault.message, fault.trouble)
        self.perhaps_accepted = perhaps_accepted


def trouble_of_submission(output: str) -> SlurmError:
    """Why sbatch failed, from what it printed."""
    limits = [classify_reason(word) for word in _LIMIT.findall(output)]
    if any(limit in (PendingReason.IMPOSSIBLE, PendingReason.SPENT) for limit in limits):
        return SlurmError.REFUSED
    # Without a name it may be any limit; the one on waiting jobs is what a campaign meets.
    if limits or "Job violates accounting/QOS policy" in output:
        return SlurmError.QUEUE_FULL
    found = (trouble for text, trouble in _MESSAGES if re.search(text, output, re.IGNORECASE))
    return next(found, classify_error(output))


def clean_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment to submit in: without Slurm's variables, but for those to reach it by.

    A controller that itself runs inside of a job would else give its own job's size to the next.
    """
    return {
        name: value
        for name, value in inherited.items()
        if _KEPT.fullmatch(name) or not _SLURMS.fullmatch(name)
    }


@dataclass(frozen=True)
class Submission:
    """Submits jobs and cancels them.

    Attributes:
        environment: what to call Slurm's programs in; see ``clean_environment``. Jobs inherit
            the rest of it unless their scripts say ``--export=NONE``.
        cluster: name of another cluster to submit to, where several share their accounting.
        timeout_s: seconds that a call may take.
    """

    environment: Mapping[str, str]
    cluster: str = ""
    timeout_s: float = 60.0
    sbatch: str = "sbatch"
    scancel: str = "scancel"

    def submit(self, script: Path, *, folder: Path, options: Sequence[str] = ()) -> str:
        """Submits a script to run in a folder; returns Slurm's number of the job.

        Args:
            options: of sbatch, which go before those in the script.

        Raises:
            SubmissionFault: there is no number; it says whether there may be a job.
            MissingComponent: there is no sbatch, or no such folder.
        """
        done = self._sbatch(["--parsable", *options], script, folder)
        numbers: list[str] = _ACCEPTED.findall(done.output)
        if numbers:
            return numbers[-1]
        trouble = trouble_of_submission(done.output)
        fault = fault_of(self.sbatch, done, trouble, self.timeout_s)
        never = trouble in _NEVER_ACCEPTED or _NOT_REACHED.search(done.output)
        raise SubmissionFault(fault, perhaps_accepted=done.timed_out or not never)

    def test_only(self, script: Path, *, folder: Path, options: Sequence[str] = ()) -> str:
        """Asks Slurm whether it would take the job; returns what it says, for a person.

        Raises:
            SlurmFault: it would not, or gave no answer.
            MissingComponent: there is no sbatch, or no such folder.
        """
        done = self._sbatch(["--test-only", *options], script, folder)
        if not done.ok:
            trouble = trouble_of_submission(done.output)
            raise fault_of(self.sbatch, done, trouble, self.timeout_s)
        said = " ".join(done.output.replace("sbatch: ", "").split())
        return said or "Slurm would take the job"

    def cancel(self, numbers: Collection[str]) -> None:
        """Cancels exactly these jobs; those that are over or unknown to Slurm are passed over.

        Raises:
            UserError: one of them is no job id; none was cancelled.
            SlurmFault: not all of them could be cancelled.
            MissingComponent: there is no scancel.
        """
        for number in numbers:
            if not _JOB_ID.fullmatch(number):
                raise UserError(
                    f"{number!r} is no Slurm job id", hint="ids look like 1234, 1234_5 or 1234+1"
                )
        ordered = sorted(set(numbers))
        for start in range(0, len(ordered), _IDS_IN_A_CALL):
            self._cancel(ordered[start : start + _IDS_IN_A_CALL])

    def _cancel(self, numbers: Sequence[str]) -> None:
        done = process.run_process(
            [self.scancel, *self._whom(), *numbers],
            environment=asking_environment(clean_environment(self.environment)),
            timeout_s=self.timeout_s,
            whole_output=True,
        )
        lines = done.output.splitlines()
        said = "\n".join(line for line in lines if not _is_gone(line))
        # Its exit status is an error number's last byte: zero proves nothing, other things little.
        if done.timed_out or "Kill job error" in said or not (done.ok or (lines and not said)):
            raise fault_of(self.scancel, done, classify_error(said), self.timeout_s)

    def _sbatch(self, options: Sequence[str], script: Path, folder: Path) -> process.Completed:
        chdir = f"--chdir={folder.absolute()}"
        return process.run_process(
            [self.sbatch, *self._whom(), chdir, *options, script.absolute()],
            environment=clean_environment(self.environment),
            timeout_s=self.timeout_s,
            cwd=folder,
            whole_output=True,
        )

    def _whom(self) -> list[str]:
        return [f"--clusters={self.cluster}"] if self.cluster else []


def _is_gone(line: str) -> bool:
    return bool(re.search(r"Invalid job id specified|already completing or completed", line))
