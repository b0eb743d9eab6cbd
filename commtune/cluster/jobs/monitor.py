"""Finds out which jobs are over: from the files they leave, then the queue, then the accounts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.jobs.run_results import JobEnd
from commtune.cluster.jobs.submission import CLOCKS_S, TrackedJob, key_in
from commtune.cluster.scheduler import (
    PollBackoff,
    QueuedJob,
    QueueSnapshot,
    Scheduler,
    SchedulerFault,
)
from commtune.errors import EnvironmentFault
from commtune.model import JobRecord, JobStage
from commtune.private_files import name_of_user

#: Number of answers without a job after which it is given up. The first is for the accounts, and
#: for the queue where there are no accounts; the second for the queue where the accounts still
#: call the job alive (Slurm's runaway jobs).
_GONE, _RUNAWAY = 3, 20


@dataclass
class JobMonitor:
    """Watches a campaign's jobs in flight."""

    scheduler: Scheduler
    backoff: PollBackoff
    clock: Callable[[], float]  # seconds since 1970
    say: Callable[[str], None]  # tells a person
    #: Called with each job whose state changed.
    changed: Callable[[TrackedJob], None]
    #: Whether all record files of a finished job's good runs are visible here.
    has_files: Callable[[TrackedJob], bool]
    #: Seconds that files of a finished job may take to become visible here (network file systems).
    late_files_s: float = 60.0
    _quiet: int = field(default=0, init=False)
    next_look_at: float = field(default=0.0, init=False)  # seconds since 1970
    _in_trouble: bool = field(default=False, init=False)

    def soon(self) -> None:
        """Resets the polling interval to its shortest, after a job was submitted or adopted."""
        self._quiet = 0

    def over(self, tracked_jobs: Sequence[TrackedJob]) -> list[tuple[TrackedJob, JobEnd]]:
        """Returns the jobs that are over, and how they ended; polls the queue when that is due."""
        found = [
            (tracked, end)
            for tracked in tracked_jobs
            if (end := _by_file(tracked))
            and not (self._lacks_files(tracked) and self._is_recent(tracked))
        ]
        if found or not _job_numbers(tracked_jobs) or self.clock() < self.next_look_at:
            return found
        known = [tracked for tracked in tracked_jobs if tracked.job.number]
        answer = self._ask(known)
        if answer is None:
            return []
        known = [tracked for tracked in known if tracked.submitted_at <= answer.asked_at]
        news = [self._take_in(tracked, answer) for tracked in known]
        self._schedule(any(news))
        self._ask_accounts(tracked for tracked in known if _is_for_accounts(tracked))
        return [(tracked, end) for tracked in known if (end := self._end(tracked, answer))]

    def _ask(self, known: Sequence[TrackedJob]) -> QueueSnapshot | None:
        try:
            answer = self.scheduler.poll(_job_numbers(known))
        except SchedulerFault as fault:
            if not fault.transient:
                raise EnvironmentFault(fault.message, hint=fault.hint) from fault
            self._schedule(news=False)
            if not self._in_trouble:
                self.say(f"{fault.message}; jobs continue, asking again")
            self._in_trouble = True
            return None
        if self._in_trouble:
            self.say(f"{self.scheduler.name} answers again")
        self._in_trouble = False
        # Schedulers reuse numbers: an entry with another name is another job.
        ours = {tracked.job.key for tracked in known}
        jobs = tuple(job for job in answer.jobs if key_in(job.name) in ours)
        return replace(answer, jobs=jobs)

    def _schedule(self, news: bool) -> None:
        self._quiet = 0 if news else self._quiet + 1
        self.next_look_at = self.clock() + self.backoff.wait_s(self._quiet)

    def _take_in(self, tracked: TrackedJob, answer: QueueSnapshot) -> bool:
        """Updates a job from the queue's answer; returns whether its state or reason changed."""
        # By its key: its number may be another job's by now.
        own = tuple(job for job in answer.jobs if key_in(job.name) == tracked.job.key)
        answer = replace(answer, jobs=own)
        if own and not answer.find(tracked.job.number):
            tracked.update(number=own[0].number)
        before, seen = tracked.observed, answer.state_of(tracked.job.number)
        tracked.observed = before.updated(seen)
        tracked.absences = tracked.absences + 1 if seen.state is JobState.ABSENT else 0
        if entry := answer.find(tracked.job.number):
            tracked.job = _described(tracked.job, seen, entry)
        is_new = (before.state, before.reason) != (tracked.observed.state, tracked.observed.reason)
        if is_new:
            self.changed(tracked)
        return is_new

    def _ask_accounts(self, asked: Iterable[TrackedJob]) -> None:
        """Updates jobs from the accounts, where the queue says too little of them."""
        missing = list(asked)
        if not self.scheduler.keeps_accounts or not missing:
            return
        since = min(tracked.job.prepared_at for tracked in missing) - CLOCKS_S
        try:
            records = self.scheduler.account(_job_numbers(missing), since)
        except SchedulerFault:
            return  # asked again after the next poll
        for tracked in missing:
            attempts = [one for one in records if one.number == tracked.job.number]
            tracked.forgotten += not attempts
            if attempts and attempts[-1].observed.state.is_over:
                last = attempts[-1]
                tracked.observed = last.observed
                # For some seconds, the accounts name only the node of the job's script.
                nodes = tracked.job.nodes or last.node_list
                tracked.job = replace(_described(tracked.job, last.observed, last), nodes=nodes)
                self.changed(tracked)

    def _end(self, tracked: TrackedJob, answer: QueueSnapshot) -> JobEnd | None:
        if _is_another(tracked):
            self.changed(tracked)
            return None
        state = tracked.observed.state
        if state.is_over:
            # A job that never had nodes left no files. The accounts learn who cancelled a job a
            # little later than the queue learns that it is over.
            ran = state is JobState.COMPLETED or tracked.job.started_at is not None
            is_more_said = self.scheduler.keeps_accounts and _is_for_accounts(tracked)
            is_late = is_more_said or (ran and self._lacks_files(tracked))
            if is_late and self._is_recent(tracked):
                return None
            return _ended(tracked, tracked.observed)
        most = _RUNAWAY if self.scheduler.keeps_accounts else _GONE
        if tracked.forgotten >= _GONE or (tracked.absences >= most and answer.complete):
            reason = f"{self.scheduler.name} no longer knows job {tracked.job.number}"
            return _ended(tracked, ObservedState(JobState.ABSENT, reason=reason))
        return None

    def _lacks_files(self, tracked: TrackedJob) -> bool:
        return tracked.folder.finished() is None or not self.has_files(tracked)

    def _is_recent(self, tracked: TrackedJob) -> bool:
        now = self.clock()
        tracked.over_at = now if tracked.over_at is None else tracked.over_at
        return now - tracked.over_at < self.late_files_s


def _job_numbers(tracked_jobs: Sequence[TrackedJob]) -> list[str]:
    return [tracked.job.number for tracked in tracked_jobs if tracked.job.number]


def _is_another(tracked: TrackedJob) -> bool:
    """Whether another job runs the same script; if so, tracks that one instead.

    A busy scheduler may accept a submission that was given up, after a second one. Of two jobs
    with a script, the first to start measures, and the other one does nothing.
    """
    number = tracked.folder.job_number()
    if not number or number == tracked.job.number:
        return False
    tracked.update(number=number, word="", reason="", started_at=None, ended_at=None)
    tracked.observed, tracked.over_at = ObservedState(JobState.UNKNOWN), None
    tracked.absences = tracked.forgotten = 0
    return True


def _is_for_accounts(tracked: TrackedJob) -> bool:
    """Whether the queue no longer lists a job, or doesn't say who cancelled it."""
    seen = tracked.observed
    if seen.state is JobState.CANCELLED:
        return seen.cancelled_by is None
    return tracked.absences > 0 and not seen.state.is_over


def _by_file(tracked: TrackedJob) -> JobEnd | None:
    """Returns the end of a job whose script succeeded by its own file; else ``None``."""
    last = tracked.folder.finished()
    if last is None or last.status != 0:
        return None
    if tracked.job.started_at is None or tracked.job.ended_at is None:
        # Both times by the node's clock, as the scheduler's may differ.
        tracked.update(started_at=last.began_at, ended_at=last.ended_at)
    return JobEnd(JobState.COMPLETED, "the script ended", last.ended_at)


def _ended(tracked: TrackedJob, observed: ObservedState) -> JobEnd:
    said = observed.reason if observed.reason not in ("", "None") else observed.state.value
    by = f" by {name_of_user(observed.cancelled_by)}" if observed.cancelled_by is not None else ""
    words = f"{observed.word.partition(' by ')[0] or observed.state.value}{by}"
    more = f" ({said})" if said not in words.lower() else ""
    why = f"job {tracked.job.number}: {words}{more}"
    return JobEnd(observed.state, why, tracked.job.ended_at)


def refresh_jobs(jobs: Collection[JobRecord], scheduler: Scheduler) -> dict[str, JobRecord]:
    """Returns jobs as the queue describes them now, by key; none where it gives no answer.

    Jobs that are over, or not in the queue any more, are OVER. Nothing is stored.
    """
    asked = [job for job in jobs if job.number]
    if not asked:
        return {}
    try:
        answer = scheduler.poll([job.number for job in asked])
    except EnvironmentFault:
        return {}
    return {job.key: _refreshed(job, answer) for job in asked}


def _refreshed(job: JobRecord, answer: QueueSnapshot) -> JobRecord:
    entry = answer.find(job.number)
    if entry is None or key_in(entry.name) != job.key:
        gone = replace(job, stage=JobStage.OVER, word="not in the queue", reason="")
        return gone if answer.complete else job
    known = _described(job, entry.observed, entry)
    return replace(known, stage=JobStage.OVER) if entry.observed.state.is_over else known


def _described(job: JobRecord, seen: ObservedState, by: QueuedJob) -> JobRecord:
    """Returns a job's record with what the queue or the accounts say of it."""
    return replace(
        job,
        word=seen.word,
        reason=seen.reason,
        nodes=by.node_list or job.nodes,
        started_at=seen.started_at or job.started_at,
        ended_at=by.ended_at or job.ended_at,
    )
