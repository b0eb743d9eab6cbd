"""Handing jobs in, each once: whatever sbatch answers, and whenever we die.

1. The script is written, then the job is put down in the book, then sbatch is called, then
   Slurm's number is put down. The key in the job's name is known before the first of these.
2. A job in the book without a number may be in Slurm or not. It is looked for by its name, in the
   queue and in the accounts, and by what it left in its folder; only then it is handed in (again).
3. Should two jobs with one script come about all the same, the second measures nothing: the
   script sees that its folder was used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from commtune import process
from commtune.cluster.jobs.tracked_job import TrackedJob, key_in
from commtune.cluster.slurm.accounting import Accounting
from commtune.cluster.slurm.queries import PollBackoff, Queue, SlurmError, SlurmFault
from commtune.cluster.slurm.submission import Submission, SubmissionFault
from commtune.errors import EnvironmentFault
from commtune.model import JobStage
from commtune.tuner.ports import JobBook

#: How far the clocks of this machine and of Slurm's may differ, seconds.
_CLOCKS_S = 300.0
#: After this long without a single submission that worked, a night is lost anyway.
_GIVE_UP_S = 24 * 3600.0
#: Troubles that are worth a word at once.
_WORDS = {
    SlurmError.QUEUE_FULL: "Slurm takes no more jobs of yours for now",
    SlurmError.CLOSED: "Slurm starts no jobs there for now",
}


@dataclass
class Submitter:
    """Gives jobs to Slurm.

    Attributes:
        accounting: ``None`` where the site keeps no accounts.
        options: of sbatch, which go before those in the scripts.
        clock: seconds since 1970.
        say: tells a person.
    """

    submission: Submission
    queue: Queue
    accounting: Accounting | None
    book: JobBook
    patience: PollBackoff
    clock: Callable[[], float]
    say: Callable[[str], None]
    options: Sequence[str] = ()
    _failing_since: float | None = field(default=None, init=False)

    def attempt(self, flight: TrackedJob) -> None:
        """Hands a job in, or finds that Slurm has it; it has a number then, or waits.

        Raises:
            EnvironmentFault: Slurm will never take it, or has not answered for a day.
        """
        if flight.job.number or self.clock() < flight.next_attempt_at:
            return
        try:
            number = self.known(flight) if flight.perhaps_known else ""
            flight.perhaps_known = False
            number = number or self._submit(flight)
        except SubmissionFault as fault:
            flight.perhaps_known = flight.perhaps_known or fault.perhaps_accepted
            self._wait(flight, fault)
        except SlurmFault as fault:
            self._wait(flight, fault)
        else:
            if self._failing_since is not None:
                self.say("Slurm takes jobs again")
            self._failing_since = None
            self.book.put_job(flight.noted(number=number, stage=JobStage.SUBMITTED))

    def _submit(self, flight: TrackedJob) -> str:
        folder = flight.folder
        return self.submission.submit(folder.script, folder=folder.path, options=self.options)

    def known(self, flight: TrackedJob) -> str:
        """Slurm's number of a job that may have been handed in; empty where it was not.

        Raises:
            SlurmFault: nobody can tell now.
        """
        # An sbatch that outlived its controller could still hand the job in behind our back.
        script = flight.folder.script.absolute()
        process.end_running(Path(self.submission.sbatch).name, str(script))
        if number := flight.folder.nodes().get("SLURM_JOB_ID", ""):
            return number
        for job in self.queue.mine().jobs:
            if key_in(job.name) == flight.job.key:
                return job.number
        if self.accounting is None:
            return ""
        since = flight.job.prepared_at - _CLOCKS_S
        for record in self.accounting.mine(os.getuid(), since):
            if key_in(record.name) == flight.job.key:
                return record.number
        return ""

    def _wait(self, flight: TrackedJob, fault: SlurmFault) -> None:
        """Leaves a job for later, if there is hope.

        Raises:
            EnvironmentFault: there is none.
        """
        now = self.clock()
        if not fault.transient:
            if not flight.perhaps_known:
                # Its script would be refused again, whatever the campaign file says by then.
                self.book.put_job(flight.noted(stage=JobStage.OVER, detail=fault.message))
            raise EnvironmentFault(
                f"Slurm does not take the job: {fault.message}",
                hint=f"the script is {flight.folder.script}\n"
                "correct 'slurm:' in the campaign file; the same command goes on",
            ) from fault
        if self._failing_since is None:
            self._failing_since = now
            self.say(f"{_WORDS.get(fault.trouble, fault.message)}; trying again")
        if now - self._failing_since > _GIVE_UP_S:
            raise EnvironmentFault(
                f"for a day no job could be handed in: {fault.message}",
                hint="what was measured is kept; the same command goes on",
            ) from fault
        flight.next_attempt_at = now + self.patience.wait_s(flight.attempts, flight.attempts)
        flight.attempts += 1
