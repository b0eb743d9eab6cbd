"""Replays a half of a recording, and makes up the runs that would be played a second time.

A replay plays recorded runs again: to a method that looks like a second measurement that agrees
with the first to the last digit, and so like evidence.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from commtune.model import Measurement, Outcome, RunRequest, RunResult
from commtune.replay.benchmark import ReplayBenchmark

from .halves import Halves


class FreshReplay(ReplayBenchmark):
    """Plays each recorded run once; instead of again, one with the noise of some other run.

    Its expected time is what the seen half alone says, shrunk as the truth of the held half is.
    What the machine's state did to the recorded run stays.
    """

    def __init__(self, halves: Halves, seed: int) -> None:
        super().__init__(halves.seen, seed)
        self._halves = halves
        self._noise = random.Random(f"fresh/{seed}")
        self._places = {
            (run.configuration, run.sizes[0].median_s, run.sizes[-1].median_s): place
            for place, run in enumerate(halves.grid.runs)
            if run.sizes
        }
        self._played: set[int] = set()

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """One run of the request's configuration."""
        row = self._halves.recorded(request.configuration)
        known = replace(request, configuration=self.grid.configurations[row])
        found = super().measure(known, time_limit_s)
        if found.outcome is not Outcome.OK:
            return found
        made = found.measurements
        place = self._places[row, made[0].median_s, made[-1].median_s]
        if place not in self._played:
            self._played.add(place)
            return found
        residuals = self._halves.recording.residuals
        moved = self._halves.expected[row] + residuals[self._noise.randrange(len(residuals))]
        moved = moved - self._halves.recording.log_times[place]
        factors = dict(zip(self._halves.sizes, moved.tolist(), strict=True))
        return replace(found, measurements=tuple(_scaled(m, factors[m.bytes]) for m in made))


def _scaled(one: Measurement, logarithm: float) -> Measurement:
    factor = math.exp(logarithm)
    return replace(
        one,
        **{
            name: getattr(one, name) * factor
            for name in ("median_s", "min_s", "mean_s", "p95_s", "max_s")
        },
        algbw=one.algbw / factor,
        busbw=one.busbw / factor,
    )
