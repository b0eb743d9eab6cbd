"""Which jobs are over: their own last files first, then the queue, then the accounts.

The queue is asked for all jobs at once, and no more often than patience allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from commtune.cluster.jobs.results import JobEnd
from commtune.cluster.jobs.tracked_job import TrackedJob, job_numbers, key_in
from commtune.cluster.slurm.accounting import Accounting, sighting_in
from commtune.cluster.slurm.queries import PollBackoff, Queue, QueueSnapshot, SlurmFault
from commtune.cluster.slurm.states import JobState, ObservedState, next_sighting
from commtune.errors import EnvironmentFault

#: Answers that must not name a job, of the queue and of the accounts if there are any, before it
#: is given up; and answers of the queue, where the accounts go on to call it alive.
_GONE, _RUNAWAY = 3, 20
#: How long the last file of a job that Slurm calls completed may take to be seen, seconds.
_FILE_LAG_S = 60.0


@dataclass
class JobMonitor:
    """Watches jobs.

    Attributes:
        accounting: ``None`` where the site keeps no accounts.
        clock: seconds since 1970.
        say: tells a person.
        changed: called with each job of which something new was learnt.
    """

    queue: Queue
    accounting: Accounting | None
    patience: PollBackoff
    clock: Callable[[], float]
    say: Callable[[str], None]
    changed: Callable[[TrackedJob], None]
    _looks: int = field(default=0, init=False)
    _quiet: int = field(default=0, init=False)
    _next_look_at: float = field(default=0.0, init=False)
    _in_trouble: bool = field(default=False, init=False)

    @property
    def next_look_at(self) -> float:
        """When the queue may be asked again, seconds since 1970."""
        return self._next_look_at

    def soon(self) -> None:
        """Something was begun: the next answers may bring news."""
        self._quiet = 0

    def over(self, flights: Sequence[TrackedJob]) -> list[tuple[TrackedJob, JobEnd]]:
        """Those of the jobs that are over, and how they ended; asks the queue if it is time.

        Raises:
            EnvironmentFault: Slurm will not answer, and says why.
        """
        found = [(flight, end) for flight in flights if (end := _by_file(flight))]
        if found or not job_numbers(flights) or self.clock() < self._next_look_at:
            return found
        known = [flight for flight in flights if flight.job.number]
        answer = self._ask(known)
        if answer is None:
            return []
        news = [self._take_in(flight, answer) for flight in known]
        self._schedule(any(news))
        self._ask_accounts(flight for flight in known if _is_for_accounts(flight))
        return [(flight, end) for flight in known if (end := self._end(flight, answer))]

    def _ask(self, known: Sequence[TrackedJob]) -> QueueSnapshot | None:
        try:
            answer = self.queue.look(job_numbers(known))
        except SlurmFault as fault:
            if not fault.transient:
                raise EnvironmentFault(fault.message, hint=fault.hint) from fault
            self._schedule(news=False)
            if not self._in_trouble:
                self.say(f"{fault.message}; jobs go on meanwhile, asking again")
            self._in_trouble = True
            return None
        if self._in_trouble:
            self.say("Slurm answers again")
        self._in_trouble = False
        # Slurm uses numbers again: what has another name is another job.
        ours = {flight.job.key for flight in known}
        jobs = tuple(job for job in answer.jobs if key_in(job.name) in ours)
        return replace(answer, jobs=jobs)

    def _schedule(self, news: bool) -> None:
        self._quiet = 0 if news else self._quiet + 1
        self._next_look_at = self.clock() + self.patience.wait_s(self._looks, self._quiet)
        self._looks += 1

    def _take_in(self, flight: TrackedJob, answer: QueueSnapshot) -> bool:
        """Takes in what the queue said; whether it was new."""
        before, seen = flight.sighting, answer.sighting(flight.job.number)
        flight.sighting = next_sighting(before, seen)
        flight.absences = flight.absences + 1 if seen.state is JobState.ABSENT else 0
        parts = answer.parts(flight.job.number)
        if parts:
            flight.noted(
                word=seen.word,
                reason=seen.reason,
                nodes=parts[0].node_list or flight.job.nodes,
                started_at=seen.started_at or flight.job.started_at,
                ended_at=parts[0].ended_at or flight.job.ended_at,
            )
        is_new = (before.state, before.reason) != (flight.sighting.state, flight.sighting.reason)
        if is_new:
            self.changed(flight)
        return is_new

    def _ask_accounts(self, asked: Iterable[TrackedJob]) -> None:
        """What the accounts say of jobs that the queue tells too little of."""
        missing = list(asked)
        if self.accounting is None or not missing:
            return
        since = min(flight.job.prepared_at for flight in missing) - 300
        try:
            records = self.accounting.look(job_numbers(missing), since)
        except SlurmFault:
            return  # asked again with the next look
        for flight in missing:
            seen = sighting_in(records, flight.job.number)
            if seen.state.is_over:
                flight.sighting = seen
                last = [r for r in records if flight.job.number in (r.id, r.number)][-1]
                flight.noted(
                    word=seen.word,
                    reason=seen.reason,
                    nodes=flight.job.nodes or last.node_list,
                    started_at=seen.started_at or flight.job.started_at,
                    ended_at=last.ended_at or flight.job.ended_at,
                )
                self.changed(flight)
            flight.forgotten += seen.state is JobState.ABSENT

    def _end(self, flight: TrackedJob, answer: QueueSnapshot) -> JobEnd | None:
        """How a job ended, if it has."""
        if _is_another(flight):
            self.changed(flight)
            return None
        state, now = flight.sighting.state, self.clock()
        if state.is_over:
            flight.over_at = now if flight.over_at is None else flight.over_at
            last = flight.folder.finished()
            if state is JobState.COMPLETED and last is None and now - flight.over_at < _FILE_LAG_S:
                return None
            return _ended(flight, flight.sighting)
        patience = _GONE if self.accounting is None else _RUNAWAY
        if flight.forgotten >= _GONE or (flight.absences >= patience and answer.complete):
            number = flight.job.number
            return _ended(
                flight,
                ObservedState(JobState.ABSENT, reason=f"Slurm no longer knows job {number}"),
            )
        return None


def _is_another(flight: TrackedJob) -> bool:
    """Whether another job with the same script has the block: then that is the one to watch.

    sbatch may be given up because a controller of Slurm's is busy, and the job be taken later,
    when a second one was handed in already. The second one measures nothing.
    """
    number = flight.folder.nodes().get("SLURM_JOB_ID", "")
    if not number or number == flight.job.number:
        return False
    flight.noted(number=number, word="", reason="", started_at=None, ended_at=None)
    flight.sighting, flight.over_at = ObservedState(JobState.UNKNOWN), None
    flight.absences = flight.forgotten = 0
    return True


def _is_for_accounts(flight: TrackedJob) -> bool:
    """Whether the queue no longer names a job, or doesn't say who cancelled it."""
    seen = flight.sighting
    if seen.state is JobState.CANCELLED:
        return seen.cancelled_by is None
    return flight.absences > 0 and not seen.state.is_over


def _by_file(flight: TrackedJob) -> JobEnd | None:
    """The end of a job whose script came to its own end: nobody need be asked."""
    last = flight.folder.finished()
    if last is None or last.status != 0:
        return None
    flight.noted(started_at=flight.job.started_at or last.began_at, ended_at=last.ended_at)
    return JobEnd(JobState.COMPLETED, "the script ended", last.ended_at, flight.job.nodes)


def _ended(flight: TrackedJob, sighting: ObservedState) -> JobEnd:
    said = sighting.reason if sighting.reason not in ("", "None") else sighting.state.value
    by = f" by user {sighting.cancelled_by}" if sighting.cancelled_by is not None else ""
    words = f"{sighting.word.partition(' by ')[0] or sighting.state.value}{by}"
    why = f"job {flight.job.number}: {words}" + (f" ({said})" if said not in words.lower() else "")
    return JobEnd(sighting.state, why, flight.job.ended_at, flight.job.nodes)
