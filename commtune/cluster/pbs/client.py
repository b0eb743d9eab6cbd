"""PBS as a scheduler (qsub, qdel, qselect, qstat, pbsnodes), and launchers in its jobs."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

import psutil

from commtune import process, process_trees
from commtune.cluster.pbs.command_output import (
    FIELD,
    JOB_ID,
    read_allocation,
    read_failed_nodes,
    read_jobs,
    read_records,
)
from commtune.cluster.scheduler import (
    SECRETS,
    AccountedJob,
    Allocation,
    QueuedJob,
    QueueSnapshot,
    SchedulerFault,
    Site,
    StepLauncher,
)
from commtune.errors import UserError
from commtune.model import Outcome


class PbsError(StrEnum):
    SERVER_DOWN = "the PBS server does not answer"
    QUEUE_FULL = "PBS accepts no more jobs from you now"
    CLOSED = "PBS accepts no jobs there now"
    REFUSED = "PBS refuses the job"
    NOT_PERMITTED = "PBS does not permit it"
    NO_NAME = "PBS asks by name, and this machine knows no name for you"
    OTHER = "PBS gave no answer"


#: What the user can do about each error.
_HINTS = {
    PbsError.SERVER_DOWN: "try 'qstat -B'; jobs that run go on meanwhile",
    PbsError.QUEUE_FULL: "let fewer jobs wait at a time: 'jobs' below 'pbs'",
    PbsError.CLOSED: "see 'qstat -Q'; the administrators know when it opens again",
    PbsError.REFUSED: "check account, queue, chunk and time against the site's",
    PbsError.NOT_PERMITTED: "ask the administrators whether you may submit from this machine",
    PbsError.NO_NAME: "try 'id -un'; the directory of users (LDAP, SSSD) may be away for a while",
    PbsError.OTHER: "type the command yourself to see all that it says",
}
_LASTING = (PbsError.REFUSED, PbsError.NOT_PERMITTED)
#: Errors of qsub after which there surely is no job.
_NEVER_ACCEPTED = (*_LASTING, PbsError.QUEUE_FULL, PbsError.CLOSED)

#: Messages (src/lib/Liblog/pbs_messages.c and the programs' own), the more specific first.
_MESSAGES = (
    (r"cannot connect to server|Connection (refused|timed out|reset)", PbsError.SERVER_DOWN),
    (r"No free connections|connection table full|shutting down", PbsError.SERVER_DOWN),
    (r"Communication failure|End of File|Premature end of message", PbsError.SERVER_DOWN),
    (r"Maximum number of .*jobs|would exceed .*limit", PbsError.QUEUE_FULL),
    (r"Queue is not enabled|temporarily unavailable", PbsError.CLOSED),
    (r"Unknown (queue|resource|node)|Illegal attribute|Undefined attribute", PbsError.REFUSED),
    (r"violates queue|resource limits|Resource limit exceeds", PbsError.REFUSED),
    (r"Invalid (Account|Job Dependency|request)|No default queue", PbsError.REFUSED),
    (r"illegal -\w|invalid option|directive error|Resource invalid|hook", PbsError.REFUSED),
    (r"node\(s\) specification|rejected by all possible destinations", PbsError.REFUSED),
    (r"cannot be used with|usage: qsub|script file|name is too long", PbsError.REFUSED),
    (r"Bad (UID|GID)|Access to queue|Unauthorized|not allowed", PbsError.NOT_PERMITTED),
)
#: Messages of a program that never reached the server.
_NOT_REACHED = re.compile(r"cannot connect to server|Connection refused")
#: What qdel and qstat print about jobs that no longer exist.
_GONE = re.compile(r"Unknown Job Id|Job has finished|Delete already in progress")
_ACCEPTED = re.compile(r"^(\d{1,12})\.[\w.-]+$", re.ASCII | re.MULTILINE)

_IDS_IN_A_CALL = 1_000
#: Variables that change a program's output, or that qsub reads as options.
_SETTINGS = re.compile(r"PBS_DPREFIX|PBS_O_\w+|LC_ALL|TZ")


class PbsFault(SchedulerFault):
    """A PBS command that failed, or a qsub that printed no job id."""

    def __init__(self, message: str, error: PbsError) -> None:
        transient = error not in _LASTING
        super().__init__(message, hint=_HINTS[error], transient=transient, error=error)
        self.error = error


def _fault(program: str, done: process.Completed, output: str, timeout_s: float) -> PbsFault:
    """Returns the fault of a failed program, with its output; a timeout is SERVER_DOWN."""
    error = next((e for text, e in _MESSAGES if re.search(text, output)), PbsError.OTHER)
    said = " ".join(output.split())[-300:] or f"exit status {done.exit_code}"
    if done.timed_out:
        silent = PbsError.SERVER_DOWN if error is PbsError.OTHER else error
        return PbsFault(f"{program}: no answer within {timeout_s:g} s", silent)
    return PbsFault(f"{program}: {error.value}: {said}", error)


def _full_id(job: str) -> str:
    found = JOB_ID.fullmatch(job)
    if not found:
        raise UserError(f"{job!r} is not a PBS job id", hint="ids look like 1234 or 1234.server")
    return found[1]


@dataclass(frozen=True)
class PbsScheduler:
    """PBS by its commands; implements ``cluster.scheduler.Scheduler``.

    Users can't read PBS's accounting logs, so ``account`` returns nothing. ``poll`` includes
    finished jobs as long as the server keeps their history (``job_history_enable``).
    """

    name = "PBS"
    keeps_accounts = False
    #: Environment of PBS's commands. Jobs inherit nothing of it.
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    #: Name of the user whose jobs these are; empty for the user of this process.
    user: str = ""
    timeout_s: float = 60.0  # seconds that a call may take

    def submit(self, script: Path, *, folder: Path, after: str = "") -> str:
        waiting = ["-W", f"depend=afterany:{_full_id(after)}"] if after else []
        # -f: else qsub leaves a background process, which would be ended as one of our strays.
        done = self._run(["qsub", "-f", *waiting, str(script.absolute())], folder)
        if numbers := _ACCEPTED.findall(done.output):
            return str(numbers[-1])
        fault = _fault("qsub", done, done.output, self.timeout_s)
        never = fault.error in _NEVER_ACCEPTED or _NOT_REACHED.search(done.output)
        fault.perhaps_accepted = done.timed_out or not never
        raise fault

    def end_submission(self, script: Path) -> None:
        process_trees.end_running("qsub", str(script.absolute()))

    def cancel(self, jobs: Collection[str]) -> None:
        for ids in _in_calls(sorted({_full_id(job) for job in jobs})):
            self._ask(["qdel", *ids], ignored=_GONE)

    def let_requeue(self, job: str, allowed: bool) -> None:
        """Raises ``PbsFault``: only operators may requeue, and earlier node-hours are lost."""
        del allowed
        self.requeue(job)

    def requeue(self, job: str) -> None:
        raise PbsFault(f"job {job}: only operators may requeue", PbsError.NOT_PERMITTED)

    def find_allocation(self, job: str) -> Allocation:
        """Returns the job that we run in; a ``PbsFault`` if PBS doesn't say where it runs."""
        printed = self._ask(["qstat", "-f", "-F", "dsv", "-D", FIELD, _full_id(job)])
        if found := read_allocation(printed):
            return replace(found, clock_ahead_s=_job_began_at() - found.began_at)
        raise PbsFault(f"qstat doesn't say where and since when job {job} runs", PbsError.OTHER)

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        """As the port says; finished jobs are included while PBS keeps their history."""
        if jobs is None:
            # qstat can't select a user's jobs in its machine-readable format; qselect can.
            jobs = self._ask(["qselect", "-x", "-u", self.user or _own_name()]).split()
        found: list[QueuedJob] = []
        complete = True
        for ids in _in_calls(sorted({_full_id(job) for job in jobs})):
            question = ["qstat", "-x", "-f", "-F", "dsv", "-D", FIELD, *ids]
            some, is_whole = read_jobs(self._ask(question, ignored=_GONE))
            found += some
            complete = complete and is_whole
        return QueueSnapshot(tuple(found), complete)

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        del jobs, since
        return ()

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        if not nodes:
            return frozenset()
        unknown = re.compile(r"Unknown node")
        said = self._ask(["pbsnodes", *sorted(nodes)], ignored=unknown)
        return read_failed_nodes(said) & set(nodes)

    def release_command(self, job: str) -> str:
        return f"qrls {job}"

    def describe_site(self) -> Site:
        """Describes the PBS server; raises PbsFault for no answer, MissingComponent for no PBS."""
        printed = self._ask(["qstat", "-B", "-f", "-F", "dsv", "-D", FIELD])
        name, said = next(read_records(printed), ("", {}))
        return Site(
            name=name,
            version=said.get("pbs_version", ""),
            topology={},
            keeps_accounts=False,
            remembers=said.get("job_history_enable") == "True",
        )

    def _ask(self, arguments: Sequence[str], ignored: re.Pattern[str] | None = None) -> str:
        """Returns a program's output; drops lines that match ``ignored``, which are no errors."""
        done = self._run(arguments)
        lines = done.output.splitlines()
        kept = [line for line in lines if not (ignored and ignored.search(line))]
        said = [line for line in kept if line.startswith(f"{arguments[0]}: ")]
        # Programs that fail for one of several jobs still print the others.
        if done.timed_out or said or (not done.ok and len(kept) == len(lines)):
            raise _fault(arguments[0], done, "\n".join(kept), self.timeout_s)
        return "\n".join(kept)

    def _run(self, arguments: Sequence[str], folder: Path | None = None) -> process.Completed:
        return process.run_process(
            arguments,
            environment=_asking_environment(self.environment),
            timeout_s=self.timeout_s,
            cwd=folder,
            whole_output=True,
        )


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise PbsFault(f"user number {os.getuid()} has no name here", PbsError.NO_NAME) from None


def _job_began_at() -> float:
    """Returns when the script of our own job began, by this node's clock, seconds since 1970.

    PBS has no command that prints its server's time, from which to tell the clocks' difference.
    """
    script = psutil.Process(os.getsid(0))  # PBS makes it the leader of a session
    began_s = script.create_time() - psutil.boot_time()
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)


def _asking_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of PBS's commands: no passwords or settings, times in UTC."""
    dropped = (SECRETS, _SETTINGS)
    kept = {n: v for n, v in inherited.items() if not any(kind.fullmatch(n) for kind in dropped)}
    return {**kept, "LC_ALL": "C", "TZ": "UTC0"}


def _in_calls(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + _IDS_IN_A_CALL] for start in range(0, len(ids), _IDS_IN_A_CALL))


#: Messages of hydra and of PBS when a node could not be reached to start ranks.
_NOT_LAUNCHED = re.compile(r"(.*(?:pbs_tmrsh|tm_\w+): .*|.*(?:Launch proxy|launch proxy).*)")
#: Messages of hydra and of Open MPI when the connection to a node's proxy or daemon is lost.
_NODE_FAILED = re.compile(
    r"(.*assert \(!closed\) failed|.*lost communication with a remote daemon.*)"
)


@dataclass(frozen=True)
class MpiLauncher(StepLauncher):
    """An MPI's own launcher in a PBS job, which has no job steps (``scheduler.StepLauncher``)."""

    ends_steps: ClassVar[bool] = False

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        # A launcher that was killed reports that its own proxies are lost.
        if not timed_out and (said := _NODE_FAILED.search(output)):
            return Outcome.NODE_FAILURE, f"the launcher lost a node: {said[1].strip()}"
        if not began and (said := _NOT_LAUNCHED.search(output)):
            return Outcome.NEVER_STARTED, f"not started: {said[1].strip()}"
        return None
