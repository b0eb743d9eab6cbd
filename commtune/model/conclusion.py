"""The decision of a campaign on what to confirm, and its conclusion beside its profiles.

Names are those of the stored JSON. Defaults stand for unknown values, since a campaign may have
been stopped early. Times are seconds, sizes bytes, speedups ratios default/candidate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from commtune.model.configuration import DEFAULT, Configuration
from commtune.model.effects import SizeEffect, VariableEffect, select_known
from commtune.model.evidence import SESSION_SPREAD, Verdict


@dataclass(frozen=True, kw_only=True)
class ConfirmedEffect(SizeEffect):
    """The confirmed effect of a candidate at one size and machine state."""

    default_s: float = math.nan
    tuned_s: float = math.nan
    verdict: Verdict | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Ablation:
    """The ablation of a candidate.

    Attributes:
        before, after: the configurations; equal if nothing could be left out.
        gain_kept: share of the log speedup that the smaller one keeps, over the sizes with a
            speedup; ``None`` if that was not measured.
        note: why it ended early, if it did.
    """

    before: Configuration = field(default=DEFAULT, metadata={"alias": "from"})
    after: Configuration = field(default=DEFAULT, metadata={"alias": "to"})
    blocks: int = 0
    gain_kept: float | None = None
    variables: tuple[VariableEffect, ...] = ()
    note: str = ""

    @property
    def changed(self) -> tuple[tuple[str, str | None, str], ...]:
        """Variables that have another value after the ablation: name, before, after."""
        return tuple(
            (name, self.before.get(name), value)
            for name, value in self.after.items()
            if self.before.get(name) != value
        )

    def leaves_out(self, part: Configuration) -> bool:
        """Whether a part of what was ablated holds something that the ablation left out."""
        settings = part.items()
        return settings <= self.before.items() and not settings <= self.after.items()


@dataclass(frozen=True)
class ConfirmedCandidate:
    """A candidate that was compared with the default; ``stopped`` says why it stopped."""

    configuration: Configuration = DEFAULT
    blocks: int = 0
    stopped: str = ""
    points: tuple[ConfirmedEffect, ...] = ()

    @property
    def effects(self) -> tuple[SizeEffect, ...]:
        """The points that have an interval, by size."""
        return select_known(self.points)


@dataclass(frozen=True)
class Answer:
    """A configuration for sizes from ``low`` to ``high`` bytes, with its speedup by size."""

    configuration: Configuration = DEFAULT
    gains: Mapping[int, float] = field(default_factory=dict)
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class TradeOff:
    """One environment against one for each range of sizes.

    Attributes:
        weighted: whether the means weigh sizes by the messages of the campaign, or equally.
        one_mean_gain, ranges_mean_gain: mean speedups.
        lost_by_one: share that the one environment loses by size; unknown sizes are absent.
    """

    weighted: bool = False
    one_mean_gain: float | None = None
    ranges_mean_gain: float | None = None
    lost_by_one: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """What to use: one environment for all sizes, if there is one, and one for each range."""

    one: Answer | None = None
    ranges: tuple[Answer, ...] = ()
    trade_off: TradeOff = field(default_factory=TradeOff)


@dataclass(frozen=True)
class DefaultNoise:
    """How much runs of the default differ at one size and machine state.

    Attributes:
        share: share of the runs at this size that were in this state.
        spread: standard deviation of the logarithm of time.
        drift_per_hour: change of that logarithm in an hour.
    """

    bytes: int
    speed: str = "all"
    share: float | None = None
    spread: float | None = None
    runs: int = 0
    drift_per_hour: float | None = None


@dataclass(frozen=True)
class PhaseSpent:
    """Runs of a phase and the wall seconds that they took; ``failures``: the failed by outcome."""

    runs: int = 0
    failed: int = 0
    default_failed: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    disturbed: int = 0
    wall_s: float = 0.0


@dataclass(frozen=True)
class NotFollowed:
    """A configuration that the library ignored or replaced."""

    configuration: Configuration = DEFAULT
    followed: str = ""
    why: str = ""


@dataclass(frozen=True)
class FurtherRuns:
    """The runs and seconds of a further confirmation that would decide a size.

    Attributes:
        bytes: the size that needs the fewest runs.
    """

    runs: int = 0
    seconds: float = 0.0
    bytes: int = 0
    why: str = ""


@dataclass(frozen=True)
class Method:
    """The level and margins of the intervals; ``None`` where not stored."""

    level: float | None = None
    minimum_gain: float | None = None
    tolerance: float | None = None
    looks: int = 0
    confirmations: int = 1
    interval: str = ""


@dataclass(frozen=True)
class Conclusion:
    """Everything that a campaign concluded; empty if nothing was stored.

    Attributes:
        replayed: name of the recording that was played back; empty for real runs.
        spent: runs and seconds by phase.
        detectable: by size, the gain (0.02 is 2 %) that would be found there in 9 of 10 cases.
        set_aside: parameters and their values that the search left out after failures.
    """

    version: int = 1
    replayed: str = ""
    method: Method = field(default_factory=Method)
    budget: Mapping[str, float] = field(default_factory=dict)
    spent: Mapping[str, PhaseSpent] = field(default_factory=dict)
    noise: tuple[DefaultNoise, ...] = ()
    confirmed: tuple[ConfirmedCandidate, ...] = ()
    ablations: tuple[Ablation, ...] = ()
    answers: Answers = field(default_factory=Answers)
    detectable: Mapping[int, float] = field(default_factory=dict)
    more: FurtherRuns | None = None
    not_followed: tuple[NotFollowed, ...] = ()
    set_aside: tuple[tuple[str, str | None], ...] = ()


# A group-sequential design: there are a few planned looks at the blocks, each with its share of
# the error rate, so that all intervals hold simultaneously over looks, candidates and sizes
# (Bonferroni). At a look, candidates that are decided or futile stop, and others get their runs.
#: The share of the error rate that each look of a confirmation may spend: early looks stop obvious
#: candidates, and the last one finds small speedups.
CONFIRMATION_SHARES = (0.02, 0.08, 0.90)
#: The share of the planned blocks that each look waits for.
_LOOK_TIMES = (0.4, 0.7, 1.0)
#: With fewer planned blocks there is one look, at the end.
_FEWEST_FOR_LOOKS = 12
#: The share of the error rate of a campaign's first confirmation. A second one, after an
#: inconclusive first, has half of the rest, and so on, so that repetition finds no false gains.
_FIRST_SHARE = 0.8


@dataclass(frozen=True)
class Look:
    """One look at the blocks, stored so that a resumed confirmation doesn't look at new points.

    Attributes:
        made: number of complete blocks at the look.
        planned: complete blocks planned for the end, from then on.
        stopped: why candidates stopped here (``decided``, ``futile`` or ``budget``), by index in
            the decision.
    """

    made: int
    planned: int
    stopped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """The design of a confirmation, decided before the first block runs.

    Attributes:
        sizes: those (bytes) at which each candidate is compared; all sizes if empty.
        blocks: number of blocks planned at first.
        first_block: number of the first block of this confirmation.
        budget_s: wall seconds that the number of blocks follows from.
        looks: looks so far.
        number: number of the campaign's confirmations before this one.
        error_share: share of the campaign's error rate that this confirmation may spend.
        budget: limits of the campaign at that time, if they were set.
        ablations: those that the candidates come from.
        look_shares: how ``error_share`` is divided over the looks. The default is that of
            verifications, where an early answer matters more.
        session_spread: standard deviation of a speedup between sessions, as a share of its
            logarithm.
    """

    candidates: tuple[Configuration, ...] = ()
    blocks: int = 0
    first_block: int = 0
    budget_s: float = 0.0
    looks: tuple[Look, ...] = ()
    number: int = 0
    error_share: float = 1.0
    budget: Mapping[str, float] = field(default_factory=dict)
    ablations: tuple[Ablation, ...] = ()
    sizes: tuple[tuple[int, ...], ...] = ()
    look_shares: tuple[float, ...] = (0.15, 0.25, 0.60)
    session_spread: float = SESSION_SPREAD

    def sizes_of(self, candidate: Configuration, measured: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the sizes (bytes) at which a candidate is compared."""
        return self.sizes[self.candidates.index(candidate)] if self.sizes else measured

    def with_between(self, named: tuple[int, ...]) -> tuple[int, ...]:
        """Returns all sizes (bytes) that blocks measure: the campaign's, and those between."""
        return tuple(sorted({*named, *(size for mine in self.sizes for size in mine)}))

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the campaign's error rate that each look may spend."""
        shares = self.look_shares if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)
        return tuple(share * self.error_share for share in shares)

    @property
    def times(self) -> tuple[float, ...]:
        """The share of the blocks that each look waits for."""
        return _LOOK_TIMES if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)

    def stop_of(self, place: int) -> tuple[int, str] | None:
        """Returns the number of the look at which a candidate stopped, and why; or ``None``."""
        for number, look in enumerate(self.looks):
            if place in look.stopped:
                return number, look.stopped[place]
        return None

    def made(self, place: int) -> int:
        """Returns the number of complete blocks of a candidate."""
        stop = self.stop_of(place)
        looks = self.looks if stop is None else self.looks[: stop[0] + 1]
        return looks[-1].made if looks else 0

    def open(self) -> tuple[Configuration, ...]:
        """Returns the candidates that have not stopped."""
        return tuple(c for i, c in enumerate(self.candidates) if self.stop_of(i) is None)

    def after(self, look: Look) -> Decision:
        return replace(self, looks=(*self.looks, look))


def error_share(number: int) -> float:
    """Returns the share of a campaign's error rate for a confirmation by its number, from 0.

    The sum over all confirmations is at most 1.
    """
    return _FIRST_SHARE if number == 0 else (1 - _FIRST_SHARE) / 2**number
