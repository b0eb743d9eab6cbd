"""Random search, the baseline to which other strategies are compared."""

from __future__ import annotations

import random
from collections.abc import Iterator

from commtune.model import Configuration, Origin
from commtune.spaces.space import Space
from commtune.tuner.search.strategies.strategy import IsOpen, Proposal, Strategy

#: Random draws before the first open configuration is looked for by enumeration.
_TRIES = 300


class RandomSampling(Strategy):
    """Draws legal configurations that are not known."""

    def __init__(self, space: Space, rng: random.Random) -> None:
        self._space = space
        self._rng = rng
        # Once nearly all are known, every configuration in turn.
        self._all: Iterator[Configuration] = iter(())
        self._is_sparse = False

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns a random open configuration, or the next one where nearly all are known."""
        for _ in range(0 if self._is_sparse else _TRIES):
            configuration = self._space.sample(self._rng)
            if is_open(configuration):
                return Proposal(configuration, Origin.RANDOM)
        self._is_sparse = True
        for _ in range(2):  # one that was passed may be open again
            if (found := next(filter(is_open, self._all), None)) is not None:
                return Proposal(found, Origin.RANDOM)
            self._all = self._space.configurations()
        return None
