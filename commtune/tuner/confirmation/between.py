"""Sizes between those of the search, at which candidates are confirmed as well.

A profile is used at all sizes of its range, and a program's sizes are no powers of two. So where
the winner seems to change from one size to the next, the border is bisected; and inside of each
range that is likely to be claimed, a size that is no power of two is measured, and one that is an
element more than one. All of them are chosen before the first block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration
from commtune.tuner.confirmation.portfolio import lower_end, name_winners
from commtune.tuner.search.standings import Standing

#: What they may add to the wall time of a run, and to the number of sizes. Each is one more
#: statement, and so makes the intervals of all a little wider.
_MOST_TIME, _MOST_SIZES = 0.15, 0.75
#: A border between sizes that are further apart than this factor is bisected again.
_NEAR = 2.0
#: Short operations are timed several at once, for about so long.
_LEAST_SAMPLE_S = 1e-5

Shares = Mapping[Configuration, tuple[int, ...]]


@dataclass(frozen=True)
class SizesBetween:
    """Chooses sizes between those of a plan, all in bytes.

    Attributes:
        members: candidates, with what the search knows of them.
        default_s: seconds of the default by size, in the slowest machine state.
        run_s: wall seconds of a run.
    """

    plan: Plan
    members: Mapping[Configuration, Standing]
    default_s: Mapping[int, float]
    run_s: float

    def add_to(self, shares: Shares) -> dict[Configuration, tuple[int, ...]]:
        """The sizes that candidates are for, with those between them.

        Each of these goes to the winners on both of its sides, and to a candidate for all sizes.
        """
        if not self.members:
            return {}
        sizes = sorted(self.plan.workload.sizes)
        whole = {one for one, mine in shares.items() if len(mine) == len(sizes)}
        found = {one: set(mine) for one, mine in shares.items()}
        winners = self._winners(sizes)
        for size in self._affordable(list(self._wanted(sizes, winners)), len(sizes)):
            above = next(place for place, known in enumerate(sizes) if known > size)
            for one in {winners[above - 1], winners[above], *whole} - {DEFAULT}:
                found[one].add(size)
        return {one: tuple(sorted(mine)) for one, mine in found.items()}

    def time_of(self, shares: Shares) -> float:
        """Seconds that the sizes between, of those that candidates are for, add to a run."""
        every = {size for mine in shares.values() for size in mine}
        return math.fsum(map(self._time_s, sorted(every - {*self.plan.workload.sizes})))

    def _time_s(self, size: int) -> float:
        """About the seconds that measuring a size takes: what the next larger one does."""
        timing = self.plan.timing
        next_larger = min((known for known in self.default_s if known >= size), default=0)
        slowest_s = self.default_s.get(next_larger, timing.time_cap_s / timing.min_samples)
        sample_s = max(_LEAST_SAMPLE_S, slowest_s * max(1, timing.operations))
        enough_s = min(timing.time_cap_s, timing.max_samples * sample_s)
        return max(timing.min_samples * sample_s, enough_s)

    def _winners(self, sizes: Sequence[int]) -> list[Configuration]:
        """By size: the candidate that is for it, or the default where it promises no gain."""
        least = math.log1p(self.plan.minimum_gain)
        best = name_winners(self.members, sizes)
        return [
            best[size] if lower_end(self.members[best[size]], size) > least else DEFAULT
            for size in sizes
        ]

    def _wanted(self, sizes: Sequence[int], winners: Sequence[Configuration]) -> Iterator[int]:
        """Sizes that are worth measuring; those first without which least is known."""
        both = zip(sizes, winners, strict=True)
        groups = [(winner, list(group)) for winner, group in groupby(both, key=lambda one: one[1])]
        ranges = [
            [size for size, _ in group]
            for winner, group in groups
            if len(group) > 1 and not winner.is_default
        ]
        borders = [(one[-1][0], other[0][0]) for (_, one), (_, other) in pairwise(groups)]
        bisected = [self._bisect(*border) for border in borders]
        yield from (self._odd_size(inside) for inside in ranges)
        yield from (steps[0] for steps in bisected if steps)
        yield from (self._one_more(inside) for inside in ranges)
        yield from (size for steps in bisected for size in steps[1:])

    def _odd_size(self, inside: Sequence[int]) -> int:
        """In the middle of a range, what is no power of two."""
        middle = (len(inside) - 1) // 2
        low, high = inside[middle : middle + 2]
        half = self._halve(low, high)
        larger = half * 3 // 2
        return larger if _is_power_of_two(half) and larger < high else half

    def _one_more(self, inside: Sequence[int]) -> int:
        """One element more than the last size but one of a range, where most is to gain."""
        low, high = inside[-2:]
        more = low + self.plan.workload.bytes_of_one_more
        return more if more < high else low

    def _bisect(self, low: int, high: int) -> list[int]:
        """Sizes that halve what lies between two, until they are near each other."""
        half = self._halve(low, high)
        if half == low:
            return []
        parts = [part for part in ((low, half), (half, high)) if part[1] > _NEAR * part[0]]
        return [half, *(size for part in parts for size in self._bisect(*part))]

    def _halve(self, low: int, high: int) -> int:
        """About the geometric mean of two sizes, as round as can be; the lower one if there is
        none between them."""
        mean = math.sqrt(low * high)
        step = self.plan.workload.bytes_of_one_more
        for digits in range(1, 30):
            unit = 2.0 ** (math.floor(math.log2(mean)) - digits)
            found = round(mean / unit) * unit
            found -= found % step
            if low < found < high:
                return int(found)
            if unit < 1:
                break
        return low

    def _affordable(self, wanted: Sequence[int], sizes: int) -> list[int]:
        """The first of some sizes, as many as a run has time for."""
        found: list[int] = []
        left_s = _MOST_TIME * self.run_s
        for size in dict.fromkeys(wanted):
            if size in self.plan.workload.sizes or len(found) >= _MOST_SIZES * sizes:
                continue
            if (time_s := self._time_s(size)) <= left_s:
                left_s -= time_s
                found.append(size)
        return found


def _is_power_of_two(size: int) -> bool:
    return size & (size - 1) == 0
