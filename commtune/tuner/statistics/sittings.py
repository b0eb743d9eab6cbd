"""How much a gain differs from one sitting to the next, beyond the noise of its pairs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from commtune.model import FEWEST_PAIRS
from commtune.tuner.statistics.intervals import SITTING_SPREAD, Estimate

#: Fewer sittings than this say nothing of their spread; and as many more are taken to have had the
#: usual one, since five know it badly.
_FEWEST_SITTINGS = 5
#: Smaller gains (logarithms) don't tell what share of them differs.
_LEAST_GAIN = math.log(1.1)


@dataclass(frozen=True)
class SittingSpread:
    """A standard deviation between sittings.

    Attributes:
        share: of the logarithm of a gain.
        sittings: in how many it was measured; 0 where it is assumed.
    """

    share: float = SITTING_SPREAD
    sittings: int = 0

    def __str__(self) -> str:
        basis = f"measured in {self.sittings} verifications"
        if not self.sittings:
            basis = f"assumed: it takes {_FEWEST_SITTINGS} verifications to measure it"
        return f"{100 * self.share:.2g} % of a speedup's logarithm ({basis})"


def measure_spread(sittings: Sequence[Mapping[int, Estimate | None]]) -> SittingSpread:
    """Measures it from gains of one configuration, measured again and again, by size in bytes."""
    by_size: defaultdict[int, list[Estimate]] = defaultdict(list)
    for sitting in sittings:
        for size, found in sitting.items():
            if found is not None and found.pairs >= FEWEST_PAIRS:
                by_size[size].append(found)
    told = [_squared_share(of) for of in by_size.values() if _tells(of)]
    if not told:
        return SittingSpread()
    count = len(sittings)
    usual = _FEWEST_SITTINGS * SITTING_SPREAD**2
    share = math.sqrt((usual + count * max(0.0, fmean(told))) / (_FEWEST_SITTINGS + count))
    return SittingSpread(share, count)


def _tells(found: Sequence[Estimate]) -> bool:
    enough = len(found) >= _FEWEST_SITTINGS
    return enough and abs(fmean(one.mean for one in found)) >= _LEAST_GAIN


def _squared_share(found: Sequence[Estimate]) -> float:
    """By moments: what means differ by, less what their own errors explain; may be below 0."""
    beyond = variance(one.mean for one in found) - fmean(one.error**2 for one in found)
    return beyond / fmean(one.mean for one in found) ** 2
