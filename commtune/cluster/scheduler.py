"""What the jobs of a campaign need of a scheduler: the ports, and what goes through them."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.placement import Topology, find_distance
from commtune.errors import AllocationOver, EnvironmentFault
from commtune.model import Outcome

#: In the environment of a controller that ``commtune submit`` started: its job's key.
KEY_VARIABLE = "COMMTUNE_ALLOCATION"
#: Likewise: the number of the job that it follows. That one is over, whatever its lock says.
AFTER_VARIABLE = "COMMTUNE_AFTER"


class SchedulerFault(EnvironmentFault):
    """A scheduler gave no answer; ``transient`` says whether it may answer later.

    Args:
        notice: the message in a few words, for a person who waits.
        is_full: of a submission, that the user has as many jobs as may be.
    """

    #: Of a submission: the job may be in the queue all the same.
    perhaps_accepted = False

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        transient: bool,
        notice: str = "",
        is_full: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, transient=transient)
        self.notice = notice or message
        self.is_full = is_full


@dataclass(frozen=True)
class QueuedJob:
    #: As people write it: ``7``, array task ``7_3``, part of a heterogeneous job ``7+1``.
    id: str
    number: str  # the scheduler's own number of exactly this one
    leader: str  # number that the whole array or heterogeneous job is submitted under
    observed: ObservedState
    node_count: int  # nodes that it has, or asks for while it waits
    node_list: str  # names of its nodes in short form; empty while it waits
    ended_at: float | None  # seconds since 1970; ``None`` unless it is over
    name: str


@dataclass(frozen=True)
class QueueSnapshot:
    jobs: tuple[QueuedJob, ...] = ()
    #: Whether all of it could be read; only then is a job that isn't named absent.
    complete: bool = True
    #: Seconds since 1970: jobs that were submitted later are not in it.
    asked_at: float = math.inf

    def parts(self, job: str) -> tuple[QueuedJob, ...]:
        """All that is under this id: the job, or the parts of an array or heterogeneous job."""
        return tuple(j for j in self.jobs if job in (j.id, j.number, j.leader))

    def state_of(self, job: str) -> ObservedState:
        """Where a job stands; of one with parts, the part that is furthest from a good end."""
        states = [part.observed for part in self.parts(job)]
        if states:
            return min(states, key=lambda observed: _ORDER.index(observed.state))
        if self.complete:
            return ObservedState(JobState.ABSENT)
        return ObservedState(
            JobState.UNKNOWN, reason="a part of the queue's answer could not be read"
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


@dataclass(frozen=True)
class AccountedJob:
    """One attempt of a job in the accounts; a job that was put back has several."""

    id: str  # ``7``, array task ``7_3``, part of a heterogeneous job ``7+1``
    number: str  # the scheduler's own number of exactly this one
    observed: ObservedState
    #: How long this attempt had its nodes, so far; suspended time is not in it.
    elapsed_s: int
    node_count: int  # nodes that it had; 0 if it never had any
    node_list: str  # their names in short form
    ended_at: float | None  # seconds since 1970, or ``None``
    name: str

    @property
    def node_hours(self) -> float:
        """Nodes times hours; a part of a node counts as a whole one, no nodes as none."""
        if self.observed.started_at is None:
            return 0.0
        return self.node_count * self.elapsed_s / 3600


def sum_node_hours(attempts: Iterable[AccountedJob]) -> float:
    """All node-hours; each attempt once, however often it was seen, by its longest account.

    Attempts of a job are told apart by when they started.
    """
    longest: dict[tuple[str, float | None], float] = {}
    for attempt in attempts:
        key = (attempt.id, attempt.observed.started_at)
        longest[key] = max(longest.get(key, 0.0), attempt.node_hours)
    return sum(longest.values())


def state_in_accounts(attempts: Iterable[AccountedJob], job: str) -> ObservedState:
    """Where a job stands by the accounts; ABSENT where they don't name it.

    Accounts lag behind the queue: they may still call a job running that has just ended. So they
    are for jobs that the queue no longer names.
    """
    own = [attempt for attempt in attempts if job in (attempt.id, attempt.number)]
    if not own:
        return ObservedState(JobState.ABSENT)
    return replace(own[-1].observed, attempt=len(own))


@dataclass(frozen=True)
class Site:
    name: str  # the cluster's, as its scheduler calls it
    version: str  # the scheduler's
    topology: Topology  # where nodes stand; empty where the site didn't describe it
    keeps_accounts: bool  # whether there are accounts to ask
    remembers: bool = True  # whether jobs that are over can be asked about for a while


class Scheduler(Protocol):
    """What runs jobs on the nodes of a cluster.

    Laws, checked by tests/contracts/test_scheduler_contract.py:

    - A job that ``submit`` gave a number for is in ``poll`` at once, by that number and its name.
    - ``submit`` that raises says in ``perhaps_accepted`` whether there may be a job all the same.
    - ``poll`` never raises for want of a job: one that isn't there is ABSENT, in an answer that
      is complete.
    - ``cancel`` ends these jobs and no others; it passes over those that are over or unknown, and
      may be repeated. Before it cancels any, it refuses what is no job id.
    - ``account`` tells of every attempt, in order; it may lag some seconds behind ``poll``.
    - Whatever goes wrong is a ``SchedulerFault``, or ``MissingComponent`` where nothing can be
      asked at all.
    """

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def keeps_accounts(self) -> bool:
        """Whether the site keeps accounts; without them ``account`` gives nothing."""

    def submit(self, script: Path, *, folder: Path, after: str = "") -> str:
        """Submits a script to run in a folder; returns the job's number.

        Args:
            after: number of a job whose end, however it comes, this one waits for.
        """

    def end_submission(self, script: Path) -> None:
        """Ends a ``submit`` of this script that outlived its controller, if there is one."""

    def cancel(self, jobs: Collection[str]) -> None:
        """Cancels exactly these jobs."""

    def let_requeue(self, job: str, allowed: bool) -> None:
        """Whether a job of ours may be requeued: by ``requeue``, or where a node dies."""

    def requeue(self, job: str) -> None:
        """Puts a job that runs back into the queue, under its number; it must be allowed."""

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        """Where these jobs stand, or all jobs of the user, as the queue says."""

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        """What the accounts say of these jobs, or of all jobs of the user.

        Args:
            since: seconds since 1970; not later than the first of them was submitted. Numbers of
                jobs are given out again after years.
        """

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        """Those of these nodes that are down, drained or not responding now."""

    def release_command(self, job: str) -> str:
        """What a person types to let a held job go."""


class StepLauncher(Protocol):
    """What starts the ranks of runs inside a job, and what it says of those it could not start.

    What the methods do here is for a scheduler that knows no steps.
    """

    #: Whether ``end_steps`` reaches the ranks of a launch that was killed; else their job's end
    #: does.
    ends_steps: ClassVar[bool]

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        """What the launcher, and no configuration, is to blame for; ``None`` for nothing.

        Args:
            output: what it printed, for a run that failed.
            began: whether ranks came up.
            timed_out: whether it was ended at its time limit.
        """

    def lost_nodes(self, output: str) -> frozenset[str]:
        """Names of the nodes that it lost, or could not reach, by its own words."""
        return frozenset()

    def steps(self, job: str) -> list[str]:
        """Steps of a job but its script that hold nodes; a ``SchedulerFault`` for no answer."""
        return []

    def end_steps(self, job: str) -> None:
        """Ends all steps of a job but its script; a ``SchedulerFault`` if there is no answer."""
        return

    def place_command(self, nodes: int) -> tuple[str, ...]:
        """The words of a step that says, on each node of a job, where it stands."""
        return ()

    def read_places(self, printed: str) -> Topology:
        """Reads what such a step printed."""
        return Topology({})


@dataclass(frozen=True)
class Allocation:
    """A job in which the controller runs."""

    #: Seconds before its end that are for storing and for ending cleanly.
    MARGIN_S: ClassVar[float] = 40.0

    number: str  # the scheduler's, of the job
    nodes: tuple[str, ...]  # their names
    #: began_at, ends_at: by the scheduler's clock, seconds since 1970; ``None`` is no limit.
    began_at: float
    ends_at: float | None
    clock_ahead_s: float = 0.0  # how far this node's clock is ahead of the scheduler's, seconds

    def check_time(self, wanted_s: float, now: float) -> None:
        """Ends the campaign's session (``AllocationOver``) if so many seconds don't fit."""
        wanted_until = now - self.clock_ahead_s + wanted_s + self.MARGIN_S
        if self.ends_at is not None and wanted_until > self.ends_at:
            raise AllocationOver(f"the time of job {self.number} is nearly over")

    def ended_at(self, now: float) -> float:
        """By the scheduler's clock, when it ends if it does so now by this node's."""
        return max(self.began_at, now - self.clock_ahead_s)

    def node_hours(self, now: float) -> float:
        """Node-hours so far."""
        return len(self.nodes) * (self.ended_at(now) - self.began_at) / 3600

    def distance(self, topology: Topology, *, switch_is_group: bool = False) -> str:
        """How far apart its nodes stand, in the words of ``placement.Distance``."""
        return str(find_distance(topology.of(self.nodes), switch_is_group=switch_is_group))


@dataclass(frozen=True)
class PollBackoff:
    """How long to wait between two looks at the queue.

    It grows while nothing happens, so that a long night asks little, and differs by chance, so
    that many controllers don't ask at the same moment. The same seed gives the same waits.
    """

    seed: int
    #: shortest_s, longest_s: seconds, before chance is added.
    shortest_s: float = 5.0
    longest_s: float = 120.0
    growth: float = 1.5  # factor from one look without news to the next
    jitter: float = 0.2  # the most that chance adds or takes, as a share

    def wait_s(self, look: int, quiet: int) -> float:
        """Seconds to wait after a look (from 0), after so many in a row without news or answer."""
        wanted = self.shortest_s * self.growth ** min(quiet, 100)
        chance = random.Random(f"{self.seed} {look}").uniform(1 - self.jitter, 1 + self.jitter)
        return min(self.longest_s, wanted) * chance
