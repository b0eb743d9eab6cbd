"""The ports to a scheduler and to launchers in its jobs, with their data types."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.placement import Topology
from commtune.errors import AllocationOver, EnvironmentFault
from commtune.model import Outcome

#: Variable of a controller in an allocation that ``commtune submit`` made: its job's key.
KEY_VARIABLE = "COMMTUNE_ALLOCATION"
#: Likewise: the number of its predecessor, whose controller is dead even if it left a lock.
AFTER_VARIABLE = "COMMTUNE_AFTER"


#: Variables with passwords, which a scheduler would store with the job. Jobs get them by a private
#: file.
SECRETS = re.compile(r"COMMTUNE_DB|PGPASSWORD")
#: Hint for a campaign that ends early.
GOES_ON = "what was measured is kept; the same command continues"


class SchedulerFault(EnvironmentFault):
    """A scheduler gave no answer, or refused; ``transient`` says whether that may pass.

    Args:
        error: its kind, for a command that failed. Both schedulers' kinds have QUEUE_FULL, where
            the user has as many jobs as allowed, and CLOSED.
    """

    #: Whether the job of a failed submission may be in the queue nevertheless.
    perhaps_accepted = False

    def __init__(
        self, message: str, *, hint: str, transient: bool, error: StrEnum | None = None
    ) -> None:
        super().__init__(message, hint=hint, transient=transient)
        name = error.name if error else ""
        self.is_full = name == "QUEUE_FULL"
        #: A short message for a user who waits.
        self.notice = str(error) if name in ("QUEUE_FULL", "CLOSED") else message


@dataclass(frozen=True)
class QueuedJob:
    """A job in the queue; tasks of arrays and components of heterogeneous jobs are several."""

    number: str  # the scheduler's
    observed: ObservedState
    node_count: int  # nodes that it has, or requests while it is pending
    node_list: str  # names of its nodes in short form; empty while it is pending
    ended_at: float | None  # seconds since 1970; ``None`` unless it is over
    name: str


@dataclass(frozen=True)
class QueueSnapshot:
    jobs: tuple[QueuedJob, ...] = ()
    #: Whether the whole answer could be read; only then a job that isn't listed is ABSENT.
    complete: bool = True
    #: When the queue was asked, seconds since 1970; jobs submitted later aren't in it.
    asked_at: float = math.inf

    def find(self, number: str) -> QueuedJob | None:
        """Returns the job with this number; ``None`` if the answer doesn't list it."""
        return next((job for job in self.jobs if job.number == number), None)

    def state_of(self, number: str) -> ObservedState:
        """Returns the state of the job with this number."""
        if job := self.find(number):
            return job.observed
        if self.complete:
            return ObservedState(JobState.ABSENT)
        return ObservedState(
            JobState.UNKNOWN, reason="a part of the queue's answer could not be read"
        )


@dataclass(frozen=True)
class AccountedJob(QueuedJob):
    """One attempt of a job in the accounts; a requeued job has several.

    Its nodes are those that it had; none if it never had any.
    """

    #: Seconds that this attempt had its nodes so far, without suspended time.
    elapsed_s: int

    @property
    def node_hours(self) -> float:
        """Nodes times hours; a part of a node counts as a whole one."""
        if self.observed.started_at is None:
            return 0.0
        return self.node_count * self.elapsed_s / 3600


def sum_node_hours(attempts: Iterable[AccountedJob]) -> float:
    """Returns the sum of node-hours, with each attempt once, by its longest record.

    Attempts of a job are distinguished by their start times.
    """
    longest: dict[tuple[str, float | None], float] = {}
    for attempt in attempts:
        key = (attempt.number, attempt.observed.started_at)
        longest[key] = max(longest.get(key, 0.0), attempt.node_hours)
    return sum(longest.values())


def read_span(text: str) -> float | None:
    """Reads ``2-00:00:00``, ``100:30:00`` or ``30:00`` in seconds; ``None`` for all else."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip(), re.ASCII)
    if not found:
        return None
    days, hours, minutes, seconds = (float(number or 0) for number in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@dataclass(frozen=True)
class Site:
    name: str  # the scheduler's name of the cluster
    version: str  # of the scheduler
    topology: Topology  # empty if the site didn't describe its network
    keeps_accounts: bool  # whether there is accounting
    remembers: bool = True  # whether the queue keeps finished jobs for a while


class Scheduler(Protocol):
    """A batch system that runs jobs on the nodes of a cluster.

    Its contract, which tests/contracts/test_scheduler_contract.py checks:

    - Once ``submit`` returned a job's number, ``poll`` lists it by that number and its name.
    - If ``submit`` raises, ``perhaps_accepted`` says whether there may be a job nevertheless.
    - ``poll`` doesn't raise for a job that doesn't exist: such a job is ABSENT, and the answer
      complete.
    - ``cancel`` ends these jobs and no others. It ignores finished and unknown ones, and may be
      repeated. It checks all job ids before it cancels any job.
    - ``account`` lists every attempt, in order. It may lag some seconds behind ``poll``, and call
      a job running that has just ended: it is for jobs that the queue no longer lists.
    - All errors are ``SchedulerFault``, or ``MissingComponent`` if the scheduler's commands don't
      exist.
    """

    @property
    def name(self) -> str:
        """The scheduler's name, for messages."""

    @property
    def keeps_accounts(self) -> bool:
        """Whether the site has accounting; without it ``account`` returns nothing."""

    def submit(self, script: Path, *, folder: Path, after: str = "") -> str:
        """Submits a script to run in a folder; returns the job's number.

        Args:
            after: number of a job on whose end, successful or not, this one depends.
        """

    def end_submission(self, script: Path) -> None:
        """Ends a submission of this script that outlived its controller, if there is one."""

    def cancel(self, jobs: Collection[str]) -> None:
        """Cancels exactly these jobs."""

    def let_requeue(self, job: str, allowed: bool) -> None:
        """Sets whether a job may be requeued, by ``requeue`` or after a node failure."""

    def requeue(self, job: str) -> None:
        """Requeues a running job under its number; ``let_requeue`` must have allowed it."""

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        """Returns the queue's entries of these jobs, or of all jobs of the user."""

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        """Returns the accounts' records of these jobs, or of all jobs of the user.

        Args:
            since: start of the period, seconds since 1970, before the first of them was submitted.
                It excludes older jobs, whose numbers may be the same.
        """

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        """Returns those of these nodes that are down, drained or not responding now."""

    def release_command(self, job: str) -> str:
        """Returns the command line that releases a held job, for the user."""


class StepLauncher(Protocol):
    """A launcher that starts the ranks of runs inside a job.

    The default methods are for schedulers without job steps.
    """

    #: Whether ``end_steps`` ends the ranks of a killed launch; else only their job's end does.
    ends_steps: ClassVar[bool]

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        """Returns the outcome of a failed run if the launcher is to blame; ``None`` if it isn't.

        Args:
            output: what the run printed.
            began: whether ranks came up.
            timed_out: whether it was killed at its time limit.
        """

    def lost_nodes(self, output: str) -> frozenset[str]:
        """Returns the names of nodes that it lost, or could not reach, by its output."""
        return frozenset()

    def steps(self, job: str) -> list[str]:
        """Returns a job's active steps but its script; a ``SchedulerFault`` for no answer."""
        return []

    def end_steps(self, job: str) -> None:
        """Ends all steps of a job but its script; a ``SchedulerFault`` for no answer."""
        return

    def place_command(self, nodes: int) -> tuple[str, ...]:
        """Returns the command of a step in which each node prints its place in the network."""
        return ()

    def read_places(self, printed: str) -> Topology:
        """Reads the output of such a step."""
        return {}


@dataclass(frozen=True)
class Allocation:
    """A job in which the controller runs."""

    #: Seconds before its end that are reserved for storing results and ending cleanly.
    MARGIN_S: ClassVar[float] = 40.0

    number: str  # of the job
    nodes: tuple[str, ...]  # their names
    #: began_at, ends_at: by the scheduler's clock, seconds since 1970; ``None`` for no limit.
    began_at: float
    ends_at: float | None
    clock_ahead_s: float = 0.0  # how far this node's clock is ahead of the scheduler's, seconds

    def check_time(self, wanted_s: float, now: float) -> None:
        """Raises ``AllocationOver`` if ``wanted_s`` seconds and the margin aren't left."""
        wanted_until = now - self.clock_ahead_s + wanted_s + self.MARGIN_S
        if self.ends_at is not None and wanted_until > self.ends_at:
            raise AllocationOver(f"the time of job {self.number} is nearly over")

    def ended_at(self, now: float) -> float:
        """Converts this node's time ``now`` of its end to the scheduler's clock."""
        return max(self.began_at, now - self.clock_ahead_s)

    def node_hours(self, now: float) -> float:
        """Returns the node-hours used so far."""
        return len(self.nodes) * (self.ended_at(now) - self.began_at) / 3600


@dataclass(frozen=True)
class PollBackoff:
    """An exponential backoff with jitter between two polls of the queue.

    Waits grow while nothing changes, which spares the scheduler; the jitter keeps controllers
    from polling at the same moment.
    """

    #: shortest_s, longest_s: seconds, without jitter.
    shortest_s: float = 5.0
    longest_s: float = 120.0
    growth = 1.5  # factor after each poll without news
    jitter: float = 0.2  # the most that is added or subtracted, as a share of the wait

    def wait_s(self, quiet: int) -> float:
        """Returns the seconds to wait after so many polls in a row without news or an answer."""
        wanted = self.shortest_s * self.growth ** min(quiet, 100)
        # Not by the campaign's seed, which is the same for most campaigns.
        chance = random.SystemRandom().uniform(1 - self.jitter, 1 + self.jitter)
        return min(self.longest_s, wanted) * chance
