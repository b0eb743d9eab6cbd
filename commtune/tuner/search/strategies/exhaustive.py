"""Exhaustive search: every configuration of the space once, in random order."""

from __future__ import annotations

import random

from commtune.model import Origin
from commtune.spaces.space import Space
from commtune.tuner.search.strategies.strategy import IsOpen, Proposal, Strategy, pop_open


class Exhaustive(Strategy):
    """Enumerates a space that fits the budget as a whole."""

    def __init__(self, space: Space, rng: random.Random) -> None:
        self._left = list(space.configurations())
        rng.shuffle(self._left)

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns the next open configuration."""
        return pop_open(self._left, is_open, Origin.ENUMERATED)
