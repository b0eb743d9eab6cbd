"""One session of a campaign: what its phases share."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from commtune.campaign.plan import Plan
from commtune.model import Configuration, Execution, Outcome, Phase, Run
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
        self._clock = runner.batches.used_s
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

    def fits(self, runs: int) -> bool:
        """Whether so many runs, as long as those that ended, fit what is left."""
        return runs * self._runner.typical_s() <= self.left()


@dataclass
class Session:
    """Plan, runner and reporter, with the progress that is told after every run.

    Attributes:
        best_log_gain: logarithm of the best ratio that the search saw; for the eye only.
        repeats: runs re-run because others used the cores, in this session.
    """

    plan: Plan
    runner: Runner
    reporter: Reporter
    best_log_gain: float = 0.0
    repeats: int = 0
    _repeats_of: Counter[tuple[int, int]] = field(default_factory=Counter)

    def timer(self, budget_s: float, phase: Phase, since: int = 0) -> Timer:
        """A timer for a phase, going on where earlier sessions stopped."""
        return Timer(self.runner, budget_s, phase, since)

    @property
    def width(self) -> int:
        """How many blocks can be made at the same time."""
        return self.runner.batches.most_in_flight

    def is_to_be_repeated(self, run: Run) -> bool:
        """Whether a run is re-run at its place, a few times at most: the last one counts.

        It is where others used the cores meanwhile. No time that the benchmark measured enters;
        how long the whole run took does a little, through what the counters can resolve (see
        ``is_disturbed``). A run of a job is not: its nodes are elsewhere by now.
        """
        if self.runner.batches.is_detached:
            return False
        if run.outcome is not Outcome.OK or not is_disturbed(run):
            return False
        evidence, place = self.runner.evidence, (run.block, run.position)
        if self._repeats_of[place] == _MOST_REPEATS:
            return False
        if evidence.made_again >= _REPEATS_FLOOR + _REPEATS_SHARE * len(evidence.runs):
            return False
        self._repeats_of[place] += 1
        self.repeats += 1
        if self.repeats <= _REPEATS_SAID:
            more = "" if self.repeats < _REPEATS_SAID else "; further ones are counted only"
            self.reporter.say(
                f"others used {run.other_load:.0%} of the cores during a run: re-run{more}"
            )
        return True

    def report(self, run: Run, timer: Timer) -> None:
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
