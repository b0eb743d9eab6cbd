"""Any two configurations against each other, in blocks that are not stored.

A block runs both, close together, in random order. There is one look, at the end of the time, so
that looking costs nothing: all intervals, one a size, hold together at the asked-for level.
A run that was lost (its node died, say) is neither side's fault: its block is made anew.
"""

from __future__ import annotations

import math
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from commtune.errors import AllocationOver, EnvironmentFault
from commtune.model import (
    Configuration,
    Interval,
    Outcome,
    Phase,
    Run,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.tuner.execution.runner import first_limit, time_limit
from commtune.tuner.execution.session import is_disturbed
from commtune.tuner.ports import Benchmark, Progress, Reporter
from commtune.tuner.statistics.blocks import Pairs, log_ratios
from commtune.tuner.statistics.evidence import Cell, Evidence, median_times
from commtune.tuner.statistics.intervals import (
    FEWEST_PAIRS,
    combine_strata,
    corrected_level,
    interval_of_ratio,
)
from commtune.tuner.statistics.machine_states import ALL, MachineStates, fit_states

#: A side that failed so often and never worked won't.
_MOST_FAILURES = 3
#: Blocks in a row that may be lost before it ends.
_MOST_LOST = 5
#: How often disturbed runs are made again: one of them, and all: a floor and a share.
_MOST_REPEATS, _REPEATS_FLOOR, _REPEATS_SHARE = 2, 10, 0.1


class Arm(StrEnum):
    """One of the two."""

    A = "A"
    B = "B"


@dataclass(frozen=True)
class Difference:
    """What the pairs say of one size, at one machine speed or over all.

    Attributes:
        a_s, b_s: medians of run medians, seconds.
        ratio: time of A / time of B: above 1, B is faster.
        faster: the side that surely is, over all speeds; from one speed nothing is claimed.
        hidden: the largest difference that there may be all the same (0.04 is 4 %); ``None``
            where nothing is known.
    """

    bytes: int
    speed: str
    a_s: float
    b_s: float
    ratio: Interval
    faster: Arm | None
    hidden: float | None


@dataclass(frozen=True)
class PairwiseResult:
    """What came of a comparison.

    Attributes:
        blocks: pairs of runs, whatever their outcome, but for lost ones.
        failures: failed runs by side and outcome.
        lost: runs that were lost, by outcome; nobody is blamed for them.
        details: of each side's last failure: why, and the end of its output.
        level: level of each interval.
        repeats: runs made again because others used the cores.
        interrupted: whether it was ended before its time.
    """

    differences: tuple[Difference, ...]
    blocks: int
    failures: Mapping[Arm, Mapping[Outcome, int]]
    details: Mapping[Arm, tuple[str, str]]
    level: float
    speeds: MachineStates
    oversubscribed: bool
    repeats: int
    lost: Mapping[Outcome, int] = field(default_factory=dict)
    interrupted: bool = False


@dataclass
class PairwiseComparison:
    """Runs two configurations against each other.

    Attributes:
        time_s: wall seconds that may be spent.
        level: confidence level of all intervals over all machine speeds together.
    """

    benchmark: Benchmark
    sides: Mapping[Arm, Configuration]
    workload: Workload
    timing: Timing
    time_s: float
    reporter: Reporter
    level: float = 0.95
    seed: int = 1
    clock: Callable[[], float] = time.monotonic
    evidence: Evidence = field(default_factory=Evidence)
    blocks: list[dict[Arm, Run]] = field(default_factory=list)
    _repeats: int = 0
    _lost: Counter[Outcome] = field(default_factory=Counter)
    _lost_in_a_row: int = 0

    def run(self) -> PairwiseResult:
        """Makes blocks until the time is over, or a side has shown that it does not work.

        Raises:
            EnvironmentFault: the benchmark can't be started at all, or run after run was lost.
        """
        started = self.clock()
        interrupted = False
        try:
            while not self._is_over(self.clock() - started):
                self._make_block(started)
        except KeyboardInterrupt:
            interrupted = True
        except AllocationOver:
            pass  # what there was time for counts
        return self._versus(interrupted)

    def _is_over(self, used_s: float) -> bool:
        made = len(self.blocks)
        if any(self._is_failing(side) for side in Arm):
            return True
        # A block that would end past the time is not begun.
        pace = used_s / (made + self._lost.total()) if made else 0.0
        return made >= FEWEST_PAIRS and used_s + pace > self.time_s

    def _is_failing(self, side: Arm) -> bool:
        outcomes = [block[side].outcome for block in self.blocks]
        return len(outcomes) >= _MOST_FAILURES and Outcome.OK not in outcomes

    def _make_block(self, started: float) -> None:
        number = len(self.blocks) + self._lost.total()
        order = list(Arm)
        random.Random(f"{self.seed}:{number}").shuffle(order)
        members = {}
        for position, side in enumerate(order):
            members[side] = self._run(side, number, position)
            self._tell(members[side], started)
            if members[side].outcome.is_lost:
                self._note_lost(members[side])
                return
        self._lost_in_a_row = 0
        self.blocks.append(members)

    def _note_lost(self, last: Run) -> None:
        self._lost[last.outcome] += 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row == _MOST_LOST:
            raise EnvironmentFault(
                f"{_MOST_LOST} runs in a row were lost; the last one: "
                f"{last.detail or last.outcome}\n{last.output_tail.strip()}".rstrip(),
                hint="once that is mended, type the same command again",
            )

    def _run(self, side: Arm, block: int, position: int) -> Run:
        """A run, made again a few times at most if others used the cores meanwhile."""
        run = self._run_once(side, block, position)
        for _ in range(_MOST_REPEATS):
            allowed = _REPEATS_FLOOR + _REPEATS_SHARE * len(self.evidence.runs)
            disturbed = run.outcome is Outcome.OK and is_disturbed(run)
            if not disturbed or self._repeats >= allowed:
                break
            self._repeats += 1
            run = self._run_once(side, block, position)
        return run

    def _run_once(self, side: Arm, block: int, position: int) -> Run:
        request = RunRequest(
            run_id=uuid.uuid4().hex,
            configuration=self.sides[side],
            workload=self.workload,
            timing=self.timing,
            phase=Phase.VERIFY,
            block=block,
            position=position,
        )
        result: RunResult = self.benchmark.measure(request, self._limit_s())
        run = Run.from_result(request, result, "")
        self.evidence.add(run)
        if result.outcome is Outcome.MISSING_PROGRAM:
            raise EnvironmentFault(result.detail, hint="run 'commtune doctor'")
        return run

    def _limit_s(self) -> float:
        walls_s = [run.wall_s for run in self.evidence.good(Phase.VERIFY)]
        return time_limit(walls_s, first_limit(self.workload, self.timing))

    def _tell(self, run: Run, started: float) -> None:
        self.reporter.progress(
            Progress(
                phase="compare",
                trials=2,
                runs=len(self.evidence.runs),
                best_gain=1.0,
                used_s=self.clock() - started,
                budget_s=self.time_s,
                last=run.outcome,
            )
        )

    def _versus(self, interrupted: bool) -> PairwiseResult:
        speeds = fit_states(self.evidence.canaries(Phase.VERIFY))
        level = corrected_level(self.level, len(self.workload.sizes))
        failed = {
            side: [b[side] for b in self.blocks if b[side].outcome is not Outcome.OK]
            for side in Arm
        }
        return PairwiseResult(
            differences=_differences(self.blocks, speeds, level, self.level),
            blocks=len(self.blocks),
            failures={s: Counter(run.outcome for run in runs) for s, runs in failed.items()},
            details={
                side: (runs[-1].detail, runs[-1].output_tail.strip())
                for side, runs in failed.items()
                if runs
            },
            level=level,
            speeds=speeds,
            oversubscribed=any(run.oversubscribed for run in self.evidence.runs),
            repeats=self._repeats,
            lost=dict(self._lost),
            interrupted=interrupted,
        )


def _differences(
    blocks: Sequence[Mapping[Arm, Run]], speeds: MachineStates, level: float, alone: float
) -> tuple[Difference, ...]:
    """What blocks say, by size; with several machine speeds, of each of these besides.

    Args:
        level: of each interval over all speeds.
        alone: of the intervals at one speed, from which nothing is claimed.
    """
    by_size: defaultdict[int, dict[str, Pairs]] = defaultdict(dict)
    for (size, speed), found in _pairs(blocks, speeds).items():
        by_size[size][speed] = found
    said = []
    for size, parts in sorted(by_size.items()):
        said.append(_difference(size, ALL, list(parts.values()), level))
        for speed, found in sorted(parts.items()):
            if speed != ALL:
                said.append(_difference(size, speed, [found], alone))
    return tuple(said)


def _pairs(blocks: Sequence[Mapping[Arm, Run]], speeds: MachineStates) -> dict[Cell, Pairs]:
    found: defaultdict[Cell, Pairs] = defaultdict(list)
    for block in blocks:
        if all(run.outcome is Outcome.OK for run in block.values()):
            a, b = median_times(block[Arm.A], speeds), median_times(block[Arm.B], speeds)
            for cell in a.keys() & b.keys():
                found[cell].append((a[cell], b[cell]))
    return found


def _difference(size: int, speed: str, parts: Sequence[Pairs], level: float) -> Difference:
    together = [pair for part in parts for pair in part]
    ratio = interval_of_ratio(
        combine_strata([log_ratios(part) for part in parts]), level, len(together)
    )
    known = ratio.pairs >= FEWEST_PAIRS and ratio.low > 0 and math.isfinite(ratio.high)
    return Difference(
        bytes=size,
        speed=speed,
        a_s=median(a for a, _ in together),
        b_s=median(b for _, b in together),
        ratio=ratio,
        faster=_faster(ratio) if known and speed == ALL else None,
        hidden=max(ratio.high, 1 / ratio.low) - 1 if known else None,
    )


def _faster(ratio: Interval) -> Arm | None:
    if ratio.low > 1:
        return Arm.B
    return Arm.A if ratio.high < 1 else None
