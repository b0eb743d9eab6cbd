"""What the queue says of our jobs: one call of squeue for all of them, and what went wrong.

Slurm's programs are asked in a form that doesn't depend on the user's settings: fields between
control characters, times in seconds since 1970, no variable that changes what they print.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from commtune import process
from commtune.cluster.slurm.placement import expand_hosts
from commtune.cluster.slurm.states import JobState, ObservedState, read_state
from commtune.errors import EnvironmentFault, UserError

#: ASCII's own separators, which no name of a job or node holds.
RECORD, FIELD = "\x1e", "\x1f"

#: Linux takes 131,072 bytes in one argument.
_ARGUMENT_BYTES = 100_000

_JOB_ID = re.compile(r"(\d{1,10})([_+]\d{1,10})?", re.ASCII)

#: Variables by which a user changes what Slurm's programs print or whom they ask.
_SETTINGS = re.compile(r"(SQUEUE|SACCT|SINFO)_\w+|SLURM_(CLUSTERS|BITSTR_LEN|TIME_FORMAT)|LC_ALL")


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
    SlurmError.REFUSED: "check account, partition, QOS, time and size of the job against the "
    "site's",
    SlurmError.QUEUE_FULL: "let fewer jobs wait at a time; 'sacctmgr show qos' names limits",
    SlurmError.CLOSED: "see 'sinfo --summarize'; the administrators know when it opens again",
    SlurmError.OTHER: "type the command yourself to see all that it says",
}


class SlurmFault(EnvironmentFault):
    """A program of Slurm gave no answer.

    Args:
        trouble: why, in our terms.
    """

    def __init__(self, message: str, trouble: SlurmError) -> None:
        super().__init__(message, hint=_HINTS[trouble], transient=trouble.is_transient)
        self.trouble = trouble


def classify_error(output: str) -> SlurmError:
    """Why a program of Slurm failed, from what it printed."""
    found = (trouble for text, trouble in _MESSAGES if re.search(text, output, re.IGNORECASE))
    return next(found, SlurmError.OTHER)


def asking_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment to ask in: the given one without settings of what is printed and how."""
    kept = {name: value for name, value in inherited.items() if not _SETTINGS.fullmatch(name)}
    return {**kept, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}


def ask_slurm(arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> str:
    """What a program of Slurm prints, standard output and error together.

    Raises:
        SlurmFault: it failed, or gave no answer within ``timeout_s`` seconds.
        MissingComponent: there is no such program.
    """
    completed = process.run_process(
        arguments,
        environment=asking_environment(environment),
        timeout_s=timeout_s,
        whole_output=True,
    )
    if completed.ok:
        return completed.output
    raise fault_of(arguments[0], completed, classify_error(completed.output), timeout_s)


def fault_of(
    program: str, completed: process.Completed, trouble: SlurmError, timeout_s: float
) -> SlurmFault:
    """The error of a program that failed, in its own words; silence is CONTROLLER_DOWN."""
    said = " ".join(completed.output.split())[-300:]
    if completed.timed_out:
        silence = f"no answer within {timeout_s:g} s" + (f": {said}" if said else "")
        known = SlurmError.CONTROLLER_DOWN if trouble is SlurmError.OTHER else trouble
        return SlurmFault(f"{program}: {silence}", known)
    said = said or f"exit status {completed.exit_code}"
    return SlurmFault(f"{program}: {trouble.value}: {said}", trouble)


def leader_of(job: str) -> str:
    """The number that an array task (``7_3``) or part of a heterogeneous job (``7+1``) is under.

    Raises:
        UserError: this is no job id.
    """
    found = _JOB_ID.fullmatch(job)
    if not found:
        raise UserError(f"{job!r} is no Slurm job id", hint="ids look like 1234, 1234_5 or 1234+1")
    return found[1]


def id_lists(jobs: Iterable[str]) -> Iterator[str]:
    """The jobs' leaders in comma-separated lists, as few as fit into an argument each."""
    waiting = sorted({leader_of(job) for job in jobs}, key=int)
    room = _ARGUMENT_BYTES // (max((len(job) for job in waiting), default=0) + 1)
    for start in range(0, len(waiting), room):
        yield ",".join(waiting[start : start + room])


@dataclass(frozen=True)
class QueuedJob:
    """A job as squeue shows it.

    Attributes:
        id: as people write it: ``7``, array task ``7_3``, part of a heterogeneous job ``7+1``.
        number: Slurm's own number of exactly this one.
        leader: number that the whole array or heterogeneous job is submitted under.
        node_count: nodes that it has, or asks for while it waits.
        node_list: names of its nodes in Slurm's short form; empty while it waits.
        ended_at: seconds since 1970; ``None`` unless it is over.
    """

    id: str
    number: str
    leader: str
    sighting: ObservedState
    node_count: int
    node_list: str
    ended_at: float | None
    user: str
    name: str
    comment: str


@dataclass(frozen=True)
class QueueSnapshot:
    """What the queue said at one time.

    Attributes:
        complete: whether all of it could be read; only then is a job that isn't named absent.
    """

    jobs: tuple[QueuedJob, ...] = ()
    complete: bool = True

    def parts(self, job: str) -> tuple[QueuedJob, ...]:
        """All that is under this id: the job, or the parts of an array or heterogeneous job."""
        return tuple(j for j in self.jobs if job in (j.id, j.number, j.leader))

    def sighting(self, job: str) -> ObservedState:
        """Where a job stands; of one with parts, the part that is furthest from a good end."""
        seen = [part.sighting for part in self.parts(job)]
        if seen:
            return min(seen, key=lambda sighting: _ORDER.index(sighting.state))
        if self.complete:
            return ObservedState(JobState.ABSENT)
        return ObservedState(
            JobState.UNKNOWN, reason="a part of squeue's answer could not be read"
        )


#: A job with parts is over when all are, and completed only when all are.
_ORDER = (
    JobState.UNKNOWN,
    JobState.ABSENT,
    JobState.NEVER_STARTED,
    JobState.PENDING,
    JobState.SUSPENDED,
    JobState.RUNNING,
    JobState.COMPLETING,
    JobState.CANCELLED,
    JobState.NODE_FAILURE,
    JobState.PREEMPTED,
    JobState.OUT_OF_MEMORY,
    JobState.TIMED_OUT,
    JobState.FAILED,
    JobState.COMPLETED,
)

#: squeue's letters: id, number, state, reason, start, end, nodes, node list, user, name, comment.
#: What a user may fill with any text comes last.
_COLUMNS = ("%i", "%A", "%T", "%r", "%S", "%e", "%D", "%N", "%u", "%j", "%k")
FORMAT = RECORD + FIELD.join(_COLUMNS) + FIELD


def read_queue(output: str) -> QueueSnapshot:
    """Reads what ``squeue`` printed; warnings and headings between records are passed over."""
    records = [_read_record(text) for text in output.split(RECORD)[1:]]
    return QueueSnapshot(tuple(job for job in records if job), all(records))


def _read_record(text: str) -> QueuedJob | None:
    # Behind the last separator come the end of the line and what was printed in between.
    fields = text.split(FIELD)[:-1]
    if len(fields) < len(_COLUMNS) or not (found := _JOB_ID.fullmatch(fields[0])):
        return None
    id_, number, word, reason, start, end, nodes, node_list, user, name, *comment = fields
    # Without nodes, it is when Slurm expects it to start, or when it was cancelled in the queue.
    started = read_time(start) if _given(node_list) else None
    sighting = read_state(word, reason=_given(reason), started_at=started)
    return QueuedJob(
        id=id_,
        number=number,
        leader=found[1],
        sighting=sighting,
        node_count=read_count(nodes),
        node_list=_given(node_list),
        ended_at=read_time(end) if sighting.state.is_over else None,
        user=user,
        name=name,
        comment=_given(FIELD.join(comment)),
    )


def _given(text: str) -> str:
    return "" if text.strip() in ("(null)", "None", "N/A", "None assigned") else text.strip()


def read_time(text: str) -> float | None:
    """Seconds since 1970; ``None`` for Slurm's Unknown, None and N/A, and all else."""
    return float(text) if re.fullmatch(r"[1-9]\d{0,11}", text.strip(), re.ASCII) else None


def read_count(text: str) -> int:
    """A number of nodes or seconds; 0 for what is no number. A range gives its lower end."""
    found = re.match(r"\d{1,12}", text.strip(), re.ASCII)
    return int(found[0]) if found else 0


@dataclass(frozen=True)
class Queue:
    """Asks squeue and sinfo.

    Attributes:
        environment: what they run in; see ``asking_environment``.
        user: number of the user whose jobs these are, so that the controller sends no others.
        cluster: name of another cluster to ask, where several share their accounting.
        timeout_s: seconds that a call may take.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    user: int = field(default_factory=os.getuid)
    cluster: str = ""
    timeout_s: float = 60.0
    squeue: str = "squeue"
    sinfo: str = "sinfo"

    def look(self, jobs: Collection[str]) -> QueueSnapshot:
        """Where these jobs stand: one call, or one for every 9,000 jobs.

        Ended jobs are still seen for some minutes (Slurm's MinJobAge), then they are absent.

        Raises:
            SlurmFault: the queue gave no answer; never because a job isn't there.
        """
        answers = [self._ask(["--jobs=" + ids]) for ids in id_lists(jobs)]
        found = itertools.chain.from_iterable(answer.jobs for answer in answers)
        return QueueSnapshot(tuple(found), all(answer.complete for answer in answers))

    def mine(self) -> QueueSnapshot:
        """All jobs of the user, to find those whose ids were never written down.

        Raises:
            SlurmFault: the queue gave no answer.
        """
        return self._ask([])

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        """Those of these nodes that are down, drained or not responding now.

        Raises:
            SlurmFault: Slurm gave no answer.
        """
        if not nodes:
            return frozenset()
        question = [self.sinfo, "--Node", "--noheader", *self._whom()]
        question += [f"--nodes={','.join(sorted(nodes))}", f"--format={RECORD}%N{FIELD}%T{FIELD}"]
        return read_failed_nodes(ask_slurm(question, self.environment, self.timeout_s)) & set(
            nodes
        )

    def _ask(self, which: list[str]) -> QueueSnapshot:
        question = [self.squeue, "--noheader", "--array", "--all", "--states=all", *self._whom()]
        question += [f"--user={self.user}", f"--format={FORMAT}", *which]
        try:
            return read_queue(ask_slurm(question, self.environment, self.timeout_s))
        except SlurmFault as fault:
            # Asked for one job only, squeue calls its absence an error; for several it doesn't.
            if fault.trouble is SlurmError.NO_SUCH_JOB:
                return QueueSnapshot()
            raise

    def _whom(self) -> list[str]:
        return [f"--clusters={self.cluster}"] if self.cluster else []


def read_failed_nodes(output: str) -> frozenset[str]:
    """Reads what ``sinfo`` printed of nodes and their states."""
    failed: set[str] = set()
    for text in output.split(RECORD)[1:]:
        name, _, state = text.partition(FIELD)
        word = state.partition(FIELD)[0].strip().lower()
        # A star behind the state says that the node does not respond.
        if "*" in word or re.match(r"(down|drain|fail|inval|error)", word):
            failed.update(expand_hosts(name))
    return frozenset(failed)


@dataclass(frozen=True)
class PollBackoff:
    """How long to wait between two looks at the queue.

    It grows while nothing happens, so that a long night asks little, and differs by chance, so
    that many controllers don't ask at the same moment. The same seed gives the same waits.

    Attributes:
        shortest_s, longest_s: seconds, before chance is added.
        growth: factor from one look without news to the next.
        jitter: the most that chance adds or takes, as a share.
    """

    seed: int
    shortest_s: float = 5.0
    longest_s: float = 120.0
    growth: float = 1.5
    jitter: float = 0.2

    def wait_s(self, look: int, quiet: int) -> float:
        """Seconds to wait after a look.

        Args:
            look: number of the look, from 0.
            quiet: how many looks in a row, this one included, had no news or no answer.
        """
        wanted = self.shortest_s * self.growth ** min(quiet, 100)
        chance = random.Random(f"{self.seed} {look}").uniform(1 - self.jitter, 1 + self.jitter)
        return min(self.longest_s, wanted) * chance
