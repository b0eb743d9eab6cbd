"""When to go on without a node, and when to stop a campaign: with a clear word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from commtune.cluster.job_states import JobState, PendingReason, Policy
from commtune.cluster.jobs.failed_nodes import FailedNodes
from commtune.cluster.jobs.results import JobEnd
from commtune.cluster.jobs.tracked_job import TrackedJob
from commtune.cluster.scheduler import Scheduler, SchedulerFault
from commtune.errors import EnvironmentFault

_GOES_ON = "what was measured is kept; the same command continues"


@dataclass
class StopPolicy:
    """Remembers failures of nodes, and why the campaign has to stop.

    Attributes:
        failed_nodes: nodes that jobs do without, or soon may.
        say: tells a person.
    """

    scheduler: Scheduler
    failed_nodes: FailedNodes
    say: Callable[[str], None]
    _stop: EnvironmentFault | None = field(default=None, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes that jobs do without from now on."""
        return self.failed_nodes.excluded

    def check(self) -> None:
        """Raises what stops the campaign, if anything does.

        Raises:
            EnvironmentFault: with what to do.
        """
        if self._stop is not None:
            raise self._stop

    def take_end(
        self, tracked: TrackedJob, end: JobEnd, nodes: Sequence[str], lost: Collection[str] = ()
    ) -> None:
        """Takes in how a job ended.

        Args:
            lost: those of its nodes that its runs could not reach.
        """
        if lost or (end.state is JobState.NODE_FAILURE and nodes):
            self._take_node_failure(tracked.job.number, nodes, frozenset(lost))
        elif end.state.policy is Policy.STOP and not tracked.adopted:
            self._stop = EnvironmentFault(
                f"the campaign stops: {end.why}",
                hint=f"{_GOES_ON}\n'commtune cancel' ends jobs that are still there",
            )

    def check_stuck(self, tracked_jobs: Sequence[TrackedJob]) -> None:
        """Cancels a job that can never start, and stops; says it of one that is held.

        Raises:
            EnvironmentFault: a job can never start.
        """
        for tracked in tracked_jobs:
            observed, number = tracked.observed, tracked.job.number
            if observed.state is not JobState.NEVER_STARTED:
                continue
            if observed.pending is PendingReason.HELD:
                if number not in self._told:
                    self._told.add(number)
                    release = self.scheduler.release_command(number)
                    self.say(f"job {number} is held ({observed.reason}): '{release}'")
                continue
            pending = observed.pending or PendingReason.UNKNOWN
            self._stop = EnvironmentFault(
                f"job {number} will not start: {pending.value} ({observed.reason})",
                hint=f"correct 'slurm:' in the campaign file; {_GOES_ON}",
            )
            self.scheduler.cancel([number])
            raise self._stop

    def _take_node_failure(self, number: str, nodes: Sequence[str], lost: frozenset[str]) -> None:
        try:
            failed = lost | self.scheduler.failed_nodes(nodes)
        except SchedulerFault:
            failed = lost
        if not failed and len(nodes) == 1:
            failed = frozenset(nodes)
        if failed:
            self.failed_nodes.add_failure(number, failed)
            return
        # To leave out all of them would soon leave none.
        self.say(f"job {number} lost a node, which is up again: its runs are re-run")
