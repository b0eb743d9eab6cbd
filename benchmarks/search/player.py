"""What a method may do: make runs of configurations, one after the other, while some are left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commtune.model import Configuration, Outcome, RunRequest

from .fresh import FreshReplay
from .halves import Floats, Halves

Picks = NDArray[np.int64]
#: The default is run before a method's own run with these numbers: what a speedup is over, and
#: what tells noise from gain. These runs count like all others.
DEFAULTS = (0, 8, 16, 32)


class Spent(Exception):
    """No run is left."""


@dataclass
class Played:
    """The runs that a method made, in order.

    Attributes:
        configurations: row of the grid, by run.
        log_times: logarithms of seconds by run and size; ``nan`` where a run failed.
        seconds: processor time of the method until each run, without that of the replay.
        own: what the method itself recommends at each size, by the number of runs.
        claims: whether a speedup is claimed at each size, by the number of runs.
    """

    configurations: list[int] = field(default_factory=list)
    log_times: list[Floats] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    own: dict[int, Picks] = field(default_factory=dict)
    claims: dict[int, NDArray[np.bool_]] = field(default_factory=dict)


class Player:
    """Plays the seen half of a recording for one method.

    Attributes:
        limit: how many runs the method may make.
        own: gives what the method itself recommends now; asked at every checkpoint.
    """

    def __init__(self, halves: Halves, seed: int, limit: int, checkpoints: frozenset[int]) -> None:
        self.halves = halves
        self.rng = random.Random(f"player/{seed}")
        self.limit = limit
        self.played = Played()
        self.own: Callable[[], Picks] | None = None
        self._checkpoints = checkpoints
        self._benchmark = FreshReplay(halves, seed)
        self._thought_s, self._since = 0.0, time.process_time()

    @property
    def made(self) -> int:
        """How many runs were made."""
        return len(self.played.configurations)

    @property
    def others(self) -> list[int]:
        """The rows of all configurations but the default."""
        default = self.halves.default
        return [row for row in sorted(self.halves.grid.index.values()) if row != default]

    def play(self, row: int) -> Floats:
        """Runs a configuration: logarithms of seconds by size.

        Raises:
            Spent: there is no run left.
        """
        if self.made in DEFAULTS and row != self.halves.default:
            self._run(self.halves.default)
        return self._run(row)

    def play_configuration(self, configuration: Configuration) -> Floats:
        """As ``play``."""
        return self.play(self.halves.grid.index[configuration])

    def _run(self, row: int) -> Floats:
        self._thought_s += time.process_time() - self._since
        if self.made and self.made in self._checkpoints and self.own is not None:
            began = time.process_time()
            self.played.own[self.made] = self.own()
            self._thought_s += time.process_time() - began
        if self.made >= self.limit:
            raise Spent
        found = self._measure(row)
        self.played.configurations.append(row)
        self.played.log_times.append(found)
        self.played.seconds.append(self._thought_s)
        self._since = time.process_time()
        return found

    def _measure(self, row: int) -> Floats:
        grid = self.halves.grid
        request = RunRequest(
            "", grid.configurations[row], grid.header.workload, grid.header.timing,
            block=self.made // 8, position=self.made % 8,
        )  # fmt: skip
        result = self._benchmark.measure(request, 1e9)
        found = np.full(len(self.halves.sizes), np.nan)
        if result.outcome is Outcome.OK:
            places = {size: place for place, size in enumerate(self.halves.sizes)}
            for one in result.measurements:
                found[places[one.bytes]] = np.log(one.median_s)
        return found
