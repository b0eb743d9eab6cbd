"""What was confirmed, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from commtune.model.configuration import Configuration


class Verdict(StrEnum):
    """What confirmation says of a size, or of a size range."""

    FASTER = "faster"
    DEFAULT = "default"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Interval:
    """A ratio default/candidate with its confidence interval; above 1 the candidate is faster."""

    ratio: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class PointEvidence:
    """What confirmation says of one size, in one machine state.

    Attributes:
        speed: name of the machine state that the pairs share (``fast``, ``slow`` or ``all``).
        default_s, tuned_s: median of run medians over the pairs, each by itself: to show both
            beside the ratio, take ``candidate_s`` for the second.
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


@dataclass(frozen=True)
class Conditions:
    """What was special on purpose about a profile's runs.

    Attributes:
        beside: traffic that an aggressor made beside them, in words; empty for none.
        emulated_nodes: groups of ranks on one machine that stood for nodes; 0 for none.
        timing: how operations were timed, where not one by one.
        pattern: which messages the operation has, where its word leaves that open.
    """

    beside: str = ""
    emulated_nodes: int = 0
    timing: str = ""
    pattern: str = ""

    @property
    def are_usual(self) -> bool:
        """Whether the runs had the network to themselves, and a real one."""
        return not (self.beside or self.emulated_nodes)


@dataclass(frozen=True)
class Profile:
    """What comes out of a campaign for a range of sizes: a configuration and its evidence.

    The configuration is the default, empty one where nothing better was confirmed.

    Attributes:
        bytes_low, bytes_high: the range, both ends inclusive.
        points: evidence for the tuned operation, per size and machine state.
        guards: evidence for other operations measured under the same configuration.
        level: confidence level of every interval, after correction for all that was looked at.
        note: for a person: where the default stays, the minimum detectable effect.
        details: what else is known, as plain data: what each variable brings, what decided the
            range's ends, what the library executed.
    """

    name: str
    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    configuration: Configuration
    verdict: Verdict
    points: tuple[PointEvidence, ...] = ()
    guards: tuple[PointEvidence, ...] = ()
    level: float = 0.95
    minimum_gain: float = 0.02
    note: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    simulated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
