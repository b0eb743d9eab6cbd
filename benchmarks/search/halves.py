"""A recording in two halves: strategies play one, what they choose is judged by the other."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration, Outcome
from commtune.replay.recording import Grid, RecordedRun
from commtune.spaces.space import Space
from commtune.tuner.statistics.machine_states import MIXED

from .truth import Prior, fit_prior, shrink_medians

Floats = NDArray[np.float64]
#: A held-out run is as fast or as slow as this many times its configuration's median at most: one
#: that hung for a second would otherwise decide the mean over all sizes.
_FARTHEST = 2.0


@dataclass(frozen=True)
class Recording:
    """A recording, and what is worked out of the whole of it once."""

    grid: Grid

    @cached_property
    def plan(self) -> Plan:
        """The recording's own campaign."""
        return parse_campaign(self.grid.header.campaign, Path.cwd()).plan

    @cached_property
    def log_times(self) -> Floats:
        """Logarithms of seconds, a row a run; ``nan`` where not measured.

        Without what the machine's state did to them: the rest is the configuration's.
        """
        sizes = self.grid.header.workload.sizes
        times = np.array([list(_log_times(run, sizes)) for run in self.grid.runs])
        states = np.array([list(self._states(run)) for run in self.grid.runs])
        usual = max(self.grid.speeds.names, key=lambda name: int((states == name).sum()))
        medians = self._medians(np.where(states == usual, times, np.nan))
        away = times - medians[self.of]
        for state in set(states.ravel()) - {usual}:
            here = np.where(states == state, away, np.nan)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a size never seen at a state
                effect = np.nan_to_num(np.nanmedian(here, axis=0))
            times -= np.where(states == state, effect, 0.0)
        return times

    @cached_property
    def residuals(self) -> Floats:
        """How runs of one configuration differ, a row a run: of all with two runs or more."""
        places = [np.flatnonzero(self.of == c) for c in np.unique(self.of)]
        found = [
            math.sqrt(len(mine) / (len(mine) - 1)) * (times - times.mean(axis=0))
            for mine in places
            if len(mine) > 1 and not np.isnan(times := self.log_times[mine]).any()
        ]
        return np.vstack(found)

    @cached_property
    def of(self) -> NDArray[np.int64]:
        """The configuration of each run."""
        return np.array([run.configuration for run in self.grid.runs])

    @cached_property
    def prior(self) -> Prior:
        """How the truth of a half is worked out."""
        space = self.plan.space
        rows = [space.assignment(c) for c in self.grid.configurations]
        features = [tuple(str(row[p.name]) for p in space.parameters) for row in rows]
        return fit_prior(self.log_times, self.of, features)

    def _states(self, run: RecordedRun) -> Iterator[str]:
        known = {s.bytes: self.grid.speeds.name(s.canary_s, s.canary_after_s) for s in run.sizes}
        return (known.get(size, MIXED) for size in self.grid.header.workload.sizes)

    def _medians(self, times: Floats) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.array(
                [np.nanmedian(times[self.of == c], axis=0)
                 for c in range(len(self.grid.configurations))]
            )  # fmt: skip


@dataclass(frozen=True)
class Halves:
    """The two halves of one recording, drawn by a seed.

    Attributes:
        seen: what strategies play; every run takes the mean wall time, so that a budget in
            seconds is one in runs.
        held: places of the other half's runs in the recording.
    """

    recording: Recording
    seen: Grid
    held: NDArray[np.int64]

    @property
    def grid(self) -> Grid:
        """Both halves."""
        return self.recording.grid

    @property
    def plan(self) -> Plan:
        """The recording's own campaign."""
        return self.recording.plan

    @property
    def space(self) -> Space:
        """What that campaign may set."""
        return self.plan.space

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes, ascending."""
        return self.grid.header.workload.sizes

    @property
    def run_s(self) -> float:
        """Wall seconds that a run takes, all alike."""
        return self.seen.runs[0].wall_s

    @property
    def default(self) -> int:
        """The default's row."""
        return self.grid.index[DEFAULT]

    def recorded(self, configuration: Configuration) -> int:
        """The row of a configuration; variables that were not recorded do nothing."""
        variables = self.recording.plan.space.variables
        known = {name: value for name, value in configuration.items() if name in variables}
        return self.grid.index[Configuration(known)]

    def runs(self, percent: float) -> int:
        """So many per cent of the recorded runs of both halves."""
        return max(2, round(len(self.grid.runs) * percent / 100))

    @cached_property
    def expected(self) -> Floats:
        """As ``truth``, by the half that strategies play."""
        recording = self.recording
        seen = np.setdiff1d(np.arange(len(recording.of)), self.held)
        return shrink_medians(recording.log_times[seen], recording.of[seen], recording.prior)

    @cached_property
    def truth(self) -> Floats:
        """Logarithms of seconds, a row a configuration and a column a size, by the held half."""
        recording = self.recording
        return shrink_medians(
            recording.log_times[self.held], recording.of[self.held], recording.prior
        )

    @cached_property
    def held_means(self) -> Floats:
        """Means of the held half's logarithms; as ``truth`` where a configuration has no run.

        Not shrunk: what was chosen without them is judged by them without bias. Wild runs are
        drawn in.
        """
        found, recording = self.truth.copy(), self.recording
        of, far = recording.of[self.held], math.log(_FARTHEST)
        for row in np.unique(of):
            middle = np.nanmedian(recording.log_times[recording.of == row], axis=0)
            away = recording.log_times[self.held[of == row]] - middle
            mean = middle + np.clip(away, -far, far).mean(axis=0)
            found[row] = np.where(np.isnan(mean), found[row], mean)
        return found

    @cached_property
    def best(self) -> Floats:
        """The least time at each size over the configurations, as the truth has it."""
        least: Floats = self.truth[sorted(self.grid.index.values())].min(axis=0)
        return least


def split_grid(recording: Recording, seed: int) -> Halves:
    """Half of each configuration's runs at random, the default's as well.

    Of an odd number the strategies get one more; of a single run they get it, and the truth of
    that configuration rests on what is known of its neighbours.
    """
    grid, rng = recording.grid, random.Random(f"halves/{seed}")
    places: dict[int, list[int]] = {}
    for place, run in enumerate(grid.runs):
        if run.outcome is Outcome.OK:
            places.setdefault(run.configuration, []).append(place)
    held = {place for mine in places.values() for place in rng.sample(mine, len(mine) // 2)}
    wall_s = math.fsum(run.wall_s for run in grid.runs) / len(grid.runs)
    seen = tuple(replace(r, wall_s=wall_s) for i, r in enumerate(grid.runs) if i not in held)
    return Halves(recording, replace(grid, runs=seen), np.array(sorted(held)))


def _log_times(run: RecordedRun, sizes: tuple[int, ...]) -> Iterator[float]:
    known = {size.bytes: math.log(size.median_s) for size in run.sizes}
    return (known.get(size, math.nan) for size in sizes)
