"""The verification of a profile: fresh blocks of the default and its configuration.

There are planned looks, as in a confirmation, each with its share of the error rate. If time or
Ctrl-C ends it early, no result was seen yet, so the look that was due is the last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high

from commtune.errors import AllocationOver
from commtune.model import (
    FEWEST_BLOCKS,
    Configuration,
    Outcome,
    Phase,
    PointEvidence,
    Run,
    Tail,
    VerificationRecord,
    VerificationVerdict,
)
from commtune.model.conclusion import Decision
from commtune.tuner.confirmation.comparison import Compared, Rules
from commtune.tuner.execution.dispatch import Dispatch, repeat_blocks
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.statistics.blocks import (
    Blocks,
    complete_blocks,
    planned_blocks,
)
from commtune.tuner.statistics.evidence import Evidence, never_works
from commtune.tuner.statistics.machine_states import MachineStates, fit_states
from commtune.tuner.statistics.tails import describe_slow_runs
from commtune.tuner.verification import claims

#: The phases whose runs a campaign made before its profiles.
EARLIER = (Phase.SEARCH, Phase.ABLATE, Phase.CONFIRM)


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        points: new evidence, by size and machine state.
        level: level of each interval, after correction for sizes and looks.
        blocks, planned: whole blocks made, and planned at first.
        stopped: ``clear``, ``time``, ``failing`` (the configuration does not work) or
            ``interrupted``.
        failures: runs of the configuration that failed, by outcome.
        lost: runs that were lost, by outcome.
        detail: why the last failed run failed, with the end of its output.
        run_s: wall seconds of a typical run.
        then, now: share of the measurements in each machine state, in the campaign's confirmation
            and now; empty without canaries.
        oversubscribed: whether there were more ranks than cores, so that times mean nothing.
        tails: what stands beside the typical speedup, by size.
    """

    finding: VerificationVerdict
    sizes: tuple[claims.SizeVerification, ...]
    points: tuple[PointEvidence, ...]
    level: float
    blocks: int
    planned: int
    stopped: str
    failures: Mapping[Outcome, int]
    lost: Mapping[Outcome, int]
    detail: str
    run_s: float
    speeds: MachineStates
    then: Mapping[str, float]
    now: Mapping[str, float]
    oversubscribed: bool
    tails: tuple[Tail, ...] = ()

    @property
    def slow_runs(self) -> str:
        """More slow runs than with the default, in words; empty if there are none."""
        return describe_slow_runs(self.tails)

    @property
    def has_result(self) -> bool:
        """Whether it measured or found anything: Ctrl-C may have come before the first block."""
        return self.blocks > 0 or self.finding is not VerificationVerdict.UNDECIDED

    @property
    def more(self) -> int | None:
        """About how many more blocks would decide the undecided size that needs fewest."""
        open_ = [s for s in self.sizes if s.finding is VerificationVerdict.UNDECIDED]
        known = [s.more for s in open_ if s.more is not None]
        return max(1, min(known)) if known else None


class VerifyPhase:
    """Verifies a claim, in blocks that are stored with the campaign.

    Args:
        known: runs of the profile's campaign, for the time of a run and the machine states.
        time_s: wall seconds that may be spent.
    """

    def __init__(
        self,
        session: Session,
        claim: claims.Claim,
        known: Evidence,
        time_s: float,
    ) -> None:
        self._session = session
        self._runner = session.runner
        self._claim = claim
        self._known = known
        self._first_block = self._runner.blocks
        # Only this session counts: an earlier verification had its own time.
        self._timer = Timer(self._runner, time_s, Phase.VERIFY, since=self._first_block)
        self._decision = Decision(
            candidates=(claim.configuration,),
            blocks=planned_blocks(time_s, 2 * self.run_s()),
            first_block=self._first_block,
            budget_s=time_s,
            sizes=(claim.sizes,),
            session_spread=session.plan.session_spread,
        )
        self._planned = self._decision.blocks
        self._look = 0

    @property
    def planned_at_first(self) -> int:
        """The number of blocks that were planned before the first look."""
        return self._decision.blocks

    def run(self) -> Verification:
        """Makes blocks until every size is decided or the time is over; judges the claim."""
        try:
            stopped = self._run_looks()
        except KeyboardInterrupt:
            stopped = "interrupted"
        except AllocationOver:
            stopped = "time"
        return self._verification(stopped)

    def make_record(
        self, profile: str, finding: VerificationVerdict, ended_at: float
    ) -> VerificationRecord:
        """Returns what is stored of the verification after ``run``.

        Args:
            profile: its name.
            ended_at: seconds since 1970.
        """
        rules = self._rules()
        return VerificationRecord(
            profile=profile,
            configuration=self._claim.configuration,
            finding=finding,
            first_block=self._first_block,
            last_block=self._runner.blocks - 1,
            share=rules.share,
            session_spread=rules.spread,
            ended_at=ended_at,
        )

    def run_s(self) -> float:
        """Returns the wall seconds of a median run."""
        ours = self._runner.evidence.good(Phase.VERIFY)
        walls = [r.wall_s for r in [*self._known.good(*EARLIER), *ours]]
        return median_high(walls) if walls else 1.0

    def _run_looks(self) -> str:
        last = len(self._decision.shares) - 1
        while True:
            self._make(math.ceil(self._decision.times[self._look] * self._planned))
            if self._is_failing():
                return "failing"
            if self._timer.left() <= 0:
                self._look = last
            if self._look == last:
                return "time"
            if claims.is_clear(self._judge()[0], self._rules()):
                return "clear"
            self._planned = self._made() + self._affordable()
            self._look += 1

    def _affordable(self) -> int:
        """Estimates how many more blocks fit the time that is left."""
        pace = self._timer.used() / max(1, self._tried())
        return max(1, int(self._timer.left() / pace)) if pace > 0 else self._planned

    def _make(self, due: int) -> None:
        while self._made() < due and not self._is_failing():
            if self._timer.left() <= 0 and self._tried() >= FEWEST_BLOCKS:
                return
            wanted = repeat_blocks(
                min(self._session.width, max(1, due - self._made())), self._order
            )
            before = self._runner.blocks
            Dispatch(self._session, wanted, Phase.VERIFY, self._timer).run()
            if self._runner.blocks == before:  # no node-hours were left for a block
                return

    def _order(self) -> Sequence[Configuration]:
        return self._session.order_block(self._decision.candidates)

    def _tried(self) -> int:
        return self._runner.blocks - self._first_block

    def _made(self) -> int:
        return complete_blocks(self._blocks(), self._decision.candidates)

    def _blocks(self) -> Blocks:
        return self._session.blocks_since(self._first_block, Phase.VERIFY)

    def _fresh(self) -> list[Run]:
        runs = self._runner.evidence.of(Phase.VERIFY)
        return [run for run in runs if run.block >= self._first_block]

    def _tuned(self) -> list[Run]:
        settled = (run for run in self._fresh() if not run.outcome.is_lost)
        return [run for run in settled if run.configuration == self._claim.configuration]

    def _is_failing(self) -> bool:
        return never_works(self._tuned())

    def _rules(self) -> Rules:
        return Rules.of(self._session.plan, self._decision, self._look)

    def _speeds(self) -> MachineStates:
        """Fits machine states to the campaign's runs and the new ones."""
        earlier = self._known.canaries(*EARLIER)
        return fit_states([*earlier, *self._runner.evidence.canaries(Phase.VERIFY)])

    def _judge(self) -> tuple[tuple[claims.SizeVerification, ...], Compared]:
        return self._claim.judge_blocks(self._blocks(), self._speeds(), self._rules())

    def _verification(self, stopped: str) -> Verification:
        sizes, compared = self._judge()
        failed = [run for run in self._tuned() if run.outcome is not Outcome.OK]
        last = failed[-1] if failed else None
        finding, speeds = claims.judge_profile(sizes, self._rules()), self._speeds()
        if stopped == "failing":
            finding = VerificationVerdict.WORSE
        oversubscribed = any(run.oversubscribed for run in self._fresh())
        return Verification(
            finding=VerificationVerdict.UNDECIDED if oversubscribed else finding,
            sizes=sizes,
            points=compared.points,
            level=compared.level,
            blocks=self._made(),
            planned=self._decision.blocks,
            stopped=stopped,
            failures=Counter(run.outcome for run in failed),
            lost=Counter(run.outcome for run in self._fresh() if run.outcome.is_lost),
            detail=f"{last.detail}\n{last.output_tail.strip()}".strip() if last else "",
            run_s=self.run_s(),
            speeds=speeds,
            then=_shares(self._known.canaries(Phase.CONFIRM), speeds),
            now=_shares(Evidence.of_runs(self._fresh()).canaries(Phase.VERIFY), speeds),
            oversubscribed=oversubscribed,
            tails=tuple(compared.tails),
        )


def _shares(canaries_s: Sequence[float], speeds: MachineStates) -> dict[str, float]:
    """Returns the share of canaries (seconds) in each machine state."""
    found = Counter(speeds.name(canary, canary) for canary in canaries_s)
    return {name: found[name] / len(canaries_s) for name in speeds.names if canaries_s}
