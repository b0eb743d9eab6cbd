"""Judges by fresh blocks whether the claims of a profile still hold.

A profile claims a gain at the sizes where the confirmation showed one, and promises no harm beyond
the tolerance at the others of its range. All new intervals hold simultaneously at the campaign's
level, over sizes and looks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from commtune.errors import UserError
from commtune.model import (
    FEWEST_PAIRS,
    Configuration,
    Interval,
    PointEvidence,
    Profile,
    Verdict,
    VerificationVerdict,
)
from commtune.tuner.confirmation.comparison import (
    Compared,
    Rules,
    compare_candidate,
    more_pairs,
)
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.tuner.statistics.blocks import Blocks
from commtune.tuner.statistics.machine_states import ALL, MachineStates

#: The shares of machine states count as different if one differs by more than this.
OTHER_SHARES = 0.1


@dataclass(frozen=True)
class Claim:
    """The statements of a profile that can be measured again.

    Attributes:
        stated: the point over all machine states, by size (bytes) with a claimed gain.
        by_speed: the same by machine state, for states with enough pairs.
        promised: sizes (bytes) of the range at which no harm is promised, but no gain.
    """

    configuration: Configuration
    operation: str
    stated: Mapping[int, PointEvidence]
    by_speed: Mapping[int, Mapping[str, PointEvidence]]
    promised: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Every size that is judged, ascending."""
        return tuple(sorted({*self.stated, *self.promised}))

    @classmethod
    def of_profile(cls, profile: Profile, sizes: Sequence[int]) -> Claim:
        """Makes the claim of a profile, also of a likely one.

        Args:
            sizes: bytes that its campaign measures.

        Raises:
            UserError: the profile is the default, or has no size with a claimed speedup.
        """
        if profile.configuration.is_default:
            raise UserError(
                f"{profile.name} is the default: it claims no speedup that could be verified",
                hint="verify a profile with settings; to compare any two: commtune compare A B",
            )
        inside = [size for size in sizes if profile.bytes_low <= size <= profile.bytes_high]
        points = [p for p in profile.points if p.operation == profile.operation]
        compared = {size: p for size, p in overall_points(points).items() if size in inside}
        proven = {size: p for size, p in compared.items() if p.verdict is Verdict.FASTER}
        # What was withdrawn without a proven speedup was a likely one, and may be verified again.
        is_likely = profile.verdict is Verdict.LIKELY or (
            profile.verdict is Verdict.WITHDRAWN and not proven
        )
        stated = compared if is_likely else proven
        if not stated:
            raise UserError(
                f"{profile.name} has no size with a confirmed speedup",
                hint="confirm again with more blocks: 'commtune tune' with a larger --confirm\n"
                "(in a campaign file: a larger 'confirmation' under 'budget')",
            )
        states = [p for p in points if p.speed != ALL and p.gain.pairs >= FEWEST_PAIRS]
        return cls(
            configuration=profile.configuration,
            operation=profile.operation,
            stated=stated,
            by_speed={n: {p.speed: p for p in states if p.bytes == n} for n in stated},
            promised=tuple(size for size in inside if size not in stated),
        )

    def stated_today(self, size: int, today: Sequence[PointEvidence]) -> Interval | None:
        """Returns the gain claimed at a size, reweighted by today's shares of machine states.

        A gain of 1.4x in one state and 2.9x in another is not weaker on a day with more of the
        first. If a state of today was not measured then, the claim is returned as it stands.
        """
        if size not in self.stated:
            return None
        then = self.by_speed[size]
        shares = {p.speed: p.share for p in today if p.bytes == size and p.speed != ALL}
        uneven = any(
            abs(share - (then[speed].share if speed in then else 0.0)) > OTHER_SHARES
            for speed, share in shares.items()
        )
        if not uneven or not shares.keys() <= then.keys():
            return self.stated[size].gain
        gains = [(share, then[speed].gain) for speed, share in shares.items()]
        return _mean_interval(gains, self.stated[size].gain.pairs)

    def judge_blocks(
        self, blocks: Blocks, speeds: MachineStates, rules: Rules
    ) -> tuple[tuple[SizeVerification, ...], Compared]:
        """Judges every size of the claim by fresh blocks; returns also what these showed."""
        found = compare_candidate(blocks, self.configuration, self.operation, speeds, rules)
        found = replace(found, tails=[tail for tail in found.tails if tail.bytes in self.sizes])
        return tuple(_judge_size(self, size, found, rules) for size in self.sizes), found


@dataclass(frozen=True)
class SizeVerification:
    """The verification of one size.

    Attributes:
        stated: the claimed gain, reweighted by today's shares of machine states; ``None`` where
            none was claimed.
        point: today's evidence over all machine states; ``None`` without a pair.
        more: about how many more pairs would decide it; ``None`` if that can't be told.
    """

    bytes: int
    finding: VerificationVerdict
    stated: Interval | None
    point: PointEvidence | None
    more: int | None = None


def _mean_interval(gains: Sequence[tuple[float, Interval]], pairs: int) -> Interval:
    """Returns the weighted geometric mean of (weight, interval), end by end."""
    weights = [weight for weight, _ in gains]
    ends = zip(*((gain.ratio, gain.low, gain.high) for _, gain in gains), strict=True)
    # A lower end is 0 with too few pairs.
    ratio, low, high = (
        math.exp(fmean(map(math.log, values), weights)) if all(values) else 0.0 for values in ends
    )
    return Interval(ratio, low, high, pairs)


def _judge_claimed(stated: Interval, today: Interval, minimum_gain: float) -> VerificationVerdict:
    if today.pairs < FEWEST_PAIRS:
        return VerificationVerdict.UNDECIDED
    if today.high < 1:
        return VerificationVerdict.WORSE
    if today.high < 1 + minimum_gain:
        return VerificationVerdict.GONE
    if today.low <= 1 or today.is_too_noisy:
        return VerificationVerdict.UNDECIDED
    return VerificationVerdict.WEAKER if today.high < stated.low else VerificationVerdict.HOLDS


def _judge_promised(today: Interval, tolerance: float) -> VerificationVerdict:
    if today.pairs < FEWEST_PAIRS:
        return VerificationVerdict.UNDECIDED
    if today.high < 1 - tolerance:
        return VerificationVerdict.WORSE
    return (
        VerificationVerdict.HOLDS if today.low >= 1 - tolerance else VerificationVerdict.UNDECIDED
    )


def _judge_size(claim: Claim, size: int, today: Compared, rules: Rules) -> SizeVerification:
    stated = claim.stated_today(size, today.points)
    point = next((p for p in today.points if p.bytes == size and p.speed == ALL), None)
    if point is None:
        return SizeVerification(size, VerificationVerdict.UNDECIDED, stated, None)
    if stated is None:
        finding = _judge_promised(point.gain, rules.tolerance)
    else:
        finding = _judge_claimed(stated, point.gain, rules.minimum_gain)
        if finding is VerificationVerdict.HOLDS and _is_hurt_at_a_speed(point, rules):
            finding = VerificationVerdict.UNDECIDED
    is_open = finding is VerificationVerdict.UNDECIDED
    least = -rules.tolerance if stated is None else rules.minimum_gain
    more = more_pairs(today.estimates[size], rules.interval_level, least) if is_open else None
    return SizeVerification(size, finding, stated, point, more)


def _is_hurt_at_a_speed(point: PointEvidence, rules: Rules) -> bool:
    """Whether a machine state vetoed a gain in the comparison."""
    return point.gain.low > 1 + rules.minimum_gain and point.verdict is not Verdict.FASTER


def judge_profile(sizes: Sequence[SizeVerification], rules: Rules) -> VerificationVerdict:
    """Judges a profile by its sizes.

    One size that is shown to be slower makes it worse. It holds if no size is against it and the
    mean gain over all claimed sizes is shown; a size with too wide an interval doesn't matter.
    """
    if any(size.finding is VerificationVerdict.WORSE for size in sizes):
        return VerificationVerdict.WORSE
    claimed = [size for size in sizes if size.stated is not None]
    found, together = {size.finding for size in claimed}, _judge_together(claimed, rules)
    still = {VerificationVerdict.HOLDS, VerificationVerdict.WEAKER}
    less = {VerificationVerdict.WEAKER, VerificationVerdict.GONE, VerificationVerdict.WORSE}
    if not found & still and together in less - still:
        return together
    if {*found, together} & less and {*found, together} & still:
        return VerificationVerdict.WEAKER
    holds = together is VerificationVerdict.HOLDS and not any(
        _looks_harmful(s, rules) for s in sizes
    )
    return VerificationVerdict.HOLDS if holds else VerificationVerdict.UNDECIDED


def _judge_together(claimed: Sequence[SizeVerification], rules: Rules) -> VerificationVerdict:
    """Judges the mean over claimed sizes: where all intervals hold, so does their mean."""
    both = [(s.stated, s.point.gain) for s in claimed if s.stated is not None and s.point]
    if len(both) < len(claimed) or any(gain.low <= 0 for _, gain in both):
        return VerificationVerdict.UNDECIDED
    stated, today = (
        _mean_interval([(1.0, gain) for gain in gains], min(gain.pairs for gain in gains))
        for gains in zip(*both, strict=True)
    )
    return _judge_claimed(stated, today, rules.minimum_gain)


def _looks_harmful(size: SizeVerification, rules: Rules) -> bool:
    """Whether an undecided size that promises no harm looks slower beyond the tolerance."""
    if size.stated is not None or size.finding is not VerificationVerdict.UNDECIDED:
        return False
    return size.point is None or size.point.gain.ratio < 1 - rules.tolerance


def is_clear(sizes: Sequence[SizeVerification], rules: Rules) -> bool:
    """Whether every size is decided, so that an early look may be the last.

    A gain that is shown again but looks lower than stated needs more blocks: it may be weaker.
    """
    if judge_profile(sizes, rules) is VerificationVerdict.WORSE:
        return True
    return all(
        s.finding is not VerificationVerdict.UNDECIDED and not _may_be_weaker(s, rules)
        for s in sizes
    )


def _may_be_weaker(size: SizeVerification, rules: Rules) -> bool:
    if size.stated is None or size.point is None or size.finding is not VerificationVerdict.HOLDS:
        return False
    gain = size.point.gain
    return gain.low <= 1 + rules.minimum_gain or gain.ratio < size.stated.low
