"""Chooses sizes between those of the search, at which candidates are confirmed as well.

A profile is used at all sizes of its range, and most sizes of programs are no powers of two. So
where the winner seems to change between two sizes, sizes between them are confirmed; and inside
each range with a likely speedup, a size that is no power of two, and one that is an element more
than a measured size. All are chosen before the first block (decision 17).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration
from commtune.tuner.confirmation.portfolio import find_winners
from commtune.tuner.search.standings import Standing

#: The most that they may add to the wall time of a run, and to the number of sizes, as shares.
#: Each adds a statement, which makes all intervals a little wider.
_MOST_TIME, _MOST_SIZES = 0.15, 0.75
#: Sizes on both sides of a border are bisected until they are within this factor.
_NEAR_RATIO = 2.0
#: The seconds that a sample takes at least, since short operations are timed in batches.
_LEAST_SAMPLE_S = 1e-5

SizeShares = Mapping[Configuration, tuple[int, ...]]


@dataclass(frozen=True)
class SizesBetween:
    """Chooses sizes between those of a plan, all in bytes.

    Attributes:
        members: candidates, with their estimates from the search.
        default_s: seconds of the default by size, in the slowest machine state.
        run_s: wall seconds of a run.
    """

    plan: Plan
    members: Mapping[Configuration, Standing]
    default_s: Mapping[int, float]
    run_s: float

    def add_to(self, shares: SizeShares) -> dict[Configuration, tuple[int, ...]]:
        """Adds sizes between to the sizes of each candidate.

        Each goes to the winners on both sides of it, and to a candidate for all sizes.
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

    def time_of(self, shares: SizeShares) -> float:
        """Returns the seconds that sizes between, as added to candidates, add to a run."""
        every = {size for mine in shares.values() for size in mine}
        return math.fsum(map(self._time_s, sorted(every - {*self.plan.workload.sizes})))

    def _time_s(self, size: int) -> float:
        """Estimates the seconds that measuring a size takes, from the next larger known size."""
        timing = self.plan.timing
        next_larger = min((known for known in self.default_s if known >= size), default=0)
        slowest_s = self.default_s.get(next_larger, timing.time_cap_s / timing.min_samples)
        sample_s = max(_LEAST_SAMPLE_S, slowest_s * max(1, timing.operations))
        enough_s = min(timing.time_cap_s, timing.max_samples * sample_s)
        return max(timing.min_samples * sample_s, enough_s)

    def _winners(self, sizes: Sequence[int]) -> list[Configuration]:
        """Lists by size the expected winner, or the default where it promises no gain."""
        least = math.log1p(self.plan.minimum_gain)
        best = find_winners(self.members, sizes)
        return [
            best[size] if self.members[best[size]].lower_end(size) > least else DEFAULT
            for size in sizes
        ]

    def _wanted(self, sizes: Sequence[int], winners: Sequence[Configuration]) -> Iterator[int]:
        """Yields sizes that are worth measuring, the most informative first."""
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
        yield from (self._add_element(inside) for inside in ranges)
        yield from (size for steps in bisected for size in steps[1:])

    def _odd_size(self, inside: Sequence[int]) -> int:
        """Returns a size in the middle of a range that is no power of two."""
        middle = (len(inside) - 1) // 2
        low, high = inside[middle : middle + 2]
        half = self._halve(low, high)
        larger = half * 3 // 2
        return larger if half.bit_count() == 1 and larger < high else half

    def _add_element(self, inside: Sequence[int]) -> int:
        """Returns one element more than the last size but one of a range, where most is gained."""
        low, high = inside[-2:]
        more = low + self.plan.workload.bytes_of_one_more
        return more if more < high else low

    def _bisect(self, low: int, high: int) -> list[int]:
        """Lists sizes that bisect the interval between two, until neighbours are near."""
        half = self._halve(low, high)
        if half == low:
            return []
        parts = [part for part in ((low, half), (half, high)) if part[1] > _NEAR_RATIO * part[0]]
        return [half, *(size for part in parts for size in self._bisect(*part))]

    def _halve(self, low: int, high: int) -> int:
        """Returns about the geometric mean of two sizes, as round as possible; the lower one if
        there is no size between them."""
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
        """Selects the first of some sizes, as many as the limits on time and number allow."""
        found: list[int] = []
        left_s = _MOST_TIME * self.run_s
        for size in dict.fromkeys(wanted):
            if size in self.plan.workload.sizes or len(found) >= _MOST_SIZES * sizes:
                continue
            if (time_s := self._time_s(size)) <= left_s:
                left_s -= time_s
                found.append(size)
        return found
