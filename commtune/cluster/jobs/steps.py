"""Makes runs inside an allocation, each as a job step, one after the other."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from commtune.cluster.exit_codes import KILLED
from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.aggressor import AggressorLaunch, output_beside_run, read_presence
from commtune.cluster.jobs.failures import FailedNodes
from commtune.cluster.jobs.run_results import HITS
from commtune.cluster.local.benchmark import LocalBenchmark, make_folder
from commtune.cluster.local.launch import Launcher
from commtune.cluster.scheduler import (
    Allocation,
    PollBackoff,
    Scheduler,
    SchedulerFault,
    StepLauncher,
)
from commtune.errors import AllocationOver, EnvironmentFault, MissingComponent
from commtune.model import Execution, Outcome, RunRequest, RunResult
from commtune.slurm_templates.background_command import launch_with

#: Seconds between SIGTERM and SIGKILL by coreutils' timeout: srun needs some to end its ranks.
_KILL_AFTER_S = 10
#: Number of latest runs from which the time of the next one is estimated.
_REMEMBERED = 32
#: The fewest runs of a block; a block is not begun without the time for as many.
_BLOCK_RUNS = 4
#: Number of runs in a row that were lost (by a node or before they started), or that lacked their
#: aggressor, to stop a campaign.
_MOST_BAD = 5
#: States that don't contradict that this process runs in the job.
_IS_HERE = (JobState.RUNNING, JobState.SUSPENDED, JobState.UNKNOWN, JobState.ABSENT)


def step_launcher(
    words: Callable[[Sequence[str]], Sequence[str]],
    steps: StepLauncher,
    beside: AggressorLaunch | None,
    records: Path,
) -> Launcher:
    """Returns a launcher that starts runs as steps; timed ones wait for their aggressor, if any.

    Args:
        words: turns a program's command line into that of a launcher that starts its ranks.
    """

    def command(ranks: int, program: Sequence[str], limit_s: float) -> list[str]:
        del ranks  # the request says how many
        # Only SIGTERM lets srun end its ranks on other nodes.
        keeper = ["timeout", "--signal=TERM", f"--kill-after={_KILL_AFTER_S}", f"{limit_s:.3f}"]
        return [*keeper, *words(program)]

    launcher = Launcher(
        command, is_local=False, grace_s=_KILL_AFTER_S + 5.0, judge=steps.judge_failure
    )
    if beside is None:
        return launcher

    def around(
        run_id: str, variables: Mapping[str, str], started: Sequence[str], limit_s: float
    ) -> list[str]:
        output = output_beside_run(records, run_id)
        aggressor = beside.command(output, run_id, limit_s)
        return launch_with(aggressor, str(output), variables, started)

    return replace(launcher, around=around, grace_s=launcher.grace_s + beside.grace_s)


@dataclass
class Steps:
    """The allocation that this process runs in, as a ``tuner.ports.Benchmark``."""

    inner: LocalBenchmark  # starts the steps
    allocation: Allocation
    distance: str  # how far apart the nodes of the runs are in the network
    scheduler: Scheduler
    launcher: StepLauncher  # starts the ranks of a step
    worked: Callable[[], None] = lambda: None  # called after a successful run
    failed_nodes: FailedNodes | None = None  # where failed nodes are recorded
    #: The waits between questions to a scheduler that gives no answer.
    backoff: PollBackoff = field(default_factory=PollBackoff)
    say: Callable[[str], None] = lambda _: None  # tells a person
    #: The aggressor that ``inner`` has beside each run, on the nodes after those of the run.
    aggressor: AggressorLaunch | None = None
    simulated = False
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._walls: deque[float] = deque(maxlen=_REMEMBERED)
        self._alone = 0
        self._waited_s = 0.0
        self._lost: list[RunResult] = []
        self._is_begun = False
        self._spoilt = ""  # why no further run may be made in this allocation; empty for none

    @property
    def nodes(self) -> tuple[str, ...]:
        count = self.aggressor.job_request.nodes if self.aggressor else None
        return self.allocation.nodes[:count]

    def used_s(self) -> float:
        """Returns a clock for budgets, seconds, without waits for the scheduler or a full disk."""
        return self.clock() - self._waited_s

    def close(self) -> None:
        """Ends the launch that is kept for further runs, if there is one."""
        if self.inner.shared is not None:
            self.inner.shared.close()

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """Makes one run and waits for its end.

        Raises:
            AllocationOver: the rest of the allocation is too short for it.
            EnvironmentFault: the whole allocation is too short; or several runs in a row were
                lost, or had no aggressor beside them.
            KeyboardInterrupt: by a signal; or the job is over, and its signal comes later.
        """
        self._after_lost()
        self._check_time(request, time_limit_s)
        if self._spoilt:
            raise AllocationOver(f"job {self.allocation.number} ends: {self._spoilt}")
        if self.aggressor is not None:
            make_folder(self._output_beside(request).parent)
        try:
            result = self.inner.measure(request, time_limit_s)
        except KeyboardInterrupt:
            self._end_steps()
            raise
        result = self._without_blame(result)
        self._lost = [*self._lost, result] if result.outcome.is_lost else []
        ended = (Outcome.TIMED_OUT, Outcome.NEVER_STARTED)
        if result.exit_code == KILLED or result.outcome in ended:
            self._end_steps()
        if result.exit_code == KILLED and not self.launcher.ends_steps:
            self._spoilt = "a launch that had to be killed may have left ranks"
        if self.aggressor is not None:
            result = self._checked(self.aggressor, request, result)
        if result.outcome is Outcome.OK:
            self._walls.append(result.wall_s / len(request.workload.operations))
            self.worked()
        return replace(result, nodes=self.nodes, distance=self.distance)

    def recover(self, request: RunRequest) -> RunResult | None:
        """Reads a run that an earlier controller started; its allocation's end ended the step."""
        result = self.inner.recover(request)
        if self.aggressor is not None:
            self._end_steps()  # the aggressor may run for long
            result = result and self.aggressor.checked(result, self._output_beside(request))
        return result and replace(result, nodes=(), distance="")

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        self._check_time(request, time_limit_s)
        return self.inner.trace(request, time_limit_s)

    def _without_blame(self, result: RunResult) -> RunResult:
        """Returns a failed run as NODE_FAILURE if the scheduler calls a node of it down."""
        if result.outcome not in HITS:
            return result
        began = self.clock()
        try:
            # First: a failed node ends the job even if it is up again.
            self._check_job()
            down = self.scheduler.failed_nodes(self.allocation.nodes)
        except (SchedulerFault, MissingComponent):
            self._waited_s += self.clock() - began
            return result
        if not down:
            return result
        self._spoilt = f"{self.scheduler.name} calls nodes of it down: {', '.join(sorted(down))}"
        return replace(result, outcome=Outcome.NODE_FAILURE, detail=self._spoilt)

    def _check_job(self) -> None:
        """Checks that our job isn't over, as its steps may be ended before we get a signal.

        Raises:
            KeyboardInterrupt: it is over.
            SchedulerFault: the scheduler gives no answer.
        """
        number, name = self.allocation.number, self.scheduler.name
        observed = self.scheduler.poll([number]).state_of(number)
        if observed.state not in _IS_HERE:
            self.say(f"{name} calls job {number} {observed.word}: the run that ended is lost")
            raise KeyboardInterrupt

    def _check_time(self, request: RunRequest, limit_s: float) -> None:
        wanted_s = self._wanted_s(request, limit_s)
        try:
            self.allocation.check_time(wanted_s, self.clock())
        except AllocationOver as over:
            if self._is_begun:
                raise
            # No run was made, and the next allocation will be as short.
            raise EnvironmentFault(
                f"{over.message}: a run may take {wanted_s:.0f} s, and "
                f"{self.allocation.MARGIN_S:.0f} s are kept to end cleanly",
                hint=f"ask for more time: 'time' below '{self.scheduler.name.lower()}' in the "
                "campaign file",
            ) from over
        self._is_begun = True

    def _after_lost(self) -> None:
        """Waits, after a lost run, until the scheduler answers and the disk has room.

        Raises:
            AllocationOver: that takes until the allocation's end.
            EnvironmentFault: several runs in a row were lost.
        """
        if not self._lost:
            return
        last = self._lost[-1]
        if self.failed_nodes and (nodes := self.launcher.lost_nodes(last.detail)):
            self.failed_nodes.add_failure(self.allocation.number, nodes)
        if len(self._lost) == _MOST_BAD:
            raise _too_many_bad(f"lost; the last one: {last.detail}", last)
        fault, began = self._fault(), self.clock()
        if fault is None:
            return
        self.say(f"{fault.message}; waiting for it")
        for look in itertools.count():
            self.allocation.check_time(0.0, self.clock())
            self.sleep(self.backoff.wait_s(look))
            if self._fault() is None:
                break
        self._waited_s += self.clock() - began
        silent = isinstance(fault, SchedulerFault)
        self.say(f"{self.scheduler.name} answers again" if silent else "runs can be made again")

    def _fault(self) -> EnvironmentFault | None:
        """Returns why no run can be made now: scheduler or disk; ``None`` if one can be made."""
        if full := self.inner.full_disk():
            return EnvironmentFault(f"the disk of {full} is full")
        number, name = self.allocation.number, self.scheduler.name
        try:
            self._check_job()
            # Slurm notices a minute late that a step ended while slurmctld was away.
            if self._lost[-1].outcome is Outcome.NEVER_STARTED and self.launcher.steps(number):
                return EnvironmentFault(f"{name} has not noticed that the last step ended")
        except SchedulerFault as fault:
            return fault
        return None

    def _checked(
        self, beside: AggressorLaunch, request: RunRequest, result: RunResult
    ) -> RunResult:
        output = self._output_beside(request)
        there = read_presence(output)
        if there.killed:
            self._end_steps()
        found = beside.checked(result, output)
        self._alone = 0 if there.was_there else self._alone + 1
        if self._alone == _MOST_BAD:
            raise _too_many_bad(found.detail, found)
        return found

    def _output_beside(self, request: RunRequest) -> Path:
        return output_beside_run(self.inner.folder, request.run_id)

    def _wanted_s(self, request: RunRequest, limit_s: float) -> float:
        """Returns the seconds that a run needs; for a block's first run, those of the block."""
        each = len(request.workload.operations)
        a_run_s = each * median(self._walls) if self._walls else min(limit_s, each * 30.0)
        # Before any run, time for one is enough, so that short allocations can be used as well.
        runs = _BLOCK_RUNS if request.position == 0 and self._walls else 1
        return min(limit_s * runs, 1.5 * a_run_s * runs + 5.0)

    def _end_steps(self) -> None:
        try:
            self.launcher.end_steps(self.allocation.number)
        except (SchedulerFault, MissingComponent):
            return  # Slurm lets the next step wait until the nodes are free


def _too_many_bad(what: str, last: RunResult) -> EnvironmentFault:
    return EnvironmentFault(
        f"{_MOST_BAD} runs in a row were {what}\n{last.output_tail.strip()}",
        hint="what was measured is kept; once that is fixed, the same command continues",
    )
