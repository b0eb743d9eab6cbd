"""Chooses the portfolio: the few configurations that together promise the best table.

Each size is assigned a candidate beforehand, the only one to be confirmed there, so the error rate
is shared by sizes, not by sizes times candidates. Each further candidate costs a run in every
block, and so pairs for all. Candidates are added greedily by their expected confirmed gain, which
follows from estimates, their errors, and the pairs that the budget holds (decision 15).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commtune.campaign.plan import Plan
from commtune.model import FEWEST_BLOCKS, FEWEST_PAIRS, Configuration
from commtune.model.conclusion import CONFIRMATION_SHARES, Decision, error_share
from commtune.tuner.search.standings import Speedups, Standing
from commtune.tuner.statistics.intervals import (
    corrected_level,
    session_half_width,
    t_quantile,
)

_MOST_CANDIDATES = 6
#: The share that a further candidate has to add to the sum over sizes. Not more: 4x at large
#: sizes outweighs 1.4x at all sizes in the middle.
_WORTH_A_RUN = 0.03
#: The same for a candidate that would leave no time for ablation.
_WORTH_ABLATION = 0.1
#: A further candidate counts at sizes where it is ahead by this many standard errors, since of
#: many equal ones one is ahead by luck. With 1.0, replayed campaigns found 1 % less; with 0,
#: equal candidates took the time of ablation from each other.
_AHEAD_ERRORS = 0.5
#: Log speedups that differ by less count as equal.
_EQUAL_WITHIN = 0.01
#: Of the runs after the search, ablation may have this share or, if that is more, all but those
#: with which confirmation is expected to show this share of what it would show with all runs. The
#: confirmation keeps so many times the fewest blocks, which by themselves show large gains only.
_ABLATION_SHARE, _ENOUGH, _CONFIRMED = 0.4, 0.98, 2
#: The growth of the number of blocks in the search for how many are enough.
_BLOCKS_GROWTH = 1.1
#: Blocks for each variable without which ablation gets no time: with four it begins to judge. With
#: 8, more variables stayed unproven and replayed campaigns found no more.
_ABLATION_BLOCKS = 5
#: The spread of runs (logarithm): its lower limit, and its value where fewer than this many
#: residuals are known.
_LEAST_SPREAD, _UNKNOWN_SPREAD = 0.005, 0.1
_FEWEST_RESIDUALS = 4

_Table = NDArray[np.float64]
_EVERY = slice(None)


def measure_pair_noise(
    runs: Sequence[tuple[Configuration, Speedups]], sizes: Sequence[int]
) -> dict[int, float]:
    """Estimates the standard deviation of a pair's log ratio by size (bytes).

    From repeated runs of the search, as residuals from their configuration's mean. Residuals are
    clipped at four times their median, much as the interval winsorizes pairs.
    """
    made: dict[Configuration, int] = {}
    which = np.array([made.setdefault(one, len(made)) for one, _ in runs])
    found = {}
    for size, column in zip(sizes, np.transpose([row for _, row in runs]), strict=bool(runs)):
        known = ~np.isnan(column)
        values, of = column[known], which[known]
        counts = np.bincount(of, minlength=len(made))[of]
        off = values - np.bincount(of, values, len(made))[of] / counts
        several = counts > 1  # of thousands of configurations, most ran once
        if several.any():
            off = np.abs(off[several]) * np.sqrt(1 + 1 / (counts[several] - 1))
            near = np.minimum(off, 4 * np.median(off))
            is_known = len(near) >= _FEWEST_RESIDUALS
            spread = math.sqrt((near**2).mean()) if is_known else _UNKNOWN_SPREAD
            found[size] = math.sqrt(2) * max(_LEAST_SPREAD, spread)
    return found


@dataclass(frozen=True)
class Prospects:
    """The expected results of confirmation, from the estimates of the search.

    Attributes:
        weights: of all sizes (bytes) of the campaign.
        spread: standard deviation of a pair's log ratio by size.
    """

    plan: Plan
    standings: Sequence[Standing]
    weights: Mapping[int, float]
    spread: Mapping[int, float]

    def choose(self, runs: int) -> tuple[list[Standing], int]:
        """Chooses candidates for an ablation and a confirmation of a number of runs together.

        If nothing promises a gain, the one that comes closest, to state how little it gains.
        Returns also how many of the runs ablation may have.
        """
        if not self.standings:
            return [], 0
        closest = [int(np.argmax((self._mean - self._error).max(axis=1)))]
        chosen = self._best(runs)[1] or closest
        ablation_runs = self.count_ablation_runs(chosen, runs)
        return [self.standings[index] for index in chosen], ablation_runs

    def choose_further(self, count: int, runs: int) -> list[Standing]:
        """Returns those after the first ``count`` standings that are worth confirming as well.

        Args:
            runs: what is left for the confirmation.
        """
        chosen = list(range(count))
        expected = self._expect_sum(chosen, runs // (count + 1))
        while len(chosen) < min(_MOST_CANDIDATES, len(self.standings)):
            blocks = runs // (len(chosen) + 2)
            if blocks < FEWEST_BLOCKS:
                break
            worth = self._estimate_worth(blocks)
            sums = np.maximum(worth, worth[chosen].max(axis=0)).sum(axis=1)
            best = int(np.argmax(sums))  # none that is chosen: those add nothing
            if sums[best] <= (1 + _WORTH_A_RUN) * expected:
                break
            chosen.append(best)
            expected = sums[best]
        return [self.standings[n] for n in chosen[count:]]

    def _best(self, runs: int) -> tuple[float, list[int]]:
        """Returns the largest sum that ``runs`` may confirm, and its standings by index."""
        best: tuple[float, list[int]] = (0.0, [])
        for count in range(1, _MOST_CANDIDATES + 1):
            blocks = runs // (count + 1)
            if count > 1 and blocks < FEWEST_BLOCKS:
                break
            found = self._choose_greedily(self._estimate_worth(max(blocks, FEWEST_PAIRS)), count)
            had_ablation, has_ablation = (
                self.count_ablation_runs(chosen, runs) > 0 for _, chosen in (best, found)
            )
            least = _WORTH_ABLATION if had_ablation > has_ablation else _WORTH_A_RUN
            best = found if found[0] > (1 + least) * best[0] else best
        return best

    def count_ablation_runs(
        self, chosen: Sequence[int], runs: int, *, of_each: bool = True
    ) -> int:
        """Counts the runs that ablation may have; 0 if too few to leave out each variable.

        Args:
            of_each: whether they have to be enough for each candidate, not for any.
        """
        width = len(chosen) + 1
        share = min(int(_ABLATION_SHARE * runs), runs - _CONFIRMED * FEWEST_BLOCKS * width)
        spare = runs - self._count_enough_blocks(chosen, runs // width) * width
        wholes = (self.standings[index].configuration for index in chosen)
        units = (len(self.plan.space.parameter_units(whole)) for whole in wholes)
        arms = [1 + count for count in units if count > 1]
        least = _ABLATION_BLOCKS * (1 + (sum(arms) if of_each else min(arms, default=0)))
        found = max(0, share, spare)
        return found if found >= least else 0

    def _count_enough_blocks(self, chosen: Sequence[int], most: int) -> int:
        """Counts the blocks with which confirmation shows nearly what it would with the most.

        If it is expected to show nothing, all: they say how little there is.
        """
        expected = self._expect_sum(chosen, most)
        if not expected:
            return most
        blocks = _CONFIRMED * FEWEST_BLOCKS
        while blocks < most and self._expect_sum(chosen, blocks) < _ENOUGH * expected:
            blocks = math.ceil(_BLOCKS_GROWTH * blocks)
        return min(blocks, most)

    def _expect_sum(self, chosen: Sequence[int], blocks: int) -> float:
        """Returns the sum over sizes that some standings are expected to confirm."""
        worth = self._estimate_worth(max(blocks, FEWEST_PAIRS), list(chosen))
        return float(worth.max(axis=0, initial=0.0).sum())

    def _choose_greedily(self, worth: _Table, count: int) -> tuple[float, list[int]]:
        """Chooses ``count`` rows one after the other by what each adds to the sum of maxima.

        A further one counts only at sizes where it is ahead of the others beyond their errors.

        Returns:
            The sum over sizes, and the indices of the rows.
        """
        covered = np.zeros(worth.shape[1])
        mean, error = np.full_like(covered, -np.inf), np.zeros_like(covered)
        chosen: list[int] = []
        for _ in range(count):
            is_ahead = self._mean - mean > _AHEAD_ERRORS * np.hypot(self._error, error)
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
        """Finds the smallest part of a configuration that is not behind it at some sizes."""
        behind = self._mean[index] - self._mean
        doubt = np.maximum(
            _EQUAL_WITHIN, _AHEAD_ERRORS * np.hypot(self._error[index], self._error)
        )
        is_alike = (behind <= doubt)[:, sizes].all(axis=1)
        whole = self.standings[index].configuration.items()
        parts = [
            n
            for n in np.flatnonzero(is_alike).tolist()
            if self.standings[n].configuration.items() <= whole
        ]
        return min(parts, key=lambda n: (len(self.standings[n].configuration), behind[n].sum()))

    def _estimate_worth(self, blocks: int, rows: list[int] | slice = _EVERY) -> _Table:
        """Returns configurations x sizes: lower end of the gain, times the power to confirm it."""
        from scipy.special import ndtr  # 0.1 s to import; only a tuning process needs it

        plan, mean, doubt = self.plan, self._mean[rows], self._error[rows]
        pair = np.array([self.spread.get(size, _UNKNOWN_SPREAD) for size in self.weights])
        share = Decision(
            blocks=blocks, error_share=error_share(0), look_shares=CONFIRMATION_SHARES
        ).shares[-1]
        level = corrected_level(1 - (1 - plan.level) * share, len(self.weights))
        # Standard error and half width of an interval, in standard deviations of a pair.
        error = 1 / math.sqrt(blocks)
        reach = error * t_quantile((1 + level) / 2, blocks - 1)
        between = session_half_width(plan.session_spread) * mean
        needed = math.log1p(plan.minimum_gain) + np.hypot(reach * pair, between)
        chance = ndtr((mean - needed) / np.hypot(doubt, error * pair))
        worth = chance * np.maximum(0.0, mean - doubt)
        worth *= np.array(list(self.weights.values()))
        return np.asarray(np.nan_to_num(worth))

    # Cached, since there may be thousands of configurations.
    @cached_property
    def _mean(self) -> _Table:
        return np.array([[one.mean[size] for size in self.weights] for one in self.standings])

    @cached_property
    def _error(self) -> _Table:
        return np.array([[one.error[size] for size in self.weights] for one in self.standings])


def find_winners(
    members: Mapping[Configuration, Standing], sizes: Sequence[int]
) -> dict[int, Configuration]:
    """Finds by size (bytes) the candidate with the highest lower end."""
    return {size: max(members, key=lambda one: members[one].lower_end(size)) for size in sizes}


def assign_sizes(
    members: Mapping[Configuration, Standing], sizes: Sequence[int], tolerance: float
) -> dict[Configuration, tuple[int, ...]]:
    """Assigns the sizes (bytes) at which each candidate is confirmed; drops those without any.

    Each size goes to the candidate with the highest lower end there. All sizes go also to the one
    with the largest mean gain of those that seem nowhere slower beyond the tolerance: it may be
    the one environment for all sizes.
    """
    if not members:
        return {}
    best = find_winners(members, sizes)
    harmless = [
        one
        for one, found in members.items()
        if all(found.mean[size] >= math.log1p(-tolerance) for size in sizes)
    ]
    whole = max(harmless, key=lambda one: sum(members[one].mean.values()), default=None)
    shares = {
        one: tuple(size for size in sizes if one == whole or best[size] == one) for one in members
    }
    return {one: mine for one, mine in shares.items() if mine}
