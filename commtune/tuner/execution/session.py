"""One sitting of a campaign: what its phases share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from commtune.campaign.plan import Plan
from commtune.model import Configuration, Execution, Operation, Outcome, Phase, Run
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Progress, Reporter

#: A run is disturbed when others used more than this share of the cores' time meanwhile, and
#: more seconds of each core than the kernel's counting in ticks of 10 ms can be wrong by.
DISTURBED, _COUNTABLE_S = 0.1, 0.025
#: How often one run is made again, and all runs together: a floor, and a share of those made.
_MOST_REPEATS, _REPEATS_FLOOR, _REPEATS_SHARE = 2, 10, 0.1
_REPEATS_SAID = 3


def is_disturbed(run: Run) -> bool:
    """Whether others used the cores during a run so much that its times say little."""
    load = run.other_load or 0.0
    return load > DISTURBED and load * run.wall_s > _COUNTABLE_S


class Timer:
    """Wall time of a phase: this session's clock on top of what earlier sessions measured.

    Where blocks are jobs, the time counts that these have their nodes, and none that they wait.

    Args:
        since: blocks before this one were made for an earlier decision, with a budget of its own.
    """

    def __init__(self, runner: Runner, budget_s: float, phase: Phase, since: int = 0) -> None:
        self.budget_s = budget_s
        self._runner = runner
        self._clock = runner.spent_s
        before = (run.wall_s for run in runner.evidence.of(phase) if run.block >= since)
        self._before_s = runner.cost() * math.fsum(before)
        self._started = self._clock()

    def used(self) -> float:
        """Seconds spent, earlier sessions included."""
        return self._before_s + self._clock() - self._started

    def left(self) -> float:
        """Seconds of the budget that are left; negative when it is overdrawn.

        Without what runs that are under way will take, and never more than all limits leave.
        """
        own = self.budget_s - self.used() - self._runner.committed_s()
        return min(own, self._runner.left_s())


@dataclass
class Session:
    """Plan, runner and reporter, with the progress that is told after every run.

    Attributes:
        best_log_gain: logarithm of the best ratio that the search saw; for the eye only.
        repeats: runs made again because others used the cores, in this sitting.
    """

    plan: Plan
    runner: Runner
    reporter: Reporter
    best_log_gain: float = 0.0
    repeats: int = 0

    def timer(self, budget_s: float, phase: Phase, since: int = 0) -> Timer:
        """A timer for a phase, going on where earlier sessions stopped."""
        return Timer(self.runner, budget_s, phase, since)

    def run(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        timer: Timer,
        position: int = 0,
        operations: tuple[Operation, ...] = (),
    ) -> Run:
        """Makes a run, keeps the lock alive, and tells the progress.

        A run during which others used the cores is made again, a few times at most: the last
        one counts. No time that the benchmark measured enters; how long the whole run took does
        a little, through what the counters can resolve (see ``is_disturbed``).
        """
        run = self._run_once(configuration, phase, block, timer, position, operations)
        for _ in range(_MOST_REPEATS):
            if not self._is_to_be_made_again(run):
                break
            run = self._run_once(configuration, phase, block, timer, position, operations)
        return run

    def run_block(
        self,
        order: Sequence[Configuration],
        phase: Phase,
        timer: Timer,
        operations: tuple[Operation, ...] = (),
    ) -> None:
        """Makes the runs of a block here, after its plan was stored."""
        block = self.runner.plan_block(order, phase, operations)
        for position, configuration in enumerate(block.order):
            self.run(configuration, phase, block.number, timer, position, operations)

    @property
    def width(self) -> int:
        """How many blocks can be made at the same time."""
        return self.runner.batches.most_in_flight if self.runner.batches else 1

    def _is_to_be_made_again(self, run: Run) -> bool:
        if run.outcome is not Outcome.OK or not is_disturbed(run):
            return False
        evidence = self.runner.evidence
        if evidence.made_again >= _REPEATS_FLOOR + _REPEATS_SHARE * len(evidence.runs):
            return False
        self.repeats += 1
        if self.repeats <= _REPEATS_SAID:
            more = "" if self.repeats < _REPEATS_SAID else "; further ones are counted only"
            self.reporter.say(
                f"others used {run.other_load:.0%} of the cores during a run: made again{more}"
            )
        return True

    def _run_once(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        timer: Timer,
        position: int,
        operations: tuple[Operation, ...],
    ) -> Run:
        run = self.runner.run(configuration, phase, block, position, operations)
        self.told(run, timer)
        return run

    def told(self, run: Run, timer: Timer) -> None:
        """Keeps the lock alive, and tells the progress, after a run."""
        self.runner.store.touch(self.runner.campaign_id)
        self.reporter.progress(
            Progress(
                phase=str(run.phase),
                trials=len(self.runner.trials),
                runs=len(self.runner.evidence.runs),
                best_gain=math.exp(self.best_log_gain),
                used_s=timer.used(),
                budget_s=timer.budget_s,
                last=run.outcome,
            )
        )

    def trace(self, configuration: Configuration) -> Execution | None:
        """What the library does under a configuration; stored, and not asked for twice."""
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
