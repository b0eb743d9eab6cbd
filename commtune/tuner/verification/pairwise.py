"""Compares any two configurations in blocks that are not stored (``commtune compare``).

A block runs both, back to back, in random order. There is one look, at the end of the time, so
the error rate is shared by sizes only: one interval for each, all holding simultaneously. A block
with a lost run is replaced by another.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from commtune import model
from commtune.campaign.plan import Plan
from commtune.errors import AllocationOver
from commtune.spaces.space import Space
from commtune.tuner.confirmation.comparison import Rules, intervals_by_state
from commtune.tuner.execution.dispatch import Dispatch
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.ports import Benchmark, Reporter
from commtune.tuner.statistics.blocks import balanced_order
from commtune.tuner.statistics.evidence import never_works
from commtune.tuner.statistics.machine_states import ALL, MachineStates, fit_states
from commtune.tuner.statistics.pairs import pair_by_size, pair_times
from commtune.tuner.statistics.tails import describe_slow_runs, is_heavier, measure_tails


class Arm(StrEnum):
    """One of the two configurations."""

    A = "A"
    B = "B"

    @property
    def other(self) -> Arm:
        """The configuration that this one is compared with."""
        return Arm.B if self is Arm.A else Arm.A


@dataclass(frozen=True)
class Difference:
    """The difference at one size, in one machine state or over all.

    Attributes:
        a_s, b_s: medians of run medians, or means of their means, seconds; ``None`` without a
            pair in one machine state.
        ratio: time of A / time of B: above 1, B is faster.
        faster: the side that is shown to be faster over all states; nothing is claimed from one.
        hidden: the largest difference that isn't ruled out (0.04 is 4 %); ``None`` if unknown.
        slow: the side that has more slow runs than the other, over all states.
    """

    bytes: int
    speed: str
    a_s: float | None = None
    b_s: float | None = None
    ratio: model.Interval | None = None
    faster: Arm | None = None
    hidden: float | None = None
    slow: Arm | None = None


@dataclass(frozen=True)
class PairwiseResult:
    """The result of a comparison.

    Attributes:
        blocks: number of blocks of which no run was lost.
        failures: failed runs by side and outcome.
        lost: lost runs by outcome.
        details: why each side's last failed run failed, and the end of its output.
        level: level of each interval.
        estimand: the quantity whose ratio each is.
        repeats: re-runs because of background load.
        slow_runs: more slow runs than the other side has, by side, as in ``Verification``.
        tails: what stands beside the ratios, by size; B is the candidate.
        interrupted: whether it was ended before its time.
    """

    differences: tuple[Difference, ...]
    blocks: int
    failures: Mapping[Arm, Mapping[model.Outcome, int]]
    details: Mapping[Arm, tuple[str, str]]
    level: float
    estimand: model.Estimand
    speeds: MachineStates
    oversubscribed: bool
    repeats: int
    lost: Mapping[model.Outcome, int] = field(default_factory=dict)
    slow_runs: Mapping[Arm, str] = field(default_factory=dict)
    tails: Sequence[model.Tail] = ()
    interrupted: bool = False


@dataclass
class PairwiseComparison:
    """Compares two configurations, on a session whose store is in memory.

    Attributes:
        time_s: wall seconds that may be spent.
        estimand: the quantity whose ratio is estimated.
        spread: standard deviation of a ratio between sessions, as a share of its logarithm.
    """

    benchmark: Benchmark
    sides: Mapping[Arm, model.Configuration]
    workload: model.Workload
    timing: model.Timing
    time_s: float
    reporter: Reporter
    estimand: model.Estimand = model.Estimand.MEDIAN
    spread: float = model.SESSION_SPREAD
    clock: Callable[[], float] = time.monotonic
    store: InMemoryStore = field(default_factory=InMemoryStore)

    def __post_init__(self) -> None:
        plan = Plan("compare", Space("", "", "", ()), self.workload, self.timing)
        # An interval of each size, all at one look.
        margins = plan.minimum_gain, plan.tolerance
        self._rules = Rules(
            plan.level,
            *margins,
            comparisons=len(self.workload.sizes),
            spread=self.spread,
            estimand=self.estimand,
        )
        self._runner = Runner(
            plan, 0, self.benchmark, self.store, clock=self.clock, default_may_fail=True
        )
        self._session = Session(plan, self._runner, self.reporter)
        self._timer = Timer(self._runner, self.time_s, model.Phase.COMPARE)

    def run(self) -> PairwiseResult:
        """Makes blocks until the time is over, or a side has shown that it does not work.

        Raises:
            EnvironmentFault: the benchmark can't be started, or five runs in a row were lost.
        """
        interrupted = False
        try:
            Dispatch(self._session, self._next_block, model.Phase.COMPARE, self._timer).run()
        except KeyboardInterrupt:
            interrupted = True
        except AllocationOver:
            pass  # the blocks made so far count
        return self._result(interrupted)

    def _next_block(self) -> Sequence[model.Configuration] | None:
        if self._is_over():
            return None
        return [self.sides[arm] for arm in self._order(self._runner.blocks)]

    def _order(self, block: int) -> list[Arm]:
        """Returns the order of arms in a block; by arms, as both may be the same configuration."""
        return balanced_order(list(Arm), self._runner.order_seed, block)

    def _is_over(self) -> bool:
        blocks, used_s = self._blocks(), self._timer.used()
        if any(never_works([block[arm] for block in blocks]) for arm in Arm):
            return True
        # A block that would end past the time is not begun.
        pace_s = used_s / max(1, self._runner.blocks)
        return len(blocks) >= model.FEWEST_PAIRS and used_s + pace_s > self.time_s

    def _blocks(self) -> list[dict[Arm, model.Run]]:
        """Lists blocks of which no run was lost; of re-runs, the last one counts."""
        found: defaultdict[int, dict[Arm, model.Run]] = defaultdict(dict)
        for run in self._runner.evidence.runs:
            if not run.outcome.is_lost:
                found[run.block][self._order(run.block)[run.position]] = run
        return [block for block in found.values() if len(block) == len(Arm)]

    def _result(self, interrupted: bool) -> PairwiseResult:
        evidence, blocks = self._runner.evidence, self._blocks()
        speeds = fit_states(evidence.canaries(model.Phase.COMPARE))
        failed = {
            arm: [block[arm] for block in blocks if block[arm].outcome is not model.Outcome.OK]
            for arm in Arm
        }
        tails = {arm: measure_tails(pair_times(blocks, arm.other, arm, speeds)) for arm in Arm}
        slow = {tail.bytes: arm for arm in Arm for tail in tails[arm] if is_heavier(tail)}
        return PairwiseResult(
            differences=self._estimate_differences(blocks, speeds, slow),
            blocks=len(blocks),
            failures={arm: Counter(run.outcome for run in runs) for arm, runs in failed.items()},
            details={
                arm: (runs[-1].detail, runs[-1].output_tail.strip())
                for arm, runs in failed.items()
                if runs
            },
            level=self._rules.interval_level,
            estimand=self.estimand,
            speeds=speeds,
            oversubscribed=self._session.is_oversubscribed(),
            repeats=self._session.reruns,
            lost=Counter(run.outcome for run in evidence.runs if run.outcome.is_lost),
            slow_runs={arm: describe_slow_runs(of, arm.other) for arm, of in tails.items()},
            tails=tails[Arm.B],
            interrupted=interrupted,
        )

    def _estimate_differences(
        self,
        blocks: Sequence[Mapping[Arm, model.Run]],
        speeds: MachineStates,
        slow: Mapping[int, Arm],
    ) -> tuple[Difference, ...]:
        """Estimates the differences by size, and in each machine state where there are several.

        Args:
            slow: the side that has more slow runs, by size (bytes).
        """
        worked = [b for b in blocks if all(run.outcome is model.Outcome.OK for run in b.values())]
        by_size = pair_by_size(blocks, Arm.A, Arm.B, speeds)
        said = []
        for size in sorted({m.bytes for b in worked for m in b[Arm.A].measurements}):
            if parts := by_size.get(size):
                overall = self._rules.estimate([*parts.values()])
                for speed, pairs, ratio in intervals_by_state(parts, overall, self._rules):
                    times_s = pairs.middle_s(self.estimand)
                    said.append(_describe_difference(size, speed, times_s, ratio, slow.get(size)))
            else:
                said.append(Difference(size, ALL))
        return tuple(said)


def _describe_difference(
    size: int,
    speed: str,
    times_s: tuple[float, float],
    ratio: model.Interval,
    slow: Arm | None,
) -> Difference:
    known = ratio.pairs >= model.FEWEST_PAIRS and ratio.low > 0 and math.isfinite(ratio.high)
    return Difference(
        size,
        speed,
        *times_s,
        ratio,
        faster=_faster(ratio) if known and speed == ALL else None,
        hidden=max(ratio.high, 1 / ratio.low) - 1 if known else None,
        slow=slow if speed == ALL else None,
    )


def _faster(ratio: model.Interval) -> Arm | None:
    if ratio.low > 1:
        return Arm.B
    return Arm.A if ratio.high < 1 else None
