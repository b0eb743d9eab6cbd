"""Classifies the errors of Slurm's commands, by their messages."""

from __future__ import annotations

import re
from enum import StrEnum

from commtune import process
from commtune.cluster.job_states import PendingReason
from commtune.cluster.scheduler import SchedulerFault
from commtune.cluster.slurm.command_output import classify_reason, slurm_words


class SlurmError(StrEnum):
    NO_SUCH_JOB = "no such job"
    CONTROLLER_DOWN = "Slurm's controller does not answer"
    BUSY = "slurmctld is rate-limiting your requests"
    AUTHENTICATION = "Slurm could not authenticate the request"
    NOT_PERMITTED = "Slurm does not permit it"
    NOT_UNDERSTOOD = "this version of Slurm does not know the request"
    ACCOUNTING_OFF = "this Slurm has no accounting"
    ACCOUNTING_DOWN = "Slurm's accounting does not answer"
    REFUSED = "Slurm refuses the job"
    QUEUE_FULL = "Slurm accepts no more jobs from you now"
    CLOSED = "Slurm accepts no jobs there now"
    OTHER = "Slurm gave no answer"


class SlurmFault(SchedulerFault):
    """A Slurm command that failed, or an sbatch that printed no job id."""

    def __init__(self, message: str, error: SlurmError) -> None:
        words = slurm_words()
        hint, transient = words["hints"][error.name], error.name not in words["lasting"]
        super().__init__(message, hint=hint, transient=transient, error=error)
        self.error = error


def classify_error(output: str) -> SlurmError:
    return _first_match("messages", output) or SlurmError.OTHER


#: How messages of sbatch begin if slurmctld refuses a job, and if sbatch itself does.
_FAILED = r"(submission failed|allocation failure): "
_ALONE = r"sbatch: (error|fatal): (?!.*fail(ed|ure): ).*\b"


def _first_match(kind: str, output: str) -> SlurmError | None:
    for text, error in slurm_words()[kind]:
        pattern = text.replace("FAILED:", _FAILED).replace("ALONE:", _ALONE)
        if re.search(pattern, output, re.IGNORECASE):
            return SlurmError[error]
    return None


#: A limit in the output of sbatch, by the reason for which a job would be pending.
_LIMIT = re.compile(r"^sbatch: error: ((?:Assoc|QOS|Max)\w+)$", re.ASCII | re.MULTILINE)

#: Messages of a command that never reached slurmctld.
_NOT_REACHED = re.compile(
    r"\(connect failure\)|Connection refused|No route to host|standby mode|can't be reached now"
)


def _classify_submission_error(output: str) -> SlurmError:
    limits = [classify_reason(word) for word in _LIMIT.findall(output)]
    if any(limit in (PendingReason.IMPOSSIBLE, PendingReason.SPENT) for limit in limits):
        return SlurmError.REFUSED
    # Unnamed, it may be any limit; campaigns most likely reach that on submitted jobs.
    if limits or "Job violates accounting/QOS policy" in output:
        return SlurmError.QUEUE_FULL
    return _first_match("submission_messages", output) or classify_error(output)


def fault_of_program(
    program: str, completed: process.Completed, error: SlurmError, timeout_s: float
) -> SlurmFault:
    """Returns the fault of a failed program, with its output; a timeout is CONTROLLER_DOWN."""
    said = " ".join(completed.output.split())[-300:]
    if completed.timed_out:
        silence = f"no answer within {timeout_s:g} s" + (f": {said}" if said else "")
        known = SlurmError.CONTROLLER_DOWN if error is SlurmError.OTHER else error
        return SlurmFault(f"{program}: {silence}", known)
    said = said or f"exit status {completed.exit_code}"
    return SlurmFault(f"{program}: {error.value}: {said}", error)


def fault_of_submission(completed: process.Completed, timeout_s: float) -> SlurmFault:
    """Returns the fault of an sbatch without a job id; sets whether there may be a job.

    Slurm may accept a job and the answer be lost; then only the job's name identifies it.
    """
    error = _classify_submission_error(completed.output)
    fault = fault_of_program("sbatch", completed, error, timeout_s)
    never = error.name in slurm_words()["never_accepted"] or _NOT_REACHED.search(completed.output)
    fault.perhaps_accepted = completed.timed_out or not never
    return fault
