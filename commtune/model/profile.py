"""What a campaign recommends for a range of sizes, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

from commtune.model.configuration import DEFAULT, Configuration
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.model.evidence import PointEvidence, Verdict

#: The name of a profile beside those of ranges: one configuration for all of them.
ALL_SIZES = "all-sizes"
#: How a part of a profile's note begins that is of some sizes of its range: the sizes follow.
SLOW_RUNS_AT = "slow runs at "


@dataclass(frozen=True)
class Conditions:
    """What was special on purpose about a profile's runs.

    Attributes:
        beside: traffic that an aggressor made beside them, in words; empty for none.
        emulated_nodes: groups of ranks on one machine that stood for nodes; 0 for none.
        timing: how operations were timed, where not one by one.
        pattern: which messages the operation has, where its word leaves that open.
        estimand: what its speedups are about, where that is not the median; else empty.
    """

    beside: str = ""
    emulated_nodes: int = 0
    timing: str = ""
    pattern: str = ""
    estimand: str = ""

    @property
    def are_usual(self) -> bool:
        """Whether the runs had the network to themselves, and a real one."""
        return not (self.beside or self.emulated_nodes)


@dataclass(frozen=True, kw_only=True)
class BoundarySide(SizeEffect):
    """What a configuration does at one of a boundary's two sizes."""

    configuration: Configuration = DEFAULT


@dataclass(frozen=True)
class RangeBoundary:
    """Where two ranges part: between two neighbouring measured sizes, bytes.

    Attributes:
        sides: what the configurations of both ranges do at both sizes, where it was measured.
    """

    below: int
    above: int = field(metadata={"alias": "from"})
    sides: tuple[BoundarySide, ...] = field(default=(), metadata={"alias": "evidence"})


@dataclass(frozen=True)
class Profile:
    """What comes out of a campaign for a range of sizes: a configuration and its evidence.

    The configuration is the default, empty one where nothing better was confirmed.

    Attributes:
        bytes_low, bytes_high: the range, both ends inclusive.
        points: evidence for the tuned operation, per size and machine state.
        guards: evidence for other operations measured under the same configuration.
        level: confidence level of every interval, after correction for all that was looked at.
        note: for a person: where the default stays, the minimum detectable effect; else whether
            it has more slow runs, and which variables were not shown to contribute.
        contributions: what each variable of the configuration brings, derived by ablation.
        boundaries: what decided the range's ends.
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
    contributions: tuple[VariableEffect, ...] = ()
    boundaries: tuple[RangeBoundary, ...] = ()

    @property
    def unproven_variables(self) -> tuple[str, ...]:
        """Those not shown to contribute by ablation; one alone needs none."""
        names = set(self.configuration)
        if len(names) < 2 or any(names <= set(effect.names) for effect in self.contributions):
            return ()
        shown = {name for effect in self.contributions if effect.helps for name in effect.names}
        return tuple(name for name in self.configuration if name not in shown)
