"""The blocks of the ablation: makes them within a budget, and reads effects from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from commtune.model import DEFAULT, Configuration, Outcome, Phase
from commtune.tuner.ablation.effects import FEWEST, Effects
from commtune.tuner.execution.dispatch import Dispatch, repeat_blocks
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.search.standings import Standing
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.machine_states import MachineStates


class AblationBlocks:
    """Blocks of the default and any configurations, in the order of the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runner = session.runner
        self._timer = Timer(self._runner, 0.0, Phase.ABLATE)
        #: The whole blocks so far, and the number of runs that they were made from.
        self._whole: Blocks = ()
        self._read = 0
        #: What was found in these blocks: it is asked for again with each part of a judgement.
        self._found: dict[tuple[Configuration, Configuration, MachineStates], Effects] = {}

    def start_timer(self, budget_s: float, since: int) -> Timer:
        """Starts the budget (seconds) that pays for blocks from a number on."""
        self._timer = Timer(self._runner, budget_s, Phase.ABLATE, since)
        return self._timer

    def has_time_for(self, count: int, arms: Sequence[Configuration], until_s: float) -> bool:
        """Whether a number of blocks leaves so many seconds of the budget."""
        block_s = (len(arms) + 1) * self._runner.typical_s()
        return count * block_s <= self._timer.left() - until_s

    def make_block(self, arms: Sequence[Configuration], until_s: float) -> bool:
        """Makes a block if one fits the rest of the budget; returns whether there was one.

        Args:
            until_s: seconds of the budget that have to be left before it.
        """
        before, width = self._runner.blocks, self._session.width
        if self._timer.left() <= until_s or not self.has_time_for(width, arms, 0.0):
            return False
        wanted = repeat_blocks(width, partial(self._session.order_block, arms))
        Dispatch(self._session, wanted, Phase.ABLATE, self._timer).run()
        return self._runner.blocks > before  # no node-hours may be left for one

    @property
    def whole(self) -> Blocks:
        """The whole blocks so far."""
        runs = self._runner.evidence.of(Phase.ABLATE)
        if len(runs) != self._read:
            self._whole = self._session.blocks_since(0, Phase.ABLATE)
            self._read = len(runs)
            self._found = {}
        return self._whole

    def estimate_effects(self, slow: Configuration, fast: Configuration) -> Effects:
        """Estimates the effects of one configuration against another."""
        blocks, speeds = self.whole, self._runner.evidence.speeds()
        asked = (slow, fast, speeds)
        if asked not in self._found:
            self._found[asked] = Effects.measure(blocks, slow, fast, speeds)
        return self._found[asked]

    def fails(self, configuration: Configuration) -> bool:
        """Whether a configuration failed twice in this phase and never worked."""
        every = self._runner.evidence.of(Phase.ABLATE)
        ended = [run.outcome for run in every if run.configuration == configuration]
        return Outcome.OK not in ended and sum(one.blames_configuration for one in ended) >= 2

    def read_standings(self) -> dict[Configuration, Standing]:
        """Returns what its blocks say of each configuration that has enough of them."""
        sizes = self._session.plan.workload.sizes
        made = dict.fromkeys(one for block in self.whole for one in block)
        every = {one: self.estimate_effects(DEFAULT, one) for one in made if not one.is_default}
        return {
            one: Standing(
                one,
                {size: found[size].mean for size in sizes},
                {size: found[size].error for size in sizes},
            )
            for one, found in every.items()
            if found.blocks >= FEWEST and found.keys() >= {*sizes}
        }
