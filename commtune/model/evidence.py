"""What was confirmed, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Fewer pairs than this are never believed, however well they agree.
FEWEST_PAIRS = 5


class Verdict(StrEnum):
    """What confirmation says of a size, or of a size range.

    ``LIKELY`` is only of profiles: their speedup is probable, and nothing is claimed of it.
    """

    FASTER = "faster"
    LIKELY = "likely"
    DEFAULT = "default"
    UNDECIDED = "undecided"


class Estimand(StrEnum):
    """What of a configuration's runs a speedup is about."""

    MEDIAN = "median"
    MEAN = "mean"


@dataclass(frozen=True)
class Interval:
    """A ratio default/candidate with its confidence interval; above 1 the candidate is faster."""

    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def is_too_noisy(self) -> bool:
        """Whether it is so wide, beside what it shows at the least, that its numbers say nothing.

        The runs behind such a one measured disturbances, whose shape nobody knows. So its lower
        end is as doubtful as its upper one. One below 1 says that the candidate is slower.
        """
        return self.high > 1 and self.high > 10 * self.low * max(1.0, self.low)


@dataclass(frozen=True)
class PointEvidence:
    """What confirmation says of one size, in one machine state.

    Attributes:
        speed: name of the machine state that the pairs share (``fast``, ``slow`` or ``all``).
        default_s, tuned_s: median (or mean, if the ratio is of means) of run medians over the
            pairs, each by itself: to show both beside the ratio, take ``candidate_s`` for the
            second.
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

        The speedup compares runs of one machine state with each other, medians mix states. Where
        the medians say something else than the interval, it is what the ratio makes of the
        default's.
        """
        gain = self.gain
        if not self.tuned_s or gain.low <= self.default_s / self.tuned_s <= gain.high:
            return self.tuned_s
        return self.default_s / gain.ratio
