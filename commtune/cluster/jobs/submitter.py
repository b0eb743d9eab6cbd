"""Submitting jobs, each once: whatever the scheduler answers, and whenever we die.

1. The script is written, then the job is put down in the book, then it is submitted, then its
   number is put down. The key in the job's name is known before the first of these.
2. A job in the book without a number may be in the queue or not. It is looked for by its name, in
   the queue and in the accounts, and by what it left in its folder; only then it is submitted
   (again).
3. Should two jobs with one script come about all the same, the second measures nothing: the
   script sees that its folder was used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from commtune.cluster.jobs.tracked_job import TrackedJob, key_in
from commtune.cluster.scheduler import PollBackoff, Scheduler, SchedulerFault
from commtune.errors import EnvironmentFault
from commtune.model import JobStage
from commtune.tuner.ports import JobBook

#: How far the clocks of this machine and of the scheduler's may differ, seconds.
_CLOCKS_S = 300.0
#: After this long without a single submission that worked, a night is lost anyway.
_GIVE_UP_S = 24 * 3600.0


@dataclass
class Submitter:
    """Gives jobs to the scheduler.

    Attributes:
        clock: seconds since 1970.
        say: tells a person.
    """

    scheduler: Scheduler
    book: JobBook
    backoff: PollBackoff
    clock: Callable[[], float]
    say: Callable[[str], None]
    _failing_since: float | None = field(default=None, init=False)

    def attempt(self, tracked: TrackedJob, after: str = "") -> None:
        """Submits a job, or finds that it is in the queue; it has a number then, or waits.

        Args:
            after: number of a job whose end this one waits for.

        Raises:
            EnvironmentFault: the scheduler will never take it, or has not answered for a day.
        """
        if tracked.job.number or self.clock() < tracked.next_attempt_at:
            return
        try:
            number = self.find_number(tracked) if tracked.perhaps_known else ""
            tracked.perhaps_known = False
            number = number or self._submit(tracked, after)
        except SchedulerFault as fault:
            tracked.perhaps_known = tracked.perhaps_known or fault.perhaps_accepted
            self._wait(tracked, fault)
        else:
            if self._failing_since is not None:
                self.say(f"{self.scheduler.name} takes jobs again")
            self._failing_since = None
            self.book.put_job(tracked.update(number=number, stage=JobStage.SUBMITTED))

    def _submit(self, tracked: TrackedJob, after: str) -> str:
        folder = tracked.folder
        return self.scheduler.submit(folder.script, folder=folder.path, after=after)

    def find_number(self, tracked: TrackedJob) -> str:
        """The number of a job that may have been submitted; empty where it was not.

        Raises:
            SchedulerFault: nobody can tell now.
        """
        # A submission that outlived its controller could still come about behind our back.
        self.scheduler.end_submission(tracked.folder.script)
        if number := tracked.folder.job_number():
            return number
        for queued in self.scheduler.poll().jobs:
            if key_in(queued.name) == tracked.job.key:
                return queued.number
        since = tracked.job.prepared_at - _CLOCKS_S
        for attempt in self.scheduler.account(None, since):
            if key_in(attempt.name) == tracked.job.key:
                return attempt.number
        return ""

    def _wait(self, tracked: TrackedJob, fault: SchedulerFault) -> None:
        """Leaves a job for later, if there is hope.

        Raises:
            EnvironmentFault: there is none.
        """
        now = self.clock()
        if not fault.transient:
            if not tracked.perhaps_known:
                # Its script would be refused again, whatever the campaign file says by then.
                self.book.put_job(tracked.update(stage=JobStage.OVER, detail=fault.message))
            raise EnvironmentFault(
                f"{self.scheduler.name} does not take the job: {fault.message}",
                hint=f"the script is {tracked.folder.script}\n"
                "correct 'slurm:' in the campaign file; the same command continues",
            ) from fault
        if self._failing_since is None:
            self._failing_since = now
            self.say(f"{fault.notice}; trying again")
        if now - self._failing_since > _GIVE_UP_S:
            raise EnvironmentFault(
                f"for a day no job could be submitted: {fault.message}",
                hint="what was measured is kept; the same command continues",
            ) from fault
        tracked.next_attempt_at = now + self.backoff.wait_s(tracked.attempts, tracked.attempts)
        tracked.attempts += 1
