"""What the phases share in one session of a campaign: timers, progress, traces, re-runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from commtune.campaign.plan import Plan
from commtune.model import (
    DEFAULT,
    Configuration,
    Execution,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    Run,
    Verdict,
)
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Progress, Reporter
from commtune.tuner.statistics.blocks import Blocks, balanced_order, whole_blocks
from commtune.tuner.statistics.evidence import is_disturbed, select_operation
from commtune.tuner.statistics.machine_states import ALL

#: The most re-runs of one place in a block; and of the campaign, ten plus a share of its runs.
_MOST_RERUNS, _RERUNS_FLOOR, _RERUNS_SHARE = 2, 10, 0.1
#: The number of re-runs that are reported.
_RERUNS_REPORTED = 3


class Timer:
    """The wall time of a phase: this session's clock plus the runs of earlier sessions.

    For jobs, the time counts during which they have their nodes, not that in the queue. Lost runs
    don't count, since they measured nothing and are made again.

    Args:
        budget_s: wall seconds.
        since: number of the first block that this budget pays for.

    Attributes:
        shown_s: wall seconds that are shown as planned; more than the budget where the fewest
            blocks take longer.
    """

    def __init__(self, runner: Runner, budget_s: float, phase: Phase, since: int = 0) -> None:
        self.budget_s = self.shown_s = budget_s
        self._runner = runner
        self._clock = runner.batches.used_s
        self._before_s = runner.cost() * runner.evidence.wall_s(phase, since)
        self._started = self._clock()

    def used(self) -> float:
        """Returns the seconds spent, earlier sessions included."""
        return self._before_s + self._clock() - self._started

    def left(self) -> float:
        """Returns the seconds left of the budget, negative if it is overdrawn.

        The estimated time of runs under way is subtracted. It is never more than the limits leave.
        """
        own = self.budget_s - self.used() - self._runner.committed_s()
        return min(own, self._runner.left_s())


@dataclass
class Session:
    """Plan, runner and reporter, with the progress that is reported after every run.

    Attributes:
        best_log_gain: the largest log speedup of a single run in the search; for display only.
        confirmed: the point with the highest lower end of the candidates that stopped.
        reruns: number of runs that were repeated because background load disturbed them.
    """

    plan: Plan
    runner: Runner
    reporter: Reporter
    best_log_gain: float = 0.0
    confirmed: PointEvidence | None = None
    reruns: int = 0
    _reruns_of_place: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def width(self) -> int:
        """The number of blocks that can be under way at the same time."""
        return self.runner.batches.most_in_flight

    def order_block(self, candidates: Sequence[Configuration]) -> list[Configuration]:
        """Returns the order of the default and the candidates in the next block."""
        both = [DEFAULT, *candidates]
        return balanced_order(both, self.runner.order_seed, self.runner.blocks)

    def blocks_since(self, first: int, phase: Phase, operation: Operation | None = None) -> Blocks:
        """Returns whole blocks of a phase from a number on, by default of the tuned operation."""
        runs = (run for run in self.runner.evidence.of(phase) if run.block >= first)
        wanted = str(operation or self.plan.workload.operation)
        return whole_blocks(select_operation(runs, wanted), self.runner.plans)

    def add_confirmed(self, points: Iterable[PointEvidence]) -> None:
        """Adds the points of a candidate that stopped."""
        faster = [p for p in points if p.verdict is Verdict.FASTER and p.speed == ALL]
        known = [self.confirmed] if self.confirmed else []
        self.confirmed = max([*known, *faster], key=lambda p: p.gain.low, default=None)

    def report(self, run: Run, timer: Timer) -> None:
        """Reports the progress after a run."""
        self.reporter.progress(
            Progress(
                phase=str(run.phase),
                trials=len(self.runner.trials),
                runs=len(self.runner.evidence.runs),
                best_gain=math.exp(self.best_log_gain),
                used_s=timer.used(),
                budget_s=timer.shown_s,
                last=run.outcome,
                confirmed=self.confirmed,
            )
        )

    def wait_for_machine(self, run: Run) -> None:
        """Waits for a fault of the machine to pass, after a run that failed by it."""
        pause_s = 0.0 if self.runner.batches.simulated else self.runner.failing.pause_s
        if pause_s:
            self.reporter.say(f"waiting {pause_s:.0f} s for the machine: {run.detail}")
            time.sleep(pause_s)
            self.runner.failing.waited_s += pause_s

    def take_rerun(self, run: Run) -> bool:
        """Decides whether to repeat a run, and counts that; the last run of a place counts.

        The decision considers none of the benchmark's times; the length of the run enters
        slightly, through the error of the counters (see ``is_disturbed``).
        """
        # A job has given its nodes back by now.
        if self.runner.batches.is_detached or run.outcome is not Outcome.OK:
            return False
        evidence, place = self.runner.evidence, (run.block, run.position)
        most = _RERUNS_FLOOR + _RERUNS_SHARE * len(evidence.runs)
        if not is_disturbed(run) or evidence.rerun_count >= most:
            return False
        if self._reruns_of_place[place] == _MOST_RERUNS:
            return False
        self._reruns_of_place[place] += 1
        self.reruns += 1
        if self.reruns <= _RERUNS_REPORTED:
            more = "" if self.reruns < _RERUNS_REPORTED else "; further ones are only counted"
            self.reporter.say(
                f"background load used {run.other_load:.0%} of the cores: re-run{more}"
            )
        return True

    def trace(self, configuration: Configuration) -> Execution | None:
        """Traces what the library does under a configuration; stored, so at most once for each."""
        store, campaign_id = self.runner.store, self.runner.campaign_id
        for known in store.executions(campaign_id):
            if known.configuration == configuration:
                return known
        execution = self.runner.trace(configuration)
        if execution is not None:
            store.add_execution(campaign_id, execution)
        return execution

    def is_oversubscribed(self) -> bool:
        """Whether any run had more ranks than cores."""
        return any(run.oversubscribed for run in self.runner.evidence.runs)
