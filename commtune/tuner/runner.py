"""Makes runs for a campaign and keeps the books: stored before it starts, stored once it ended."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

from commtune.errors import EnvironmentFault, UserError
from commtune.model import (
    BlockPlan,
    Configuration,
    Execution,
    Operation,
    Outcome,
    Phase,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.tuner.evidence import Evidence, RunView
from commtune.tuner.plan import Plan
from commtune.tuner.ports import Benchmark, Store

#: A run may take this many times what others took, and never less than the floor: a slow
#: machine speed alone makes a run three times longer, a hang would eat the budget.
_LIMIT_FACTOR, _LIMIT_FLOOR_S = 10.0, 3.0
#: Before anything is known.
_FIRST_LIMIT_S = 60.0
#: How many runs of the default the time limit is taken from.
_LIMIT_RUNS = 4
#: Where a configuration comes from that first appears in a planned block.
_ORIGINS = {Phase.ABLATE: "ablated", Phase.VERIFY: "verified"}
#: A trace is no trial: nothing of it is kept but what the library said.
_NO_TRIAL = -1
_BASELINE = "baseline"


@dataclass(frozen=True)
class FreshRun:
    """A run of this session, in the shape of a stored one."""

    request: RunRequest
    result: RunResult
    session: str

    run_id = property(lambda self: self.request.run_id)
    trial = property(lambda self: self.request.trial)
    configuration = property(lambda self: self.request.configuration)
    phase = property(lambda self: self.request.phase)
    block = property(lambda self: self.request.block)
    position = property(lambda self: self.request.position)
    operation = property(lambda self: str(self.request.workload.operation))
    outcome = property(lambda self: self.result.outcome)
    started_at = property(lambda self: self.result.started_at)
    wall_s = property(lambda self: self.result.wall_s)
    oversubscribed = property(lambda self: self.result.oversubscribed)
    other_load = property(lambda self: self.result.other_load)
    measurements = property(lambda self: self.result.measurements)


@dataclass
class Runner:
    """Runs one campaign's runs and stores them.

    Attributes:
        evidence: everything measured so far, earlier sessions included.
        session: identifier of this controller's life; blocks are numbered across sessions.
        searched: trials of the search; the others are the default and what ablation made.
    """

    plan: Plan
    campaign_id: int
    benchmark: Benchmark
    store: Store
    evidence: Evidence = field(default_factory=Evidence)
    session: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    trials: dict[Configuration, int] = field(default_factory=dict)
    searched: int = 0
    plans: dict[int, BlockPlan] = field(default_factory=dict)
    blocks: int = 0
    benchmark_s: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def load(self) -> None:
        """Reads what earlier sessions stored."""
        for trial in self.store.trials(self.campaign_id):
            self.trials[trial.configuration] = trial.number
            self.searched += _is_searched(trial.origin)
        self.plans = {plan.number: plan for plan in self.store.blocks(self.campaign_id)}
        self.blocks = max([self.blocks, *(number + 1 for number in self.plans)])
        for run in self.store.runs(self.campaign_id):
            self.evidence.add(run)
            self.blocks = max(self.blocks, run.block + 1)

    def recover(self) -> None:
        """Settles runs that an earlier controller left open."""
        for request in self.store.open_runs(self.campaign_id):
            self.blocks = max(self.blocks, request.block + 1)
            self._settle(request, "its controller died")

    def _settle(self, request: RunRequest, why: str) -> None:
        """Stores an open run if its records are complete, or marks it interrupted."""
        result = self.benchmark.recover(request)
        if result is None:
            self.store.mark_interrupted(request.run_id, why)
        else:
            self.store.finish_run(self.campaign_id, result, str(request.workload.operation))

    def unmeasured(self) -> list[Configuration]:
        """Configurations that were to be searched, and whose runs never came to an end."""
        settled = {r.configuration for r in self.evidence.runs if not r.outcome.is_lost}
        settled.update(c for plan in self.plans.values() for c in plan.order)
        return [configuration for configuration in self.trials if configuration not in settled]

    def new_trial(self, configuration: Configuration, origin: str, label: str = "") -> int:
        """The trial of a configuration, made if there is none."""
        if configuration not in self.trials:
            number = len(self.trials)
            self.store.add_trial(self.campaign_id, number, configuration, origin, label)
            self.trials[configuration] = number
            self.searched += _is_searched(origin)
        return self.trials[configuration]

    def new_block(self) -> int:
        """A number for runs that are made close together."""
        self.blocks += 1
        return self.blocks - 1

    def plan_block(
        self, order: Sequence[Configuration], phase: Phase, operation: Operation
    ) -> BlockPlan:
        """Stores a block, and the trials that it lacks, before its first run starts."""
        for configuration in order:
            self.new_trial(configuration, _ORIGINS.get(phase, str(phase)))
        plan = BlockPlan(self.new_block(), phase, operation, tuple(order))
        self.store.plan_block(self.campaign_id, plan)
        self.plans[plan.number] = plan
        return plan

    def run(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        position: int = 0,
        operation: Operation | None = None,
    ) -> RunView:
        """Makes one run, stores it, and returns it whatever its outcome.

        Raises:
            EnvironmentFault: the benchmark can't be started at all.
            KeyboardInterrupt: as it came, after the run was settled.
        """
        request = self._request(configuration, phase, block, position, operation)
        self.store.start_run(self.campaign_id, request, self.session)
        try:
            result = self.benchmark.measure(request, self.time_limit_s())
            self.store.finish_run(self.campaign_id, result, str(request.workload.operation))
        except KeyboardInterrupt:
            self._settle(request, "ended from outside")
            raise
        self.benchmark_s += result.wall_s
        run = FreshRun(request, result, self.session)
        self.evidence.add(run)
        if result.outcome is Outcome.MISSING_PROGRAM:
            raise EnvironmentFault(result.detail, hint="run 'commtune doctor'")
        self._check_default(run)
        return run

    def trace(self, configuration: Configuration) -> Execution | None:
        """What the library does under a configuration, from an untimed run that is not stored."""
        request = self._request(configuration, Phase.SEARCH, 0, 0, None, trial=_NO_TRIAL)
        return self.benchmark.trace(request, self.time_limit_s())

    def time_limit_s(self) -> float:
        """Wall seconds the next run may take."""
        if self.plan.time_limit_s is not None:
            return self.plan.time_limit_s
        # Only the first few: the cost of a run must not grow with the number of runs.
        defaults = (
            run.wall_s
            for run in self.evidence.good(Phase.SEARCH, Phase.CONFIRM)
            if run.configuration.is_default
        )
        return time_limit(list(islice(defaults, _LIMIT_RUNS)))

    def _check_default(self, run: FreshRun) -> None:
        """Without runs of the default there is nothing to compare; going on wastes a night."""
        if run.outcome is Outcome.OK or not run.configuration.is_default:
            return
        settled = (r for r in self.evidence.runs if not r.outcome.is_lost)
        last = [r.outcome for r in settled if r.configuration.is_default][-3:]
        if len(last) == 3 and Outcome.OK not in last:
            raise EnvironmentFault(
                f"the default configuration failed three times in a row: {run.outcome}, "
                f"{run.result.detail}\n{run.result.output_tail.strip()}".rstrip(),
                hint="try 'commtune bench' with the same workload; it shows all of the output",
            )

    def _request(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        position: int,
        operation: Operation | None,
        trial: int | None = None,
    ) -> RunRequest:
        if trial is None and configuration not in self.trials:
            raise UserError(f"no trial for {configuration}")
        return RunRequest(
            run_id=uuid.uuid4().hex,
            configuration=configuration,
            workload=_workload(self.plan.workload, operation),
            timing=self.plan.timing,
            phase=phase,
            trial=self.trials[configuration] if trial is None else trial,
            block=block,
            position=position,
        )


def time_limit(walls_s: Sequence[float]) -> float:
    """Wall seconds that a run may take where others took so many."""
    return max(_LIMIT_FLOOR_S, _LIMIT_FACTOR * median(walls_s)) if walls_s else _FIRST_LIMIT_S


def _is_searched(origin: str) -> bool:
    return origin not in (_BASELINE, *_ORIGINS.values())


def _workload(workload: Workload, operation: Operation | None) -> Workload:
    return workload if operation is None else replace(workload, operation=operation)
