"""The portfolio: the few configurations that together promise the best table.

Every size gets one configuration beforehand, the one that is to be confirmed there, so that the
error rate is shared by sizes and not by sizes times candidates. Each further candidate costs a run
in every block, and so pairs for all: how many there are follows from what their gains are, how
sure these are, and how many pairs the budget holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commtune.campaign.plan import Plan
from commtune.model import FEWEST_PAIRS, Configuration
from commtune.model.conclusion import CONFIRMATION_SHARES, Decision, error_share
from commtune.tuner.search.standings import Speedups, Standing
from commtune.tuner.statistics.blocks import FEWEST_BLOCKS
from commtune.tuner.statistics.intervals import (
    SITTING_ALLOWANCE,
    corrected_level,
    predict_interval,
)

_MOST_CANDIDATES = 6
#: One more candidate has to add so much to the table. It can't be much: 4x at large sizes
#: outweighs 1.4x at all sizes in the middle.
_WORTH_A_RUN = 0.03
#: And so much, if it would take the time in which idle variables are found.
_WORTH_ABLATION = 0.1
#: It counts at sizes where it is ahead by so many standard errors: of many that are alike, one
#: always is by luck. With 1.0, replayed campaigns found 1 % less; with 0, candidates that are
#: alike took the time of ablation from each other.
_AHEAD = 0.5
#: Speedups that differ by less (logarithms) are alike.
_ALIKE = 0.01
#: The most that ablation may have of what the search left: what it makes smaller has to be proven,
#: with more than the fewest blocks, which show large gains only.
_ABLATION_SHARE, _CONFIRMED = 0.4, 2
_ABLATION_BLOCKS = 8
#: Runs differ by at least so much, as logarithms, and by so much where nobody knows.
_LEAST_SPREAD, _UNKNOWN_SPREAD = 0.005, 0.1
_FEWEST_RESIDUALS = 4

_Table = NDArray[np.float64]


def count_ablation_runs(runs: float, candidates: Collection[Configuration]) -> float:
    """How many of the runs that the search left may go to ablation.

    None where they can tell nothing: fewer than some blocks that leave out each variable.
    """
    needed = _CONFIRMED * FEWEST_BLOCKS * (len(candidates) + 1)
    left = max(0.0, min(_ABLATION_SHARE * runs, runs - needed))
    least = _ABLATION_BLOCKS * sum(2 + len(candidate) for candidate in candidates)
    return left if left >= least else 0.0


def measure_spread(
    runs: Sequence[tuple[Configuration, Speedups]], sizes: Sequence[int]
) -> dict[int, float]:
    """Standard deviation of a pair's log ratio by size (bytes), from runs of the search.

    Wild runs are drawn in, as the interval draws them in that pairs are judged by.
    """
    made: dict[Configuration, int] = {}
    which = np.array([made.setdefault(one, len(made)) for one, _ in runs])
    found = {}
    for size, column in zip(sizes, np.transpose([row for _, row in runs]), strict=bool(runs)):
        known = ~np.isnan(column)
        values, of = column[known], which[known]
        counts = np.bincount(of, minlength=len(made))[of]
        off = values - np.bincount(of, values, len(made))[of] / counts
        several = counts > 1  # most of thousands ran once
        if several.any():
            off = np.abs(off[several]) * np.sqrt(1 + 1 / (counts[several] - 1))
            near = np.minimum(off, 4 * np.median(off))
            is_known = len(near) >= _FEWEST_RESIDUALS
            spread = math.sqrt((near**2).mean()) if is_known else _UNKNOWN_SPREAD
            found[size] = math.sqrt(2) * max(_LEAST_SPREAD, spread)
    return found


@dataclass(frozen=True)
class Prospects:
    """What confirming would bring, by what the search knows.

    Attributes:
        weights: what each size (bytes) counts for, all of the campaign's sizes.
        spread: standard deviation of a pair's log ratio by size.
    """

    plan: Plan
    standings: Sequence[Standing]
    weights: Mapping[int, float]
    spread: Mapping[int, float]

    def choose(self, runs: int) -> list[Standing]:
        """The candidates, greedily by what each adds to the table that so many runs can confirm.

        Where nothing promises a gain, the one that comes closest: to say how little it is.
        """
        if not self.standings:
            return []
        closest = [int(np.argmax((self._mean - self._error).max(axis=1)))]
        return [self.standings[index] for index in self._best(runs)[1] or closest]

    def _best(self, runs: int) -> tuple[float, list[int]]:
        """What so many runs would confirm at most, and of which standings."""
        best: tuple[float, list[int]] = (0.0, [])
        if not self.standings:
            return best
        for count in range(1, _MOST_CANDIDATES + 1):
            blocks = runs // (count + 1)
            if count > 1 and blocks < FEWEST_BLOCKS:
                break
            found = self._cover(self._worth(max(blocks, FEWEST_PAIRS)), count)
            costs_ablation = self._has_ablation(best[1], runs) > self._has_ablation(found[1], runs)
            least = _WORTH_ABLATION if costs_ablation else _WORTH_A_RUN
            best = found if found[0] > (1 + least) * best[0] else best
        return best

    def _has_ablation(self, chosen: Sequence[int], runs: int) -> bool:
        candidates = [self.standings[index].configuration for index in chosen]
        return count_ablation_runs(runs, candidates) > 0

    def _cover(self, worth: _Table, count: int) -> tuple[float, list[int]]:
        """What so many rows cover at most, chosen one after the other, and which they are.

        A further one counts where it is ahead of the others by more than the error of both.
        """
        covered = np.zeros(worth.shape[1])
        mean, error = np.full_like(covered, -np.inf), np.zeros_like(covered)
        chosen: list[int] = []
        for _ in range(count):
            is_ahead = self._mean - mean > _AHEAD * np.hypot(self._error, error)
            gains = np.where(is_ahead, np.maximum(worth - covered, 0.0), 0.0)
            index = int(np.argmax(gains.sum(axis=1)))
            is_better = gains[index] > 0
            if not is_better.any():
                break
            index = self._smallest_alike(index, is_better)
            chosen.append(index)
            covered = np.where(is_better, np.maximum(covered, worth[index]), covered)
            mean = np.where(is_better, self._mean[index], mean)
            error = np.where(is_better, self._error[index], error)
        return float(covered.sum()), chosen

    def _smallest_alike(self, index: int, sizes: NDArray[np.bool_]) -> int:
        """The smallest part of a configuration that is not seen to be slower at some sizes."""
        behind = self._mean[index] - self._mean
        doubt = np.maximum(_ALIKE, _AHEAD * np.hypot(self._error[index], self._error))
        is_alike = (behind <= doubt)[:, sizes].all(axis=1)
        whole = self.standings[index].configuration.items()
        parts = [
            n
            for n in np.flatnonzero(is_alike).tolist()
            if self.standings[n].configuration.items() <= whole
        ]
        return min(parts, key=lambda n: (len(self.standings[n].configuration), behind[n].sum()))

    def _worth(self, blocks: int) -> _Table:
        """By configuration and size: the gain at the least, times the chance to confirm it."""
        from scipy.special import ndtr  # 0.1 s to import; only a tuning process needs it

        plan, mean = self.plan, self._mean
        pair = np.array([self.spread.get(size, _UNKNOWN_SPREAD) for size in self.weights])
        share = Decision(
            blocks=blocks, error_share=error_share(0), look_shares=CONFIRMATION_SHARES
        ).shares[-1]
        level = corrected_level(1 - (1 - plan.level) * share, len(self.weights))
        error, reach = predict_interval(blocks, level)
        needed = math.log1p(plan.minimum_gain) + reach * pair + SITTING_ALLOWANCE * mean
        chance = ndtr((mean - needed) / np.hypot(self._error, error * pair))
        worth = chance * np.maximum(0.0, mean - self._error)
        worth *= np.array(list(self.weights.values()))
        return np.asarray(np.nan_to_num(worth))

    # Worked out once: there may be thousands of configurations.
    @cached_property
    def _mean(self) -> _Table:
        return self._of([standing.mean for standing in self.standings], 0.0)

    @cached_property
    def _error(self) -> _Table:
        return self._of([standing.error for standing in self.standings], 1.0)

    def _of(self, rows: Sequence[Mapping[int, float]], unknown: float) -> _Table:
        return np.array([[row.get(size, unknown) for size in self.weights] for row in rows])


def lower_end(standing: Standing, size: int) -> float:
    """What a configuration surely gains at a size (bytes), one standard error off."""
    return standing.mean.get(size, -math.inf) - standing.error.get(size, 1.0)


def name_winners(
    members: Mapping[Configuration, Standing], sizes: Sequence[int]
) -> dict[int, Configuration]:
    """By size (bytes), the candidate that surely gains most there."""
    return {size: max(members, key=lambda one: lower_end(members[one], size)) for size in sizes}


def share_sizes(
    members: Mapping[Configuration, Standing], sizes: Sequence[int], tolerance: float
) -> dict[Configuration, tuple[int, ...]]:
    """The sizes (bytes) at which each candidate is to be confirmed; one without any is left out.

    Each size has the one that surely gains most there. Beside it all sizes have the one that
    gains most altogether, if it seems to do no harm: it may be the one environment for all.
    """
    if not members:
        return {}
    best = name_winners(members, sizes)
    harmless = [
        one
        for one, found in members.items()
        if all(found.mean.get(size, -math.inf) >= math.log1p(-tolerance) for size in sizes)
    ]
    whole = max(harmless, key=lambda one: sum(members[one].mean.values()), default=None)
    shares = {
        one: tuple(size for size in sizes if one == whole or best[size] == one) for one in members
    }
    return {one: mine for one, mine in shares.items() if mine}
