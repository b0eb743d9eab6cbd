"""Profiles: recommendations of a campaign for ranges of sizes, with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from commtune.model.configuration import DEFAULT, Configuration
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.model.evidence import LEVEL, PointEvidence, Tail, Verdict

#: The name of the profile of one configuration for all sizes, beside those of ranges.
ALL_SIZES = "all-sizes"


@dataclass(frozen=True)
class Conditions:
    """The deliberate conditions of a profile's runs that differ from the usual.

    Attributes:
        beside: traffic of an aggressor beside them, in words; empty for none.
        emulated_nodes: groups of ranks on one machine that stood for nodes; 0 for none.
        timing: how operations were timed, if not one by one; else empty.
        pattern: the messages of the operation, if its name leaves them open; else empty.
        estimand: what its speedups are about, if not the median; else empty.
    """

    beside: str = ""
    emulated_nodes: int = 0
    timing: str = ""
    pattern: str = ""
    estimand: str = ""

    @property
    def are_usual(self) -> bool:
        """Whether the runs had a real network, without an aggressor."""
        return not (self.beside or self.emulated_nodes)


@dataclass(frozen=True, kw_only=True)
class BoundarySide(SizeEffect):
    """The speedup of a configuration at one of a boundary's two sizes."""

    configuration: Configuration = DEFAULT


@dataclass(frozen=True)
class RangeBoundary:
    """The boundary of two ranges, between two neighbouring measured sizes (bytes).

    Attributes:
        sides: the speedups of both ranges' configurations at both sizes, where measured.
    """

    below: int
    above: int = field(metadata={"alias": "from"})
    sides: tuple[BoundarySide, ...] = field(default=(), metadata={"alias": "evidence"})


class VerificationVerdict(StrEnum):
    """The verdict of a verification on a size, or on a profile."""

    HOLDS = "holds"
    WEAKER = "weaker"
    GONE = "gone"
    WORSE = "worse"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class VerificationRecord:
    """A verification of a profile, as it is stored in the campaign that has its runs.

    Attributes:
        profile: the profile's name in its own campaign.
        first_block, last_block: the numbers of its blocks.
        share: the share of the error rate that its last look could spend.
        session_spread: as in ``conclusion.Decision``.
        ended_at: seconds since 1970.
    """

    profile: str
    configuration: Configuration
    finding: VerificationVerdict
    first_block: int
    last_block: int
    share: float
    session_spread: float
    ended_at: float


@dataclass(frozen=True)
class Strength:
    """What a profile rests on: its confirmation, and the verifications that it withstood.

    Attributes:
        pairs: the fewest pairs at any of its sizes, in the confirmation alone.
        days, sessions, nodes: different days (UTC), sessions (an hour or more apart) and nodes of
            all these runs.
        verifications: the number of verifications under the same conditions, with any finding.
        last_finding: of the last of them that was not inconclusive; ``None`` if there was none.
        last_verified: when that one ended, seconds since 1970.
    """

    pairs: int
    days: int
    sessions: int
    nodes: int
    verifications: int = 0
    last_finding: VerificationVerdict | None = None
    last_verified: float | None = None


@dataclass(frozen=True)
class Profile:
    """The recommendation of a campaign for a range of sizes: a configuration and its evidence.

    The configuration is the default if nothing better was confirmed.

    Attributes:
        bytes_low, bytes_high: the range, both ends inclusive.
        points: evidence for the tuned operation, by size and machine state.
        guards: evidence for guard operations under the same configuration.
        level: confidence level of each interval, after correction for all intervals and looks.
        note: for a person: if the default stays, the minimum detectable effect; else whether
            there are more slow runs, and which variables were not shown to contribute.
        contributions: the effects of the configuration's variables, from ablation.
        boundaries: the evidence at the ends of the range.
        tails: what stands beside the typical speedup, by size; empty if it keeps the default.
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
    level: float = LEVEL
    minimum_gain: float = 0.02
    note: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    simulated: bool = False
    contributions: tuple[VariableEffect, ...] = ()
    boundaries: tuple[RangeBoundary, ...] = ()
    tails: tuple[Tail, ...] = ()

    @property
    def sizes(self) -> range:
        """The sizes (bytes) that it is for, measured or not."""
        return range(self.bytes_low, self.bytes_high + 1)

    @property
    def points_inside(self) -> tuple[PointEvidence, ...]:
        """The points at these sizes; there may be others, where it was measured too."""
        return tuple(point for point in self.points if point.bytes in self.sizes)

    @property
    def unproven_variables(self) -> tuple[str, ...]:
        """The variables not shown to contribute at its sizes; a single one needs no ablation."""
        names = set(self.configuration)
        if len(names) < 2 or any(names <= set(effect.names) for effect in self.contributions):
            return ()
        shown = {
            name
            for effect in self.contributions
            for span in effect.helps
            if span.low <= self.bytes_high and span.high >= self.bytes_low
            for name in effect.names
        }
        return tuple(name for name in self.configuration if name not in shown)
