"""What verification makes of intervals, and what a profile claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from stated_profiles import PROFILE, SIZES, point, profile

from commtune.errors import UserError
from commtune.model import DEFAULT, Interval, Profile, Verdict, VerificationVerdict
from commtune.tuner.confirmation.comparison import Rules
from commtune.tuner.verification.claims import (
    Claim,
    SizeVerification,
    _judge_claimed,
    _judge_promised,
    is_clear,
    judge_profile,
)

RULES = Rules(level=0.95, minimum_gain=0.02, tolerance=0.05, comparisons=3)


# What an interval says


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [
        (1.26, 1.34, VerificationVerdict.HOLDS),
        (1.10, 1.30, VerificationVerdict.HOLDS),
        (1.60, 1.70, VerificationVerdict.HOLDS),
        (1.005, 1.30, VerificationVerdict.HOLDS),
        (1.10, 1.20, VerificationVerdict.WEAKER),
        (1.005, 1.03, VerificationVerdict.WEAKER),
        (0.99, 1.015, VerificationVerdict.GONE),
        (1.005, 1.015, VerificationVerdict.GONE),
        (0.90, 0.99, VerificationVerdict.WORSE),
        (0.95, 1.30, VerificationVerdict.UNDECIDED),
        (0.95, 1.10, VerificationVerdict.UNDECIDED),
    ],
)
def test_a_claimed_gain_is_judged(low: float, high: float, finding: VerificationVerdict) -> None:
    stated = Interval(1.3, 1.25, 1.35, 20)
    assert _judge_claimed(stated, Interval(1.0, low, high, 20), 0.02) is finding
    assert (
        _judge_claimed(stated, Interval(1.0, low, high, 4), 0.02) is VerificationVerdict.UNDECIDED
    )


@pytest.mark.parametrize(
    ("low", "high", "finding"),
    [
        (0.96, 1.02, VerificationVerdict.HOLDS),
        (0.96, 0.99, VerificationVerdict.HOLDS),
        (1.10, 1.20, VerificationVerdict.HOLDS),
        (0.90, 0.94, VerificationVerdict.WORSE),
        (0.90, 1.00, VerificationVerdict.UNDECIDED),
    ],
)
def test_a_promise_of_no_harm_is_judged(
    low: float, high: float, finding: VerificationVerdict
) -> None:
    assert _judge_promised(Interval(1.0, low, high, 20), 0.05) is finding


def found(claimed: Sequence[tuple[float, float]], promised: tuple[float, float] | None = None
          ) -> list[SizeVerification]:  # fmt: skip
    """Sizes that state [1.25, 1.35] with today's intervals, and one that promises no harm."""
    stated = Interval(1.3, 1.25, 1.35, 20)
    sizes = []
    for number, ends in enumerate(claimed):
        today = point(8 << number, *ends)
        finding = _judge_claimed(stated, today.gain, 0.02)
        sizes.append(SizeVerification(today.bytes, finding, stated, today))
    if promised:
        today = point(4, *promised)
        sizes.append(SizeVerification(4, _judge_promised(today.gain, 0.05), None, today))
    return sizes


@pytest.mark.parametrize(
    ("claimed", "promised", "finding"),
    [
        ([(1.26, 1.34), (1.27, 1.33)], (0.96, 1.02), VerificationVerdict.HOLDS),
        # One too noisy to say anything by itself does not spoil the rest ...
        ([(1.26, 1.34), (1.27, 1.33), (0.98, 1.40)], None, VerificationVerdict.HOLDS),
        # ... unless it could take all of the gain away,
        ([(1.05, 1.34), (0.70, 1.80)], None, VerificationVerdict.UNDECIDED),
        # and several that say nothing one by one may say something together only if all do.
        ([(0.99, 1.5), (0.99, 1.5)], None, VerificationVerdict.UNDECIDED),
        ([(1.26, 1.34), (1.10, 1.20)], None, VerificationVerdict.WEAKER),
        ([(1.26, 1.34), (0.99, 1.01)], None, VerificationVerdict.WEAKER),
        ([(1.10, 1.20), (1.10, 1.20)], None, VerificationVerdict.WEAKER),
        ([(0.99, 1.01), (0.99, 1.01)], None, VerificationVerdict.GONE),
        ([(0.99, 1.01), (0.94, 1.04)], None, VerificationVerdict.UNDECIDED),
        ([(0.97, 1.001), (0.94, 1.03)], None, VerificationVerdict.GONE),
        ([(1.26, 1.34), (0.97, 0.99)], None, VerificationVerdict.WORSE),
        ([(1.26, 1.34)], (0.90, 0.94), VerificationVerdict.WORSE),
        ([(1.26, 1.34)], (0.93, 1.02), VerificationVerdict.HOLDS),
        ([(1.26, 1.34)], (0.85, 1.02), VerificationVerdict.UNDECIDED),
    ],
)
def test_sizes_are_put_together(
    claimed: list[tuple[float, float]],
    promised: tuple[float, float] | None,
    finding: VerificationVerdict,
) -> None:
    assert judge_profile(found(claimed, promised), RULES) is finding


def test_a_likely_gain_that_had_too_few_pairs_at_a_size_is_judged() -> None:
    sizes = [*found([(1.3, 1.5)]), *found([(1.3, 1.5)])]
    unknown = Interval(ratio=1.2, low=0.0, high=math.inf, pairs=30)
    sizes[1] = replace(sizes[1], stated=unknown)
    assert judge_profile(sizes, RULES) is VerificationVerdict.HOLDS


def test_a_gain_found_lower_than_stated_is_looked_at_longer() -> None:
    assert is_clear(found([(1.26, 1.34)]), RULES)
    assert is_clear(found([(1.10, 1.20)]), RULES)
    assert not is_clear(found([(1.05, 1.30)]), RULES)
    assert not is_clear(found([(1.26, 1.34)], (0.93, 1.02)), RULES)
    assert is_clear(found([(0.97, 0.99)], (0.93, 1.02)), RULES)


# What a profile claims


def test_a_profile_claims_the_sizes_that_were_faster() -> None:
    claim = Claim.of_profile(PROFILE, SIZES)
    assert sorted(claim.stated) == [65536, 1048576]
    assert claim.promised == (8,)
    assert claim.sizes == SIZES


def test_a_range_claims_nothing_outside_of_it() -> None:
    ranged = replace(PROFILE, bytes_low=1048576)
    claim = Claim.of_profile(ranged, SIZES)
    assert claim.sizes == (1048576,)
    assert claim.promised == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (profile(point(8, 0.9, 1.0), configuration=DEFAULT), "is the default"),
        (
            profile(point(8, 1.0, 1.1, verdict=Verdict.UNDECIDED)),
            "no size with a confirmed speedup",
        ),
    ],
)
def test_what_claims_nothing_can_not_be_verified(wrong: Profile, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Claim.of_profile(wrong, SIZES)


@pytest.mark.parametrize("verdict", [Verdict.LIKELY, Verdict.WITHDRAWN])
def test_what_is_likely_can_be_verified_also_once_it_was_withdrawn(verdict: Verdict) -> None:
    likely = replace(profile(point(8, 0.99, 1.2, verdict=Verdict.UNDECIDED)), verdict=verdict)
    claim = Claim.of_profile(likely, (8,))
    assert (sorted(claim.stated), claim.promised) == ([8], ())


def claim_at_two_speeds() -> Claim:
    return Claim.of_profile(
        profile(
            point(8, 1.7, 2.3),
            point(8, 1.35, 1.45, speed="fast", share=0.5),
            point(8, 2.8, 3.0, speed="slow", share=0.5),
        ),
        (8,),
    )


def test_a_day_with_other_shares_of_the_speeds_states_another_gain() -> None:
    fast = [point(8, 1.3, 1.5), point(8, 1.3, 1.5, speed="fast", share=1.0)]
    stated = claim_at_two_speeds().stated_today(8, fast)
    assert stated is not None
    assert (stated.low, stated.high) == pytest.approx((1.35, 1.45))
    assert _judge_claimed(stated, fast[0].gain, 0.02) is VerificationVerdict.HOLDS


def test_with_the_same_shares_or_an_unknown_speed_the_stated_gain_stands() -> None:
    claim = claim_at_two_speeds()
    same = [point(8, 1.3, 1.5, speed=speed, share=0.5) for speed in ("fast", "slow")]
    other = [point(8, 1.3, 1.5, speed="middle", share=1.0)]
    for today in (same, other, []):
        assert claim.stated_today(8, today) == claim.stated[8].gain
