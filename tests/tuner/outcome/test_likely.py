"""Gains that are likely and not proven are told with their figure, and never claimed."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from made_up_runs import comparison, point
from stated_evidence import SIZES, A, B, faster, plan, unknown

from commtune.model import DEFAULT, PointEvidence, Verdict
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.outcome.profiles import (
    ProfileMaker,
    _describe_likely_gains,
)
from commtune.tuner.statistics.intervals import Estimate


def found(likely: PointEvidence, error: float) -> Comparison:
    """One candidate: faster at all sizes but the first, where it has an estimate with an error."""
    points = comparison({A: [likely, *(faster(size) for size in SIZES[1:])]})
    estimate = Estimate(math.log(likely.gain.ratio), error, 11, 12)
    return {A: replace(points[A], estimates={likely.bytes: estimate})}


LIKELY = point(SIZES[0], 1.2, 0.97, 1.48, pairs=12)


def test_a_likely_gain_is_told_with_its_interval_and_what_would_tell() -> None:
    said = _describe_likely_gains(SIZES, plan(), found(LIKELY, 0.06))
    expected = (
        r"likely, not proven: 0\.97x to 1\.48x \(1\.20x, 12 pairs\) at 8 B "
        r"\(about (\d+) more runs would decide it\) by V=a$"
    )
    told = re.match(expected, said)
    assert told, said
    assert 12 < int(told[1]) < 200


@pytest.mark.parametrize("ratio", [1.0333, 1.03])  # some 30,000 runs; no number of them
def test_no_number_of_runs_is_told_that_nobody_waits_for(ratio: float) -> None:
    near = point(SIZES[0], ratio, 0.99, 1.07, pairs=12)
    said = _describe_likely_gains(SIZES, plan(), found(near, 0.005))
    assert "(more runs on this machine will not decide it; a quieter machine may) by V=a" in said


def test_noise_is_not_likely() -> None:
    assert _describe_likely_gains(SIZES, plan(), found(LIKELY, 0.2)) == ""
    assert _describe_likely_gains(SIZES[1:], plan(), found(LIKELY, 0.06)) == ""
    assert _describe_likely_gains(SIZES, plan(), comparison({})) == ""


def test_the_default_stays_where_a_gain_is_only_likely() -> None:
    profiles = ProfileMaker(plan(), found(LIKELY, 0.06)).recommend()
    assert profiles[0].configuration == DEFAULT
    assert profiles[0].verdict is Verdict.UNDECIDED
    assert profiles[0].note.startswith(
        "likely, not proven: 0.97x to 1.48x (1.20x, 12 pairs) at 8 B"
    )
    silent = ProfileMaker(plan(), found(unknown(SIZES[0]), 0.2)).recommend()
    assert "likely" not in silent[0].note


def test_what_is_likely_is_a_profile_of_its_own() -> None:
    (likely,) = ProfileMaker(plan(), found(LIKELY, 0.06)).list_likely()
    assert (likely.name, likely.verdict) == ("allreduce-8-8-likely", Verdict.LIKELY)
    assert (likely.bytes_low, likely.bytes_high, likely.configuration) == (8, 8, A)
    assert likely.note.startswith("likely, not proven: 0.97x to 1.48x (1.20x, 12 pairs) at 8 B")
    assert ProfileMaker(plan(), found(LIKELY, 0.2)).list_likely() == []


def test_what_is_likely_has_the_guards_of_its_configuration() -> None:
    guard = replace(point(SIZES[0], 0.8, 0.7, 0.9), operation="broadcast")
    (likely,) = ProfileMaker(plan(), found(LIKELY, 0.06), {A: (guard,)}).list_likely()
    assert likely.guards == (guard,)


def test_of_two_likely_configurations_the_faster_one_is_kept() -> None:
    sizes = SIZES[:2]
    slower, faster_one = (
        [point(size, ratio, 0.97, 1.6) for size in sizes] for ratio in (1.2, 1.3)
    )
    points = comparison({A: slower, B: faster_one})
    both = {
        one: replace(
            points[one],
            estimates={size: Estimate(math.log(ratio), 0.06, 11, 12) for size in sizes},
        )
        for one, ratio in ((A, 1.2), (B, 1.3))
    }
    (likely,) = ProfileMaker(plan(sizes), both).list_likely()
    assert (likely.configuration, likely.bytes_low, likely.bytes_high) == (B, *sizes)


def test_what_a_machine_state_speaks_against_is_not_likely() -> None:
    shown = point(SIZES[0], 1.2, 1.05, 1.37, pairs=12)
    overall = replace(shown, verdict=Verdict.UNDECIDED)
    against = replace(overall, speed="fast", gain=replace(shown.gain, ratio=0.9, pairs=3))
    known = found(overall, 0.06)[A]
    vetoed = {A: replace(known, points=(*known.points, against))}
    assert ProfileMaker(plan(), vetoed).list_likely() == []
    (note, *_) = (profile.note for profile in ProfileMaker(plan(), vetoed).recommend())
    assert note.startswith("faster at 8 B, but not in every state: ")
    assert note.endswith(" (0.90x, 3 pairs) at 8 B (fast machine state)")


def test_nothing_is_likely_where_a_gain_is_proven() -> None:
    proven = comparison({A: [faster(size) for size in SIZES]})
    assert ProfileMaker(plan(), proven).list_likely() == []
