"""Exhaustive search: every configuration of the space once, in random order."""

from __future__ import annotations

import random

from commtune.spaces.space import Space
from commtune.tuner.search.strategies.strategy import IsOpen, Origin, Proposal, Strategy


class Exhaustive(Strategy):
    """Enumerates a space that fits the budget as a whole."""

    def __init__(self, space: Space, seed: int) -> None:
        self._left = list(space.configurations())
        random.Random(seed).shuffle(self._left)

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns the next open configuration."""
        while self._left:
            configuration = self._left.pop()
            if is_open(configuration):
                return Proposal(configuration, Origin.ENUMERATED)
        return None
