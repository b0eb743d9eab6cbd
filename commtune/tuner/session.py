"""One sitting of a campaign: what its phases share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from commtune.model import Configuration, Operation, Phase
from commtune.tuner.evidence import RunView
from commtune.tuner.plan import Plan
from commtune.tuner.ports import Progress, Reporter
from commtune.tuner.runner import Runner


class Timer:
    """Wall time of a phase: this session's clock on top of what earlier sessions measured."""

    def __init__(self, runner: Runner, budget_s: float, phase: Phase) -> None:
        self.budget_s = budget_s
        self._clock = runner.clock
        self._before_s = runner.evidence.wall_s(phase)
        self._started = self._clock()

    def used(self) -> float:
        """Seconds spent, earlier sessions included."""
        return self._before_s + self._clock() - self._started

    def left(self) -> float:
        """Seconds of the budget that are left; negative when it is overdrawn."""
        return self.budget_s - self.used()


@dataclass
class Session:
    """Plan, runner and reporter, with the progress that is told after every run.

    Attributes:
        best_log_gain: logarithm of the best ratio that the search saw; for the eye only.
    """

    plan: Plan
    runner: Runner
    reporter: Reporter
    best_log_gain: float = 0.0

    def timer(self, budget_s: float, phase: Phase) -> Timer:
        """A timer for a phase, going on where earlier sessions stopped."""
        return Timer(self.runner, budget_s, phase)

    def run(
        self,
        configuration: Configuration,
        phase: Phase,
        block: int,
        timer: Timer,
        position: int = 0,
        operation: Operation | None = None,
    ) -> RunView:
        """Makes a run, keeps the lock alive, and tells the progress."""
        run = self.runner.run(configuration, phase, block, position, operation)
        self.runner.store.touch(self.runner.campaign_id)
        self.reporter.progress(
            Progress(
                phase=str(phase),
                trials=len(self.runner.trials),
                runs=len(self.runner.evidence.runs),
                best_gain=math.exp(self.best_log_gain),
                used_s=timer.used(),
                budget_s=timer.budget_s,
                last=run.outcome,
            )
        )
        return run

    def is_oversubscribed(self) -> bool:
        """Whether any run had more ranks than cores."""
        return any(run.oversubscribed for run in self.runner.evidence.runs)
