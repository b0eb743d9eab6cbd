"""Reads the results of a finished job's runs: from its files, and from the scheduler's job state.

A run with an exit file ended before its job; the first one without was running when it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commtune import process
from commtune.cluster.environment_padding import padding_facts
from commtune.cluster.exit_codes import OVER_TIME, judge_run, judge_whole, result_of
from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.aggressor import AggressorLaunch, output_beside_step
from commtune.cluster.jobs.job_folder import ExitRecord, JobFolder, read_tail, renew_entries
from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.placement import Topology, expand_readable_hosts, find_distance
from commtune.cluster.scheduler import StepLauncher
from commtune.documents.packed_files import kept_file, record_file
from commtune.model import JobKind, Outcome, RunRequest, RunResult
from commtune.paths import exists
from commtune.tuner.ports import Program

_MEMORY_WORDS = ("oom-kill", "oom_kill", "out of memory", "out-of-memory")

#: The outcome of a run that was running, or not started yet, when its job ended in this state.
_LOST = {
    JobState.NODE_FAILURE: Outcome.NODE_FAILURE,
    JobState.PREEMPTED: Outcome.PREEMPTED,
    JobState.CANCELLED: Outcome.CANCELLED,
    JobState.NEVER_STARTED: Outcome.NEVER_STARTED,
}
#: Outcomes that a failed node may cause before anybody notices that it failed.
_MAY_HANG = (Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.FAILED, Outcome.TRUNCATED)
#: All outcomes that a failed node may cause.
HITS = (*_MAY_HANG, Outcome.NODE_FAILURE, Outcome.NEVER_STARTED)
#: States of jobs whose running steps the scheduler killed.
_ENDING_OTHERS = frozenset({*_LOST, JobState.TIMED_OUT})


@dataclass(frozen=True)
class JobEnd:
    """The end of a job, as far as it is known."""

    #: The scheduler's; COMPLETED where the script's last file says so, ABSENT where the scheduler
    #: no longer knows the job and there is no such file.
    state: JobState
    why: str = ""  # the scheduler's reason, for people
    ended_at: float | None = None  # seconds since 1970, or ``None``


@dataclass(frozen=True)
class ResultReader:
    """Reads the files that jobs left; reading them again gives the same results."""

    program: Program
    #: environment, watched: variables of every run, and names of those that ranks report.
    environment: Mapping[str, str]
    watched: Sequence[str]
    records: Path  # folder of the record files, one for each run, named by its identifier
    topology: Topology  # as far as the site described its network
    launcher: StepLauncher  # starts the runs in jobs
    switch_is_group: bool = False  # see ``placement.find_distance``
    #: Returns those of a job's nodes that the scheduler calls failed, for launchers that don't.
    failed_nodes: Callable[[Sequence[str]], Collection[str]] = lambda _: ()
    #: The aggressor beside each run; runs are on the nodes before its own.
    aggressor: AggressorLaunch | None = None

    def results(self, tracked: TrackedJob, end: JobEnd) -> list[RunResult]:
        """Returns the results of a block's runs, once its job is over, in their order."""
        folder, nodes = tracked.folder, self.nodes_of(tracked)
        if self.aggressor is not None:
            nodes = nodes[: self.aggressor.job_request.nodes]
        distance = self._distance(folder, nodes)
        found: list[RunResult] = []
        for request in tracked.requests:
            ending = folder.ending(request.position)
            if ending is None:
                result = self._cut_short(tracked, request, end)
            else:
                result = self._ended(tracked, request, ending, end)
                if self.aggressor is not None:
                    output = output_beside_step(folder.step_output(request.position))
                    result = self.aggressor.checked(result, output)
            found.append(replace(result, nodes=nodes, distance=distance))
        lost_node = end.state is JobState.NODE_FAILURE or bool(self.lost_nodes(found, nodes))
        return _without_blame(found, lost_node)

    def has_files(self, tracked: TrackedJob) -> bool:
        """Whether each run of a block with exit status 0 has its record file."""
        if tracked.job.kind is JobKind.TRACE:
            return True
        renew_entries(self.records)
        endings = [(run, tracked.folder.ending(run.position)) for run in tracked.requests]
        good = [run for run, ending in endings if ending and ending.status == 0]
        return all(exists(kept_file(record_file(self.records, run.run_id))) for run in good)

    def lost_nodes(self, results: Sequence[RunResult], nodes: Sequence[str]) -> frozenset[str]:
        """Returns those of a job's nodes that the launcher lost, or could not reach."""
        lost = [result.detail for result in results if result.outcome.is_lost]
        if found := self.launcher.lost_nodes("\n".join(lost)):
            return found
        is_hit = any(result.outcome in HITS for result in results)
        return frozenset(self.failed_nodes(nodes) if is_hit else ())

    def nodes_of(self, tracked: TrackedJob) -> tuple[str, ...]:
        """Returns the names of a job's nodes; none where neither it nor the scheduler says."""
        return expand_readable_hosts(tracked.folder.node_list() or tracked.job.nodes)

    def _distance(self, folder: JobFolder, nodes: Sequence[str]) -> str:
        if not nodes:
            return ""
        topology = self.topology or self.launcher.read_places(folder.places())
        return str(find_distance(topology, nodes, switch_is_group=self.switch_is_group))

    def _ended(
        self, tracked: TrackedJob, request: RunRequest, ending: ExitRecord, end: JobEnd
    ) -> RunResult:
        folder, limit_s = tracked.folder, tracked.limit_s
        output = read_tail(folder.step_output(request.position))
        over = ending.status in OVER_TIME and ending.wall_s >= limit_s
        completed = process.Completed(ending.status, None, over, ending.wall_s, output)
        found = self.program.read(record_file(self.records, request.run_id), request)
        ran = judge_run(found, completed, limit_s, self.launcher.judge_failure)
        expected = {**self.environment, **request.configuration}
        judged = judge_whole(request, found, ran, expected, self.watched)
        if ran[0] is Outcome.OK:
            pass
        elif _is_memory(end, output):
            judged = Outcome.OUT_OF_MEMORY, f"out of memory; {judged[1]}"
        elif end.state in _ENDING_OTHERS and _is_last(folder, request.position):
            # It was killed with its job, which still had the time to write an exit file.
            judged = _LOST.get(end.state, Outcome.INTERRUPTED), f"cut short: {end.why}"
        padding = padding_facts(request, self.environment, self.records)
        return result_of(request, found, judged, ending.began_at, completed, padding)

    def _cut_short(self, tracked: TrackedJob, request: RunRequest, end: JobEnd) -> RunResult:
        folder, position = tracked.folder, request.position
        # When it began, if it did; ``None`` if an earlier run has no exit file either.
        began_at = _end_before(folder, position)
        found = self.program.read(record_file(self.records, request.run_id), request)
        begun = found.header is not None or exists(folder.step_output(position))
        output = read_tail(folder.step_output(position)) if begun else read_tail(folder.output)
        wall_s = max(0.0, (end.ended_at or 0.0) - began_at) if begun and began_at else 0.0
        outcome = _LOST.get(end.state, Outcome.INTERRUPTED)
        if begun and end.state is JobState.OUT_OF_MEMORY:
            outcome = Outcome.OUT_OF_MEMORY
        elif begun and end.state is JobState.TIMED_OUT and wall_s >= tracked.limit_s:
            outcome = Outcome.TIMED_OUT
        judged = outcome, f"{'cut short' if begun else 'never made'}: {end.why}"
        completed = process.Completed(None, None, False, wall_s, output)
        started_at = began_at or end.ended_at or 0.0
        padding = padding_facts(request, self.environment, self.records)
        return result_of(request, found, judged, started_at, completed, padding)


def _without_blame(found: Sequence[RunResult], lost_node: bool) -> list[RunResult]:
    """Attributes failed runs to a node failure, where there was one, not to their configurations.

    The scheduler notices a failed node late. Until then a run hangs, and the next one can't be
    started: this pattern counts as a node failure, too.
    """
    if lost_node:
        return [_not_blamed(result) for result in found]
    behind = [*(result.outcome for result in found[1:]), Outcome.OK]
    return [
        _not_blamed(result)
        if result.outcome is Outcome.TIMED_OUT and after is Outcome.NEVER_STARTED
        else result
        for result, after in zip(found, behind, strict=True)
    ]


def _not_blamed(result: RunResult) -> RunResult:
    """Returns a run as NODE_FAILURE if it failed in a way that a failed node may cause."""
    if result.outcome not in _MAY_HANG:
        return result
    detail = f"its job lost a node; {result.detail}"
    return replace(result, outcome=Outcome.NODE_FAILURE, detail=detail)


def _end_before(folder: JobFolder, position: int) -> float | None:
    """Returns when the run before this one ended, or the script began; ``None`` if not known."""
    if position:
        before = folder.ending(position - 1)
        return before.ended_at if before else None
    last = folder.finished()
    return last.began_at if last else None


def _is_last(folder: JobFolder, position: int) -> bool:
    """Whether this run was the last one of its job, which was ended during it."""
    last = folder.finished()
    return folder.ending(position + 1) is None and (last is None or last.status != 0)


def _is_memory(end: JobEnd, output: str) -> bool:
    text = output.lower()
    return end.state is JobState.OUT_OF_MEMORY and any(word in text for word in _MEMORY_WORDS)
