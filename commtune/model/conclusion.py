"""What a campaign decided to confirm, and what it concluded beside its profiles.

Names are those of the stored JSON. Defaults stand for what is unknown: a campaign may have been
stopped early. Times are seconds, sizes bytes, speedups ratios default/candidate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from commtune.model.configuration import DEFAULT, Configuration
from commtune.model.effects import SizeEffect, VariableEffect, select_known
from commtune.model.evidence import Verdict


@dataclass(frozen=True, kw_only=True)
class ConfirmedEffect(SizeEffect):
    """What confirmation said of a candidate at one size and machine state."""

    default_s: float = math.nan
    tuned_s: float = math.nan
    verdict: Verdict | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Ablation:
    """How a candidate was made smaller.

    Attributes:
        before, after: the configurations; equal where nothing could be left out.
        gain_kept: share of the logarithm of the gain that the smaller one keeps, over the sizes
            where there is one; ``None`` where that was not measured.
        note: why it ended otherwise than by measuring everything.
    """

    before: Configuration = field(default=DEFAULT, metadata={"alias": "from"})
    after: Configuration = field(default=DEFAULT, metadata={"alias": "to"})
    blocks: int = 0
    gain_kept: float | None = None
    variables: tuple[VariableEffect, ...] = ()
    note: str = ""

    @property
    def changed(self) -> tuple[tuple[str, str | None, str], ...]:
        """Variables that ended with another value than they began with: name, before, after."""
        return tuple(
            (name, self.before.get(name), value)
            for name, value in self.after.items()
            if self.before.get(name) != value
        )


@dataclass(frozen=True)
class ConfirmedCandidate:
    """A candidate that was compared with the default; ``stopped`` says why it ended."""

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
    """A configuration for sizes from ``low`` to ``high`` bytes, with its speedup by size.

    Attributes:
        weighted_gain: logarithm of the speedup over all sizes, of one environment for all.
    """

    configuration: Configuration = DEFAULT
    gains: Mapping[int, float] = field(default_factory=dict)
    low: int = 0
    high: int = 0
    weighted_gain: float | None = None


@dataclass(frozen=True)
class TradeOff:
    """One environment against one for each range of sizes.

    Attributes:
        weighted: whether the means weigh sizes by the messages of the campaign; else all alike.
        one_mean_gain, ranges_mean_gain: mean speedups.
        lost_by_one: by size, a share; sizes at which that is not known are absent.
    """

    weighted: bool = False
    one_mean_gain: float | None = None
    ranges_mean_gain: float | None = None
    lost_by_one: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """What to use: one environment for all sizes, if one may be, and one for each range."""

    one: Answer | None = None
    ranges: tuple[Answer, ...] = ()
    trade_off: TradeOff = field(default_factory=TradeOff)


@dataclass(frozen=True)
class DefaultNoise:
    """How much runs of the default differ at one size and machine state.

    Attributes:
        share: of the runs at this size that were in this state.
        spread: standard deviation of the logarithm of time.
        drift_per_hour: change of that logarithm.
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
    """What a further confirmation would take to decide a size.

    Attributes:
        bytes: the size that is nearest to a speedup.
    """

    runs: int = 0
    seconds: float = 0.0
    bytes: int = 0
    why: str = ""


@dataclass(frozen=True)
class Method:
    """What the intervals were held against; ``None`` where it is not stored."""

    level: float | None = None
    minimum_gain: float | None = None
    tolerance: float | None = None
    looks: int = 0
    confirmations: int = 1
    interval: str = ""


@dataclass(frozen=True)
class Conclusion:
    """All that a campaign concluded; the empty one where none was stored.

    Attributes:
        replayed: the recorded grid that was played back; empty where runs were made.
        spent: by phase.
        detectable: by size, the gain (a share) that would have been found in 9 of 10 cases.
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


# The blocks are looked at a few times. Each look has a share of the error rate of its own, so that
# looking early costs a little and is never free: over all looks, candidates and sizes, all
# intervals hold together at the campaign's level (Bonferroni). A candidate that is decided, or
# that the blocks left can't decide any more, is dropped at a look, and its runs go to the others.
#: The share of the error rate that each look of a confirmation may spend: early ones are to end
#: what is plain, the last one is to find what is small.
CONFIRMATION_SHARES = (0.02, 0.08, 0.90)
#: How far the blocks are at each look.
_LOOK_TIMES = (0.4, 0.7, 1.0)
#: With fewer blocks than this, one look at the end.
_FEWEST_FOR_LOOKS = 12
#: What the first confirmation of a campaign may spend of the error rate. A second one, with a
#: larger budget because the first told too little, has half of the rest, and so on: whoever asks
#: again until the answer pleases must not find gains that are not there.
_FIRST_SHARE = 0.8


@dataclass(frozen=True)
class Look:
    """One look at the blocks, stored so that a resumed confirmation never looks again.

    Attributes:
        made: complete blocks that it saw.
        planned: complete blocks that were planned for the end, from then on.
        stopped: candidates that ended here, by place in the decision, with the reason
            (``decided``, ``futile`` or ``budget``).
    """

    made: int
    planned: int
    stopped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What is to be confirmed, decided before the first block runs.

    Attributes:
        sizes: bytes that each candidate is for, the only ones it is compared at; where empty, all
            of them.
        blocks: how many blocks were planned at first.
        first_block: blocks with smaller numbers were run for something else.
        budget_s: the wall seconds that the number of blocks was made for.
        looks: what was looked at so far.
        number: how many confirmations the campaign had before.
        error_share: share of the campaign's error rate that this confirmation may spend.
        budget: limits that the campaign had then, those that were given.
        ablations: how the candidates were made small.
        look_shares: how that share is divided over the looks. The default is that of
            verifications, where an early answer matters more.
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

    def sizes_of(self, candidate: Configuration, measured: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes (bytes) that a candidate is compared at, of those that are measured."""
        return self.sizes[self.candidates.index(candidate)] if self.sizes else measured

    def with_between(self, named: tuple[int, ...]) -> tuple[int, ...]:
        """All sizes (bytes) that its blocks measure: the campaign's and those between them."""
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
        """The look at which a candidate ended, and why."""
        for number, look in enumerate(self.looks):
            if place in look.stopped:
                return number, look.stopped[place]
        return None

    def made(self, place: int) -> int:
        """The complete blocks that a candidate took part in."""
        stop = self.stop_of(place)
        looks = self.looks if stop is None else self.looks[: stop[0] + 1]
        return looks[-1].made if looks else 0

    def open(self) -> tuple[Configuration, ...]:
        """The candidates that no look ended."""
        return tuple(c for i, c in enumerate(self.candidates) if self.stop_of(i) is None)

    def after(self, look: Look) -> Decision:
        return replace(self, looks=(*self.looks, look))


def error_share(number: int) -> float:
    """The share of a campaign's error rate for its confirmation with a number, from 0.

    The shares of any number of confirmations add up to less than 1.
    """
    return _FIRST_SHARE if number == 0 else (1 - _FIRST_SHARE) / 2**number
