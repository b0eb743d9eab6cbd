"""What could still be hidden where the default stays: of which size each number is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from commtune.model import Interval, PointEvidence, Verdict
from commtune.tuner.outcome.detectability import describe_detectability, is_ruled_out

SMALL, LARGE = 8, 1 << 20
SIZES = (SMALL, LARGE)


def point(size: int, high: float, pairs: int = 20, speed: str = "all") -> PointEvidence:
    gain = Interval(1.0, 0.98, high, pairs)
    return PointEvidence("allreduce", size, speed, 1e-5, 1e-5, gain, Verdict.UNDECIDED)


POINTS = (point(SMALL, 1.41), point(LARGE, 1.07))
FOUND = {SMALL: 0.33, LARGE: 0.05}


def test_a_range_names_the_sizes_at_which_least_is_known() -> None:
    assert describe_detectability(SIZES, POINTS, 0.02, FOUND) == (
        "no speedup was shown here; up to 41 % at 8 B is not ruled out; "
        "minimum detectable effects up to 33 % at 8 B (each found in 9 of 10 cases)"
    )


def test_sizes_of_which_no_effect_is_known_are_not_among_those_with_one() -> None:
    noisy = point(1024, 1.1)
    said = describe_detectability((*SIZES, 1024), (*POINTS, noisy), 0.02, FOUND)
    assert "effects at 2 of 3 sizes up to 33 % at 8 B (each" in said
    few = replace(POINTS[0], gain=replace(POINTS[0].gain, pairs=7))
    assert describe_detectability(SIZES, (few, POINTS[1]), 0.02, FOUND).endswith(
        "; minimum detectable effect 5 % at 1 MiB (found in 9 of 10 cases)"
    )


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (SMALL, r"at 8 B; up to 41 % is not ruled out; .* effect 33 % at 8 B \(found"),
        (LARGE, r"at 1 MiB; up to 7 % is not ruled out; .* effect 5 % at 1 MiB \(found"),
    ],
)
def test_a_size_has_its_own_numbers(size: int, said: str) -> None:
    words = describe_detectability((size,), POINTS, 0.02, FOUND)
    assert re.search(said, words), words


@pytest.mark.parametrize(
    ("points", "found", "said"),
    [
        ((), {}, ""),
        (
            (),
            {LARGE: 0.05},
            "no candidate kept a speedup in fresh runs at 1 MiB; "
            "minimum detectable effect 5 % at 1 MiB (found in 9 of 10 cases)",
        ),
        ((point(LARGE, 1.4, 2),), {}, "too few pairs at 1 MiB to say anything"),
        ((point(LARGE, 1.4, speed="fast"),), {}, "too few pairs at 1 MiB to say anything"),
        ((point(LARGE, 1.01),), {}, "a speedup of 2 % is ruled out at 1 MiB"),
        (
            (point(LARGE, 30.0),),
            {},
            "nothing is known at 1 MiB: too noisy; make more runs, on a quieter machine",
        ),
        (
            (point(LARGE, 1.5, pairs=7),),
            {LARGE: 0.4},
            "no speedup was shown at 1 MiB; up to 50 % is not ruled out",
        ),
        (
            (point(LARGE, 1.5),),
            {},
            "no speedup was shown at 1 MiB; up to 50 % is not ruled out",
        ),
    ],
)
def test_what_is_known_of_one_size(
    points: tuple[PointEvidence, ...], found: dict[int, float], said: str
) -> None:
    assert describe_detectability((LARGE,), points, 0.02, found) == said


def test_a_range_with_a_size_without_pairs_says_little() -> None:
    points = (point(SMALL, 1.41, 1), point(LARGE, 1.07))
    assert describe_detectability(SIZES, points, 0.02, FOUND).startswith(
        "too few pairs at some of these sizes"
    )


def test_what_is_ruled_out_at_a_size() -> None:
    points = (point(SMALL, 1.41), point(LARGE, 1.01))
    assert [is_ruled_out(size, points, 0.02) for size in SIZES] == [False, True]
    assert not is_ruled_out(64, points, 0.02)


def test_a_machine_state_that_speaks_against_a_speedup_is_named() -> None:
    overall = PointEvidence(
        "allreduce", LARGE, "all", 1e-5, 1e-5, Interval(1.14, 1.05, 1.23, 37), Verdict.UNDECIDED
    )
    states = [
        PointEvidence("allreduce", LARGE, speed, 1e-5, 1e-5, gain, Verdict.UNDECIDED)
        for speed, gain in (
            ("slow", Interval(1.4, 1.26, 1.55, 9)),
            ("fast", Interval(0.94, 0.92, 0.96, 3)),
        )
    ]
    against = "0.92x to 0.96x (0.94x, 3 pairs) at 1 MiB (fast machine state)"
    said = f"faster at 1 MiB, but not in every state: {against}"
    assert describe_detectability((LARGE,), [overall, *states], 0.02, FOUND) == said
    both = describe_detectability(SIZES, [POINTS[0], overall, *states], 0.02, FOUND)
    assert both.startswith(f"{said}; no speedup was shown at 8 B; up to 41 %")
