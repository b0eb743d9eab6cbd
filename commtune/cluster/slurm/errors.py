"""Why Slurm gave no answer, or took no job: its programs' messages in our terms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from commtune import process
from commtune.cluster.job_states import PendingReason
from commtune.cluster.scheduler import SchedulerFault
from commtune.cluster.slurm.states import classify_reason


class SlurmError(StrEnum):
    """Why Slurm gave no answer."""

    NO_SUCH_JOB = "no such job"
    CONTROLLER_DOWN = "Slurm's controller does not answer"
    BUSY = "Slurm's controller asks for fewer questions"
    AUTHENTICATION = "Slurm could not check who asks"
    NOT_PERMITTED = "Slurm does not permit it"
    NOT_UNDERSTOOD = "this version of Slurm does not know the question"
    ACCOUNTING_OFF = "this Slurm keeps no accounts"
    ACCOUNTING_DOWN = "Slurm's accounting does not answer"
    REFUSED = "Slurm refuses the job"
    QUEUE_FULL = "Slurm takes no more jobs of yours now"
    CLOSED = "Slurm takes no jobs there now"
    OTHER = "Slurm gave no answer"

    @property
    def is_transient(self) -> bool:
        """Whether the same question may be answered later."""
        return self not in _LASTING


_LASTING = (
    SlurmError.NO_SUCH_JOB,
    SlurmError.NOT_PERMITTED,
    SlurmError.NOT_UNDERSTOOD,
    SlurmError.ACCOUNTING_OFF,
    SlurmError.REFUSED,
)

#: Slurm's messages (src/common/slurm_errno.c and the programs' own), the more telling first.
_MESSAGES = (
    (r"accounting storage is disabled", SlurmError.ACCOUNTING_OFF),
    (r"talking to the database|persistent connection|PersistInit", SlurmError.ACCOUNTING_DOWN),
    (r"slurmdbd|unable to initialize storage plugin", SlurmError.ACCOUNTING_DOWN),
    (r"Invalid job id specified|Invalid job id:", SlurmError.NO_SUCH_JOB),
    (r"rate.?limit|RPC limit", SlurmError.BUSY),
    (r"Access/permission denied|Invalid user", SlurmError.NOT_PERMITTED),
    (r"munge|authentication|credential", SlurmError.AUTHENTICATION),
    (r"Incompatible versions|(unrecognized|invalid) option", SlurmError.NOT_UNDERSTOOD),
    (r"Invalid (job|field|node) (format|state)", SlurmError.NOT_UNDERSTOOD),
    (r"Unable to contact slurm controller|standby mode", SlurmError.CONTROLLER_DOWN),
    (r"Socket timed out|Connection (refused|timed out|reset)", SlurmError.CONTROLLER_DOWN),
    (r"Zero Bytes were transmitted|Message (send|receive) failure", SlurmError.CONTROLLER_DOWN),
    (r"Communication (connection|shutdown) failure", SlurmError.CONTROLLER_DOWN),
    (r"No route to host|Network is unreachable", SlurmError.CONTROLLER_DOWN),
    (r"establish a configuration source", SlurmError.CONTROLLER_DOWN),
    (r"Permission denied", SlurmError.NOT_PERMITTED),
)

_HINTS = {
    SlurmError.NO_SUCH_JOB: "Slurm forgets ended jobs after MinJobAge; sacct may still know them",
    SlurmError.CONTROLLER_DOWN: "try 'scontrol ping'; jobs that run go on meanwhile",
    SlurmError.BUSY: "fewer programs should ask at the same time",
    SlurmError.AUTHENTICATION: "ask the administrators whether munge runs on this machine",
    SlurmError.NOT_PERMITTED: "ask the administrators whether PrivateData hides jobs from you",
    SlurmError.NOT_UNDERSTOOD: "check that the Slurm programs on PATH belong to this cluster",
    SlurmError.ACCOUNTING_OFF: "node-hours are then taken from the jobs' own times",
    SlurmError.ACCOUNTING_DOWN: "try 'sacctmgr ping' or ask again later",
    SlurmError.REFUSED: "check account, partition, QOS, time and size against the site's",
    SlurmError.QUEUE_FULL: "let fewer jobs wait at a time; 'sacctmgr show qos' names limits",
    SlurmError.CLOSED: "see 'sinfo --summarize'; the administrators know when it opens again",
    SlurmError.OTHER: "type the command yourself to see all that it says",
}

#: Errors that are worth a word to who waits, without what Slurm printed.
_NOTICES = {
    SlurmError.QUEUE_FULL: "Slurm takes no more jobs of yours for now",
    SlurmError.CLOSED: "Slurm starts no jobs there for now",
}


class SlurmFault(SchedulerFault):
    """A program of Slurm gave no answer, or sbatch no number.

    Args:
        error: why, in our terms.
    """

    def __init__(self, message: str, error: SlurmError, *, perhaps_accepted: bool = False) -> None:
        super().__init__(
            message,
            hint=_HINTS[error],
            transient=error.is_transient,
            notice=_NOTICES.get(error, ""),
            perhaps_accepted=perhaps_accepted,
        )
        self.error = error


def classify_error(output: str) -> SlurmError:
    """Why a program of Slurm failed, from what it printed."""
    return _first_match(_MESSAGES, output) or SlurmError.OTHER


def _first_match(messages: Iterable[tuple[str, SlurmError]], output: str) -> SlurmError | None:
    found = (error for text, error in messages if re.search(text, output, re.IGNORECASE))
    return next(found, None)


_FAILED = r"(submission failed|allocation failure): "
_ALONE = r"sbatch: (error|fatal): (?!.*fail(ed|ure): ).*\b"
#: sbatch's messages (src/common/slurm_errno.c of 22.05 to 25.11), the more telling first. What
#: isn't here is judged as every other program's.
_SUBMISSION_MESSAGES = (
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


def classify_submission_error(output: str) -> SlurmError:
    """Why sbatch failed, from what it printed."""
    limits = [classify_reason(word) for word in _LIMIT.findall(output)]
    if any(limit in (PendingReason.IMPOSSIBLE, PendingReason.SPENT) for limit in limits):
        return SlurmError.REFUSED
    # Without a name it may be any limit; the one on waiting jobs is what a campaign meets.
    if limits or "Job violates accounting/QOS policy" in output:
        return SlurmError.QUEUE_FULL
    found = (
        error for text, error in _SUBMISSION_MESSAGES if re.search(text, output, re.IGNORECASE)
    )
    return next(found, classify_error(output))


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


def fault_of_submission(
    program: str, completed: process.Completed, timeout_s: float
) -> SlurmFault:
    """The fault of an sbatch that gave no number, and whether there may be a job all the same.

    sbatch may accept a job and its answer be lost; only the job's name or comment tells then.
    """
    error = classify_submission_error(completed.output)
    fault = fault_of_program(program, completed, error, timeout_s)
    never = error in _NEVER_ACCEPTED or _NOT_REACHED.search(completed.output)
    fault.perhaps_accepted = completed.timed_out or not never
    return fault
