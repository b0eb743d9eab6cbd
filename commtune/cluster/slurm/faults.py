"""Why a program of Slurm gave no answer, or sbatch no number."""

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

    @property
    def is_transient(self) -> bool:
        """Whether the same question may be answered later."""
        return self.name not in slurm_words()["lasting"]


#: Errors that are worth a word to who waits, without what Slurm printed.
_NOTICES = {
    SlurmError.QUEUE_FULL: "Slurm accepts no more jobs from you for now",
    SlurmError.CLOSED: "Slurm starts no jobs there for now",
}


class SlurmFault(SchedulerFault):
    """A program of Slurm gave no answer, or sbatch no number.

    Args:
        error: why, in our terms.
    """

    def __init__(self, message: str, error: SlurmError) -> None:
        super().__init__(
            message,
            hint=slurm_words()["hints"][error.name],
            transient=error.is_transient,
            notice=_NOTICES.get(error, ""),
            is_full=error is SlurmError.QUEUE_FULL,
        )
        self.error = error


def classify_error(output: str) -> SlurmError:
    return _first_match("messages", output) or SlurmError.OTHER


#: How sbatch begins what the controller refuses, and what it refuses itself.
_FAILED = r"(submission failed|allocation failure): "
_ALONE = r"sbatch: (error|fatal): (?!.*fail(ed|ure): ).*\b"


def _first_match(kind: str, output: str) -> SlurmError | None:
    for text, error in slurm_words()[kind]:
        pattern = text.replace("FAILED:", _FAILED).replace("ALONE:", _ALONE)
        if re.search(pattern, output, re.IGNORECASE):
            return SlurmError[error]
    return None


#: A limit, by the name of the reason for which a job would wait: one line of what sbatch says.
_LIMIT = re.compile(r"^sbatch: error: ((?:Assoc|QOS|Max)\w+)$", re.ASCII | re.MULTILINE)

#: The controller was never reached.
_NOT_REACHED = re.compile(
    r"\(connect failure\)|Connection refused|No route to host|standby mode|can't be reached now"
)


def classify_submission_error(output: str) -> SlurmError:
    limits = [classify_reason(word) for word in _LIMIT.findall(output)]
    if any(limit in (PendingReason.IMPOSSIBLE, PendingReason.SPENT) for limit in limits):
        return SlurmError.REFUSED
    # Without a name it may be any limit; the one on waiting jobs is what a campaign meets.
    if limits or "Job violates accounting/QOS policy" in output:
        return SlurmError.QUEUE_FULL
    return _first_match("submission_messages", output) or classify_error(output)


def fault_of_program(
    program: str, completed: process.Completed, error: SlurmError, timeout_s: float
) -> SlurmFault:
    """The fault of a program that failed, in its own words; silence is CONTROLLER_DOWN."""
    said = " ".join(completed.output.split())[-300:]
    if completed.timed_out:
        silence = f"no answer within {timeout_s:g} s" + (f": {said}" if said else "")
        known = SlurmError.CONTROLLER_DOWN if error is SlurmError.OTHER else error
        return SlurmFault(f"{program}: {silence}", known)
    said = said or f"exit status {completed.exit_code}"
    return SlurmFault(f"{program}: {error.value}: {said}", error)


def fault_of_submission(completed: process.Completed, timeout_s: float) -> SlurmFault:
    """The fault of an sbatch that gave no number, and whether there may be a job all the same.

    sbatch may accept a job and its answer be lost; only the job's name or comment tells then.
    """
    error = classify_submission_error(completed.output)
    fault = fault_of_program("sbatch", completed, error, timeout_s)
    never = error.name in slurm_words()["never_accepted"] or _NOT_REACHED.search(completed.output)
    fault.perhaps_accepted = completed.timed_out or not never
    return fault
