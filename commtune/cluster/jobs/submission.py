"""Submits jobs, each at most once, and keeps what is known of a job in flight.

A submission may fail without saying whether the scheduler accepted the job. So every job has a key
that is recorded before it is submitted, and by which it is found in the queue.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.scheduler import GOES_ON, PollBackoff, Scheduler, SchedulerFault
from commtune.errors import EnvironmentFault
from commtune.model import JobRecord, JobStage, RunRequest
from commtune.tuner.ports import JobBook

_PREFIX = "commtune-"
_NAME = re.compile(_PREFIX + r"(?:.*-)?([0-9a-f]{16})", re.ASCII)


def new_key() -> str:
    """Returns a new job key, unique for ever, unlike the scheduler's numbers."""
    return uuid.uuid4().hex[:16]


def job_name(campaign: str, key: str) -> str:
    """Returns a job's name: the campaign for people, the key to find the job by."""
    return f"{_PREFIX}{re.sub(r'[^A-Za-z0-9_.-]', '-', campaign)[:40]}-{key}"


def key_in(name: str) -> str:
    """Returns the key in a job's name; empty for a job that isn't commtune's."""
    found = _NAME.fullmatch(name)
    return found[1] if found else ""


@dataclass
class TrackedJob:
    """A job in flight: its record in the job book, and what only this controller knows of it."""

    job: JobRecord  # as in the job book
    #: The runs of its block, in order; one for a trace, none for an allocation.
    requests: tuple[RunRequest, ...] = ()
    limit_s: float = 0.0  # seconds that each run may take
    expected_s: float = 0.0  # seconds that the job will likely have its nodes
    #: The scheduler's last answer.
    observed: ObservedState = field(default_factory=lambda: ObservedState(JobState.UNKNOWN))
    #: Whether the scheduler may have accepted the job although no number was recorded.
    perhaps_known: bool = False
    adopted: bool = False  # an earlier controller made it, and nobody watched it meanwhile
    submitted_at: float = 0.0  # seconds since 1970; 0 where another controller submitted it
    refusal: str = ""  # why the last submission failed, in a few words
    #: absences, forgotten: number of complete answers of the queue in a row, and of answers of
    #: the accounts, that didn't name it.
    absences: int = 0
    forgotten: int = 0
    over_at: float | None = None  # when it was first seen to be over, seconds since 1970

    @property
    def folder(self) -> JobFolder:
        return JobFolder(Path(self.job.folder))

    def update(self, **changes: Any) -> JobRecord:
        """Changes the job's record here, but not in the job book; returns it."""
        self.job = replace(self.job, **changes)
        return self.job


#: Seconds by which the clocks of this machine and of the scheduler's may differ.
CLOCKS_S = 300.0
#: Seconds without a successful submission after which the campaign gives up.
_GIVE_UP_S = 24 * 3600.0


@dataclass
class Submitter:
    """Submits the jobs of a campaign.

    When the scheduler refuses one for now, all wait: it would refuse the others as well. When the
    user's limit of jobs is reached, the next is submitted once a job of the campaign has ended,
    or after the usual wait.
    """

    scheduler: Scheduler
    book: JobBook
    backoff: PollBackoff
    clock: Callable[[], float]  # seconds since 1970
    say: Callable[[str], None]  # tells a person
    cancel_request: CancelRequest
    #: When the next job may be submitted, seconds since 1970.
    next_attempt_at: float = field(default=0.0, init=False)
    _failing_since: float | None = field(default=None, init=False)
    _refusals: int = field(default=0, init=False)  # in a row
    #: Number of the campaign's jobs in the queue when the user's limit was reached, or ``None``.
    _full_with: int | None = field(default=None, init=False)

    def attempt_all(self, tracked_jobs: Sequence[TrackedJob]) -> None:
        """Submits jobs without a number until the scheduler refuses one; raises as ``attempt``."""
        queued = sum(1 for tracked in tracked_jobs if tracked.job.number)
        for tracked in tracked_jobs:
            if not tracked.job.number:
                self.attempt(tracked, queued=queued)
                if not tracked.job.number:
                    return
                queued += 1

    def attempt(self, tracked: TrackedJob, after: str = "", *, queued: int = 0) -> None:
        """Submits a job, or finds it in the queue; without a number afterwards, it has to wait.

        Args:
            after: number of a job on whose end this one depends.
            queued: number of the campaign's jobs in the queue.

        Raises:
            EnvironmentFault: the scheduler refuses it for good, or nothing could be submitted for
                a day; or the campaign was cancelled.
        """
        has_room = self._full_with is not None and queued < self._full_with
        if tracked.job.number or (self.clock() < self.next_attempt_at and not has_room):
            return
        self.cancel_request.check()
        try:
            number = self.find_number(tracked) if tracked.perhaps_known else ""
            tracked.perhaps_known = False
            folder = tracked.folder
            number = number or self.scheduler.submit(
                folder.script, folder=folder.path, after=after
            )
        except SchedulerFault as fault:
            tracked.perhaps_known = tracked.perhaps_known or fault.perhaps_accepted
            self._full_with = queued if fault.is_full else None
            self._wait(tracked, fault)
        else:
            if has_room:
                self._failing_since = self.clock()
            elif self._failing_since is not None:
                self.say(f"{self.scheduler.name} accepts jobs again")
                self._failing_since = self._full_with = None
            self._refusals = 0
            tracked.submitted_at = self.clock()
            self.book.put_job(tracked.update(number=number, stage=JobStage.SUBMITTED))

    def find_number(self, tracked: TrackedJob) -> str:
        """Returns the number of a job that may have been submitted; empty where it wasn't.

        Raises:
            SchedulerFault: the scheduler gives no answer.
        """
        # An sbatch or qsub that outlived its controller could still submit the job later.
        self.scheduler.end_submission(tracked.folder.script)
        if number := tracked.folder.job_number():
            return number
        for queued in self.scheduler.poll().jobs:
            if key_in(queued.name) == tracked.job.key:
                return queued.number
        for attempt in self.scheduler.account(None, tracked.job.prepared_at - CLOCKS_S):
            if key_in(attempt.name) == tracked.job.key:
                return attempt.number
        return ""

    def _wait(self, tracked: TrackedJob, fault: SchedulerFault) -> None:
        """Schedules the next attempt; raises an ``EnvironmentFault`` if none can succeed."""
        now = self.clock()
        if not fault.transient:
            if not tracked.perhaps_known:
                # Its script would be refused again even if the campaign file is corrected.
                self.book.put_job(tracked.update(stage=JobStage.OVER, detail=fault.message))
            raise EnvironmentFault(
                f"{self.scheduler.name} does not accept the job: {fault.message}",
                hint=f"the script is {tracked.folder.script}\n"
                f"correct '{self.scheduler.name.lower()}:' in the campaign file; "
                "the same command continues",
            ) from fault
        if self._failing_since is None:
            self._failing_since = now
            self.say(f"{fault.notice}; trying again")
        if now - self._failing_since > _GIVE_UP_S:
            raise EnvironmentFault(
                f"no job could be submitted for a day: {fault.message}", hint=GOES_ON
            ) from fault
        self.next_attempt_at = now + self.backoff.wait_s(self._refusals)
        self._refusals += 1
        tracked.refusal = fault.notice
