"""The effects of changes of a configuration: ratios of times by size, with their intervals.

Names are those of the stored JSON. Sizes are bytes, ratios default/candidate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from commtune.model.evidence import Interval


@dataclass(frozen=True, kw_only=True)
class SizeEffect:
    """A ratio of times at one size and machine state.

    Attributes:
        more_pairs: about how many more pairs would decide it; ``None`` if that can't be told.
    """

    bytes: int
    speed: str = "all"
    ratio: float = math.nan
    low: float = 0.0
    high: float = math.inf
    pairs: int = 0
    more_pairs: int | None = None

    @property
    def gain(self) -> Interval:
        return Interval(self.ratio, self.low, self.high, self.pairs)


def select_known(points: Sequence[SizeEffect]) -> tuple[SizeEffect, ...]:
    """Returns the points with more than one pair, and so an interval, in order of size.

    Those whose ratio isn't in their interval were damaged.
    """
    found = (
        point
        for point in points
        if point.pairs > 1 and 0 <= point.low <= point.ratio <= point.high and point.ratio > 0
    )
    return tuple(sorted(found, key=lambda point: (point.bytes, point.speed)))


@dataclass(frozen=True)
class _Span:
    """Neighbouring sizes from ``low`` to ``high`` bytes, and the ratios between them."""

    low: int
    high: int
    speed: str
    least: float
    most: float


@dataclass(frozen=True)
class VariableEffect:
    """The effect of leaving out a parameter of a configuration.

    Attributes:
        names: the variables that it sets, with their values in ``values``.
        kept: whether it stayed in the configuration.
        points: ratios of the times without and with it (above 1 it helps); simultaneous 95 % CI.
        name: the parameter's name in the space.
    """

    names: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    kept: bool = False
    points: tuple[SizeEffect, ...] = ()
    name: str = ""

    @property
    def effects(self) -> tuple[SizeEffect, ...]:
        """The points that have an interval, by size."""
        return select_known(self.points)

    @property
    def label(self) -> str:
        """The variables with their values, for people."""
        settings = [f"{name}={self.values[name]}" for name in self.names if name in self.values]
        return " ".join(settings) or ", ".join(self.names)

    @property
    def helps(self) -> tuple[_Span, ...]:
        """The sizes at which the whole interval is above 1."""
        return _join_sizes(self.effects, lambda point: point.low > 1)

    @property
    def hurts(self) -> tuple[_Span, ...]:
        """The sizes at which the whole interval is below 1."""
        return _join_sizes(self.effects, lambda point: point.high < 1)


def _join_sizes(
    effects: Sequence[SizeEffect], wanted: Callable[[SizeEffect], bool]
) -> tuple[_Span, ...]:
    """Joins neighbouring measured sizes with wanted intervals, in each machine state."""
    found = []
    for speed in dict.fromkeys(effect.speed for effect in effects):
        here = [effect for effect in effects if effect.speed == speed]
        for is_wanted, group in groupby(here, key=wanted):
            if is_wanted:
                sizes = list(group)
                ratios = [effect.ratio for effect in sizes]
                ends = sizes[0].bytes, sizes[-1].bytes
                found.append(_Span(*ends, speed, min(ratios), max(ratios)))
    return tuple(found)
