"""Intervals, verdicts and points of evidence: the results of a confirmation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Confidence level of all statements together, unless a campaign has another one.
LEVEL = 0.95
#: With fewer pairs than this a verdict is inconclusive, however well they agree.
FEWEST_PAIRS = 5
#: The fewest planned blocks: two more than pairs needed, as some give no pair in a state.
FEWEST_BLOCKS = FEWEST_PAIRS + 2
#: Fewer pairs may have met no rare disturbance. So they state no minimum detectable effect, and a
#: single slow run is named (docs/method.md).
FEW_PAIRS = 20
#: The standard deviation of a speedup between sessions, as a share of its logarithm, where it was
#: not measured: that of 11 profiles on a virtual machine, hours later (docs/measurements.md).
SESSION_SPREAD = 0.2
#: What begins later than this after other runs is a session of its own, seconds.
SESSION_APART_S = 3600.0


class Verdict(StrEnum):
    """The verdict of a confirmation on a size, or on a size range.

    Two are of profiles only: ``LIKELY``, a speedup that is probable, and is not claimed; and
    ``WITHDRAWN``, if the last verification found it gone, or worse than the default.
    """

    FASTER = "faster"
    LIKELY = "likely"
    DEFAULT = "default"
    UNDECIDED = "undecided"
    WITHDRAWN = "withdrawn"


class Estimand(StrEnum):
    """The quantity of a configuration's runs that speedups are about.

    ``MEDIAN`` and ``MEAN`` are of the medians of runs; ``P95`` is typical of the 95th percentiles
    of runs, that is, of what 19 in 20 operations of a run stay below.
    """

    MEDIAN = "median"
    MEAN = "mean"
    P95 = "p95"


@dataclass(frozen=True)
class Interval:
    """A ratio default/candidate with its confidence interval; above 1 the candidate is faster."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def is_too_noisy(self) -> bool:
        """Whether the upper end is more than ten times the square of the lower end.

        Such an interval comes from runs that measured disturbances, whose shape is unknown, so its
        lower end shows nothing either. One below 1 shows that the candidate is slower.
        """
        return self.high > 1 and self.high > 10 * self.low * max(1.0, self.low)


@dataclass(frozen=True)
class Tail:
    """What stands beside the typical speedup at one size: mean times, and slow runs.

    Ratios are default/candidate, over all pairs of runs, slow or not, in any machine state.

    Attributes:
        slow_runs, default_slow_runs: numbers of slow runs of the candidate and of the default.
        mean_ratio, mean_low, mean_high: ratio of mean times with its interval, which is a 95 % one
            by itself, as far as these pairs met slow runs.
        p95_ratio: ratio of 95th percentiles, which has no interval.
    """

    bytes: int
    pairs: int
    slow_runs: int
    default_slow_runs: int
    mean_ratio: float
    mean_low: float
    mean_high: float
    p95_ratio: float

    @property
    def mean(self) -> Interval:
        """The ratio of mean times."""
        return Interval(self.mean_ratio, self.mean_low, self.mean_high, self.pairs)


@dataclass(frozen=True)
class PointEvidence:
    """The evidence at one size, in one machine state or over all.

    Attributes:
        speed: the machine state that the pairs share (``fast``, ``middle``, ``slow``), or ``all``.
        default_s, tuned_s: median (or mean, if the ratio is of means) of run medians over the
            pairs, each side by itself, seconds. Beside the ratio, show ``candidate_s`` instead of
            the second.
        share: share of the pairs of this size that were in this state, 0 to 1.
    """

    operation: str
    bytes: int
    speed: str
    default_s: float
    tuned_s: float
    gain: Interval
    verdict: Verdict
    share: float = 1.0

    @property
    def is_slower(self) -> bool:
        """Whether the candidate was shown to be slower than the default."""
        return self.gain.pairs >= FEWEST_PAIRS and self.gain.high < 1

    @property
    def candidate_s(self) -> float:
        """The candidate's time to show beside ``default_s``, in seconds.

        Speedups compare runs within a machine state, medians mix states. If the ratio of medians
        is outside of the interval, this is the default's time divided by the speedup.
        """
        gain = self.gain
        if not self.tuned_s or gain.low <= self.default_s / self.tuned_s <= gain.high:
            return self.tuned_s
        return self.default_s / gain.ratio
