"""Estimates the variation of speedups between sessions, beyond the noise of their pairs.

A variance component by the method of moments, over the profiles of a system.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, variance

from commtune.formatting import format_count
from commtune.model import FEWEST_PAIRS, SESSION_APART_S, SESSION_SPREAD
from commtune.tuner.statistics.intervals import Estimate

#: The assumed spread counts as that of this many sessions: a few estimate a variance poorly.
_ASSUMED_SESSIONS = 5
#: The largest spread that is stated. With 0.51 and more, no speedup can be shown.
_LARGEST = 0.5
#: Smaller log gains are left out: the spread is a share of the gain.
_LEAST_GAIN = math.log(1.1)


@dataclass(frozen=True)
class MeasuredSession:
    """A session that measured a profile.

    Attributes:
        began_at: seconds since 1970.
        estimates: of the speedup, by size in bytes.
    """

    began_at: float
    estimates: Mapping[int, Estimate | None]


@dataclass(frozen=True)
class SessionSpread:
    """The standard deviation of speedups between sessions.

    Attributes:
        share: of a speedup's logarithm.
        sessions: number of later sessions that it was estimated from; 0 where it is assumed.
    """

    share: float = SESSION_SPREAD
    sessions: int = 0

    def __str__(self) -> str:
        basis = f"measured in {format_count(self.sessions, 'later session')}"
        if not self.sessions:
            basis = "assumed: no profile of this system was verified an hour or more later"
        return f"{100 * self.share:.2g} % of a speedup's logarithm ({basis})"

    @property
    def allowance(self) -> str:
        """What intervals allow for, as a sentence."""
        return f"between sessions intervals allow for {self}"


def measure_spread(profiles: Sequence[Sequence[MeasuredSession]]) -> SessionSpread:
    """Estimates the spread from the sessions of each profile, oldest first."""
    found: list[float] = []
    begun: list[float] = []
    for sessions in map(_leave_apart, profiles):
        if shares := _squared_shares(sessions):
            found.append(fmean(shares))
            begun += [one.began_at for one in sessions[1:]]
    if not found:
        return SessionSpread()
    # Profiles that were verified in one session don't make several.
    count = 1 + sum(b - a > SESSION_APART_S for a, b in pairwise(sorted(begun)))
    total = _ASSUMED_SESSIONS * SESSION_SPREAD**2 + count * max(0.0, fmean(found))
    share = math.sqrt(total / (_ASSUMED_SESSIONS + count))
    return SessionSpread(min(_LARGEST, share), count)


def _leave_apart(sessions: Sequence[MeasuredSession]) -> list[MeasuredSession]:
    """Returns the sessions without those that began soon after another."""
    kept: list[MeasuredSession] = []
    for one in sessions:
        if not kept or one.began_at - kept[-1].began_at > SESSION_APART_S:
            kept.append(one)
    return kept


def _squared_shares(sessions: Sequence[MeasuredSession]) -> list[float]:
    """Estimates the squared share at each size with two estimates of a speedup; maybe < 0.

    It is the variance of their means less that of their errors.
    """
    by_size: defaultdict[int, list[Estimate]] = defaultdict(list)
    for one in sessions:
        for size, found in one.estimates.items():
            if found is not None and found.pairs >= FEWEST_PAIRS:
                by_size[size].append(found)
    shares = []
    for estimates in by_size.values():
        mean = fmean(one.mean for one in estimates)
        if len(estimates) > 1 and abs(mean) >= _LEAST_GAIN:
            errors = fmean(one.error**2 for one in estimates)
            shares.append((variance(one.mean for one in estimates) - errors) / mean**2)
    return shares
