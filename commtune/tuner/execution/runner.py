"""Makes the runs of a campaign, each stored before it starts and again when it has ended."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

from commtune.campaign.plan import Plan
from commtune.errors import (
    AllocationOver,
    CommtuneError,
    DatabaseFault,
    EnvironmentFault,
)
from commtune.interrupts import Interrupts, is_time_nearly_over
from commtune.model import (
    BlockPlan,
    Configuration,
    Execution,
    Origin,
    Outcome,
    Phase,
    Run,
    RunRequest,
    RunResult,
    Trial,
    Workload,
    is_searched,
)
from commtune.tuner.execution.local_batches import LocalBatches
from commtune.tuner.execution.machine_faults import FailingRuns
from commtune.tuner.execution.time_limits import first_limit, time_limit
from commtune.tuner.ports import Batches, Benchmark, Store
from commtune.tuner.statistics.evidence import Evidence

#: The number of runs of the default that the time limit follows from.
_LIMIT_RUNS = 4
#: The origin of configurations that first appear in a planned block, if it isn't the phase.
_ORIGINS = {Phase.ABLATE: Origin.ABLATED, Phase.VERIFY: Origin.VERIFIED}
#: Lost blocks in a row (by dead nodes, say) after which the campaign stops.
_MOST_LOST = 5
#: The trial number of a trace, which is no trial: only what the library said is stored.
_NO_TRIAL = -1
_DOCTOR = "run 'commtune doctor'"
_BENCH = "try 'commtune bench' with the same workload; it shows the whole output"
_TOO_SLOW = "stop what else uses the cores, or set 'run_time_limit' in the campaign file"


@dataclass
class Runner:
    """Makes and stores the runs of one campaign.

    Attributes:
        evidence: all runs so far, earlier sessions included.
        benchmark: makes runs one by one, or whole blocks at a time; ``batches`` wraps either.
        order_seed: seed of the order of runs.
        session: identifier of this session; blocks are numbered across sessions.
        trials: number of each configuration's trial.
        searched: number of trials of the search; others are the default and those of later phases.
        blocks: number of the next block.
        most_left_s: returns the seconds until the first limit, where runs are made one by one.
        benchmark_s: seconds inside benchmark processes, in this session.
        look_at: hint for a person if nothing works; empty where runs are made here.
        by_hand: hint how to make a run of the default by hand; empty for 'commtune bench'.
        default_may_fail: whether to go on after the default failed three times in a row.
        failing: the latest failures, where runs are made one by one.
    """

    plan: Plan
    campaign_id: int
    benchmark: Benchmark | Batches
    store: Store
    evidence: Evidence = field(default_factory=Evidence)
    session: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    trials: dict[Configuration, int] = field(default_factory=dict)
    searched: int = 0
    plans: dict[int, BlockPlan] = field(default_factory=dict)
    blocks: int = 0
    benchmark_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    most_left_s: Callable[[], float] = lambda: math.inf
    look_at: str = ""
    by_hand: str = ""
    default_may_fail: bool = False
    failing: FailingRuns = field(default_factory=FailingRuns)
    _in_flight: dict[str, RunRequest] = field(default_factory=dict)
    _lost_in_a_row: int = 0
    _run_s: float = 0.0
    _is_spent: bool = False

    def __post_init__(self) -> None:
        self.order_seed = self.store.order_seed(self.campaign_id)
        self.batches: Batches = (
            self.benchmark
            if isinstance(self.benchmark, Batches)
            else LocalBatches(self.benchmark, self.now_s, self.most_left_s)
        )

    def now_s(self) -> float:
        """Returns the clock of budgets, seconds, which stops during faults of the machine."""
        return self.clock() - self.failing.waited_s

    @property
    def has_room(self) -> bool:
        """Whether a further block may be submitted."""
        return self.batches.in_flight < self.batches.most_in_flight

    def cost(self) -> float:
        """Returns the seconds of a budget for each second of a run; 1 where runs are made here."""
        if not self.batches.is_detached or not self._run_s:
            return 1.0
        return max(1.0, self.batches.used_s() / self._run_s)

    def committed_s(self) -> float:
        """Estimates the seconds that the runs under way will take."""
        runs = sum(len(request.workload.operations) for request in self._in_flight.values())
        return runs * self.typical_s() if runs else 0.0

    def left_s(self) -> float:
        """Returns the seconds that the campaign's limits leave, infinite without any."""
        return 0.0 if self._is_spent else self.batches.left_s()

    def affords(self, runs: int) -> bool:
        """Whether the limits leave time for ``runs``. If not, nothing is left from then on.

        Args:
            runs: of one operation; a run of several operations counts as several.
        """
        left_s = self.left_s()
        self._is_spent = left_s <= 0 or left_s < runs * self.typical_s()
        return not self._is_spent

    def typical_s(self) -> float:
        """Estimates the seconds of a budget that a run takes, from the first few; 0 before any."""
        walls = [run.wall_s for run in islice(self.evidence.good(*Phase), _LIMIT_RUNS)]
        return self.cost() * median(walls) if walls else 0.0

    def count_in_flight(self, configuration: Configuration) -> int:
        """Counts the runs of a configuration that are under way."""
        return sum(r.configuration == configuration for r in self._in_flight.values())

    def load(self) -> None:
        """Reads what earlier sessions stored."""
        for trial in self.store.trials(self.campaign_id):
            self.trials[trial.configuration] = trial.number
            self.searched += is_searched(trial.origin)
        self.plans = {plan.number: plan for plan in self.store.blocks(self.campaign_id)}
        self.blocks = max([self.blocks, *(number + 1 for number in self.plans)])
        for run in self.store.runs(self.campaign_id):
            self.evidence.add(run)
            self._run_s += run.wall_s
            self.blocks = max(self.blocks, run.block + 1)

    def recover(self, why: str = "its controller died", *, is_planned: bool = False) -> None:
        """Stores the results of runs without one, or why they ended; waits for running jobs.

        Args:
            why: detail of runs that were interrupted.
            is_planned: whether the time of our job is over and the next job makes these runs. Then
                they are withdrawn, not lost.
        """
        requests = self.store.open_runs(self.campaign_id)
        self._in_flight = {request.run_id: request for request in requests}
        blocks: dict[int, list[RunRequest]] = {}
        for request in requests:
            self.blocks = max(self.blocks, request.block + 1)
            blocks.setdefault(request.block, []).append(request)
        for members in blocks.values():
            self.batches.adopt(sorted(members, key=lambda request: request.position))
        while self.batches.in_flight:
            for result in self.batches.collect():
                if is_planned and result.outcome is Outcome.INTERRUPTED:
                    del self._in_flight[result.run_id]
                    self.store.withdraw_run(self.campaign_id, result.run_id)
                    continue
                told = bool(result.detail) or result.outcome is not Outcome.INTERRUPTED
                self._store(result if told else replace(result, detail=why))
            self.batches.settled()
        self.batches.settled()

    def _store(self, result: RunResult) -> RunRequest:
        request = self._in_flight.pop(result.run_id)
        self.store.finish_run(self.campaign_id, result, str(request.workload.operation))
        return request

    def unmeasured(self) -> list[Configuration]:
        """Lists trials of which no run came to an end, and that no planned block has."""
        settled = {
            run.configuration
            for run in self.evidence.runs
            if run.outcome is Outcome.OK or run.outcome.blames_configuration
        }
        settled.update(c for plan in self.plans.values() for c in plan.order)
        return [configuration for configuration in self.trials if configuration not in settled]

    def new_trial(self, configuration: Configuration, origin: str) -> None:
        """Stores the trial of a configuration, if it is new."""
        if configuration not in self.trials:
            trial = Trial(len(self.trials), configuration, origin)
            self.store.add_trial(self.campaign_id, trial.number, configuration, origin)
            self.trials[configuration] = trial.number
            self.searched += is_searched(trial.origin)

    def new_block(self) -> int:
        """Returns the number of a new block."""
        self.blocks += 1
        return self.blocks - 1

    def plan_block(
        self, order: Sequence[Configuration], phase: Phase, workload: Workload | None = None
    ) -> BlockPlan:
        """Stores a block and its new trials, before its first run starts."""
        for configuration in order:
            self.new_trial(configuration, _ORIGINS.get(phase, str(phase)))
        # A block of several operations is stored under the first one; its runs name all.
        wanted = (workload or self.plan.workload).operation
        plan = BlockPlan(self.new_block(), phase, wanted, tuple(order))
        self.store.plan_block(self.campaign_id, plan)
        self.plans[plan.number] = plan
        return plan

    def submit(
        self,
        order: Sequence[Configuration],
        phase: Phase,
        block: int,
        position: int = 0,
        workload: Workload | None = None,
    ) -> None:
        """Starts runs of a block and doesn't wait for them.

        Args:
            position: of the first of them in the block.
            workload: what they measure, if not the plan's.
        """
        requests = [
            self._request(configuration, phase, block, place, workload)
            for place, configuration in enumerate(order, position)
        ]
        with self._settling():
            self.store.start_runs(self.campaign_id, requests, self._session_of(block))
            self._in_flight |= {request.run_id: request for request in requests}
            self.batches.submit(requests, self.time_limit_s(requests[0].workload))

    def collect(self) -> list[Run]:
        """Waits for runs that were submitted together; stores and returns their results.

        Raises:
            EnvironmentFault: the benchmark can't be started, five blocks in a row were lost, or
                the default failed three times in a row.
            KeyboardInterrupt: as it came, after the results of ended runs were stored.
        """
        ended: list[Run] = []
        with self._settling():
            for result in self.batches.collect():
                request = self._store(result)
                ended.append(Run.from_result(request, result, self._session_of(request.block)))
            self.batches.settled()
        for run in ended:
            self._add_run(run)
        self._check_lost(ended)
        return ended

    def _session_of(self, block: int) -> str:
        # Several controllers may read the results of a job, but its runs belong together.
        return f"job of block {block}" if self.batches.is_detached else self.session

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """Stores a result for each run that ends with this controller, whatever is raised.

        Ctrl-C may come while the store writes; a row is then there as a whole or not at all.
        """
        try:
            yield
        except (KeyboardInterrupt, AllocationOver, EnvironmentFault) as stop:
            if not self.batches.is_detached:
                # A second Ctrl-C must not leave the run open. Without a database, the next
                # controller stores the result, and the error that stopped us is raised.
                with Interrupts(), suppress(DatabaseFault):
                    self.recover(
                        f"not started: {stop.message}"
                        if isinstance(stop, CommtuneError)
                        else "ended from outside",
                        is_planned=isinstance(stop, AllocationOver) or is_time_nearly_over(),
                    )
            raise

    def _add_run(self, run: Run) -> None:
        self.benchmark_s += run.wall_s
        self._run_s += run.wall_s
        self.evidence.add(run)
        if not self.batches.is_detached:  # each job has a run of the default
            self.failing.add(run)
        if run.outcome is Outcome.MISSING_PROGRAM:
            raise EnvironmentFault(run.detail, hint=self.look_at or _DOCTOR)
        self._check_default(run)

    def _check_lost(self, ended: Sequence[Run]) -> None:
        """Raises if too many blocks in a row were lost, which cost time and measure nothing."""
        if not ended:
            return
        lost = all(run.outcome.is_lost for run in ended)
        self._lost_in_a_row = self._lost_in_a_row + 1 if lost else 0
        if self._lost_in_a_row == _MOST_LOST:
            last = ended[-1]
            said = last.output_tail.strip()[-500:]
            why = f"{last.detail or last.outcome}" + (f"\n{said}" if said else "")
            what = "blocks" if self.batches.is_detached else "runs"
            raise EnvironmentFault(
                f"{_MOST_LOST} {what} in a row were lost; the last one: {why}",
                hint="once that is fixed, run the same command again; a campaign continues",
            )

    def trace(self, configuration: Configuration) -> Execution | None:
        """Traces what the library does under a configuration, in an untimed run, not stored."""
        if self.plan.workload.operation.is_pattern:  # the benchmark can't trace these
            return None
        request = self._request(configuration, Phase.SEARCH, 0, 0, trial=_NO_TRIAL)
        return self.batches.trace(request, self.time_limit_s(request.workload))

    def time_limit_s(self, workload: Workload) -> float:
        """Returns the wall seconds that the next run may take, in proportion to its operations."""
        return len(workload.operations) * self._limit_of_one_s()

    def _limit_of_one_s(self) -> float:
        if self.plan.time_limit_s is not None:
            return self.plan.time_limit_s
        # Any run of a comparison counts, as neither side may be the default. Only the first few
        # runs, so that the cost of a run doesn't grow with their number.
        known = (
            run.wall_s
            for run in self.evidence.good(Phase.SEARCH, Phase.CONFIRM, Phase.COMPARE)
            if run.configuration.is_default or run.phase is Phase.COMPARE
        )
        first_s = first_limit(self.plan.workload, self.plan.timing)
        return time_limit(list(islice(known, _LIMIT_RUNS)), first_s)

    def _check_default(self, run: Run) -> None:
        """Raises if the default failed three times in a row, since speedups are relative to it."""
        if run.outcome is Outcome.OK or not run.configuration.is_default or self.default_may_fail:
            return
        settled = (r for r in self.evidence.runs if not r.outcome.is_lost)
        last = [r.outcome for r in settled if r.configuration.is_default][-3:]
        if len(last) == 3 and Outcome.OK not in last:
            is_limit_ours = run.outcome is Outcome.TIMED_OUT and self.plan.time_limit_s is None
            raise EnvironmentFault(
                f"the default configuration failed three times in a row: {run.outcome}, "
                f"{run.detail}\n{run.output_tail.strip()}".rstrip(),
                hint=_TOO_SLOW if is_limit_ours else self.look_at or self.by_hand or _BENCH,
            )

    def _request(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        position: int,
        workload: Workload | None = None,
        trial: int | None = None,
    ) -> RunRequest:
        return RunRequest(
            run_id=uuid.uuid4().hex,
            configuration=configuration,
            workload=workload or self.plan.workload,
            timing=self.plan.timing,
            phase=phase,
            trial=self.trials[configuration] if trial is None else trial,
            block=block,
            position=position,
        )
