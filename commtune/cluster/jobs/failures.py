"""Keeps the nodes that failed in a campaign's jobs, and decides when the campaign must stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from commtune.cluster.job_states import JobState, PendingReason
from commtune.cluster.jobs.run_results import JobEnd
from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.scheduler import GOES_ON, Scheduler, SchedulerFault
from commtune.errors import EnvironmentFault
from commtune.private_files import replace_own_file

#: Number of jobs in which a node may fail before it is excluded.
_MOST_FAILURES = 1


@dataclass
class FailedNodes:
    """The nodes that failed, with the jobs they failed in, in a file that outlives controllers.

    A node that failed in two jobs is excluded from further ones. The file is read each time, as
    several objects of a controller add to it. A job counts once, however often it is reported.
    """

    file: Path
    say: Callable[[str], None]  # tells a person
    excludes: bool = True  # whether jobs can exclude nodes
    _noted: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def excluded(self) -> tuple[str, ...]:
        """The names of the nodes that further jobs must not get, sorted."""
        return tuple(sorted(n for n, jobs in self._known().items() if self._is_over(jobs)))

    def add_failure(self, job: str, nodes: Collection[str]) -> None:
        """Records that these nodes failed in a job (its number), and tells the user."""
        known, excluded = self._known(), self.excluded
        if all(job in known.get(node, ()) for node in nodes):
            return
        for node in nodes:
            known.setdefault(node, set()).add(job)
        self._noted = known
        self.say(f"job {job} lost a node ({', '.join(sorted(nodes))}): its runs are re-run")
        for node in sorted(set(nodes) - set(excluded)):
            if self._is_over(known[node]):
                jobs = ", ".join(sorted(known[node]))
                self.say(
                    f"node {node} failed in {len(known[node])} jobs ({jobs}) and is left out "
                    "from now on"
                )
        try:
            plain = {node: sorted(jobs) for node, jobs in known.items()}
            replace_own_file(self.file, json.dumps(plain))
        except OSError as error:
            self.say(f"the list of failed nodes can't be saved: {self.file}: {error.strerror}")

    def _is_over(self, jobs: Collection[str]) -> bool:
        return self.excludes and len(jobs) > _MOST_FAILURES

    def _known(self) -> dict[str, set[str]]:
        """Returns the jobs by failed node: those in the file, and those that weren't written."""
        known = _read(self.file)
        for node, jobs in self._noted.items():
            known.setdefault(node, set()).update(jobs)
        return known


def _read(file: Path) -> dict[str, set[str]]:
    """Reads the file; returns nothing where it can't be read or holds anything else."""
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {
        node: set(jobs)
        for node, jobs in known.items()
        if isinstance(jobs, list) and all(isinstance(job, str) for job in jobs)
    }


@dataclass
class StopPolicy:
    """Decides from the ends of jobs which nodes failed, and whether the campaign must stop."""

    scheduler: Scheduler
    failed_nodes: FailedNodes
    say: Callable[[str], None]  # tells a person
    _stop: EnvironmentFault | None = field(default=None, init=False)
    _told: set[str] = field(default_factory=set, init=False)

    def check(self) -> None:
        """Raises the ``EnvironmentFault`` that stops the campaign, if anything does."""
        if self._stop is not None:
            raise self._stop

    def take_end(
        self, tracked: TrackedJob, end: JobEnd, nodes: Sequence[str], lost: Collection[str] = ()
    ) -> None:
        """Evaluates how a job ended; its launcher could not reach the nodes in ``lost``."""
        if lost or (end.state is JobState.NODE_FAILURE and nodes):
            self._take_node_failure(tracked.job.number, nodes, frozenset(lost))
        elif end.state.stops_campaign and not tracked.adopted:
            self._stop = EnvironmentFault(
                f"the campaign stops: {end.why}",
                hint=f"{GOES_ON}\n'commtune cancel' ends jobs that are still there",
            )

    def check_stuck(self, tracked_jobs: Sequence[TrackedJob]) -> None:
        """Reports held jobs; for one that can't start, cancels it and raises EnvironmentFault."""
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
                hint=f"correct '{self.scheduler.name.lower()}:' in the campaign file; {GOES_ON}",
            )
            with suppress(SchedulerFault):
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
        # It is unknown which one failed, and excluding all of a job's nodes would soon leave none.
        self.say(f"job {number} lost a node, which is up again: its runs are re-run")
