"""What is recommended from evidence written down by hand: ranges, their borders, profiles."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import comparison, point
from stated_evidence import LARGE, SIZES, A, B, faster, plan, slower, unharmed, unknown

from commtune.formatting import describe_conditions
from commtune.model import (
    DEFAULT,
    Aggressor,
    AggressorPattern,
    Configuration,
    PointEvidence,
    Timing,
    Verdict,
)
from commtune.tuner.outcome.profiles import ProfileMaker
from commtune.tuner.outcome.ranges import _find_good, _is_unharmed, find_ranges, range_boundaries


def cut(
    found: Mapping[Configuration, Sequence[PointEvidence]], sizes: Sequence[int] = SIZES
) -> list[tuple[Configuration, tuple[int, ...]]]:
    return [(r.configuration, r.sizes) for r in find_ranges(plan(sizes), comparison(found))]


def test_one_configuration_that_is_faster_everywhere_is_one_range() -> None:
    assert cut({A: [faster(s) for s in SIZES]}) == [(A, SIZES)]


def test_without_evidence_the_default_keeps_all_sizes() -> None:
    assert cut({}) == [(DEFAULT, SIZES)]
    assert cut({A: [unknown(s) for s in SIZES]}) == [(DEFAULT, SIZES)]
    assert cut({A: [slower(s) for s in SIZES]}) == [(DEFAULT, SIZES)]


def test_few_pairs_are_no_evidence() -> None:
    assert cut({A: [point(s, 1.3, 1.2, 1.4, pairs=4) for s in SIZES]}) == [(DEFAULT, SIZES)]


def test_sizes_before_and_after_a_gain_keep_the_default() -> None:
    found = {A: [unharmed(8), faster(64), faster(512), unharmed(4096), slower(32768)]}
    assert cut(found) == [(DEFAULT, (8,)), (A, (64, 512)), (DEFAULT, (4096, 32768))]


def test_neighbours_share_what_is_as_good_as_the_best() -> None:
    """B is best at every other size, but A is so close that the intervals can't tell."""
    ratios = {8: (1.30, 1.31), 64: (1.31, 1.30), 512: (1.30, 1.31)}
    found = {
        A: [faster(size, one) for size, (one, _) in ratios.items()],
        B: [faster(size, other) for size, (_, other) in ratios.items()],
    }
    assert len(cut(found, (8, 64, 512))) == 1


def test_what_is_surely_beaten_does_not_share() -> None:
    found = {A: [faster(8, 1.5), faster(64, 1.2)], B: [faster(8, 1.2), faster(64, 1.5)]}
    assert cut(found, (8, 64)) == [(A, (8,)), (B, (64,))]


def test_a_size_that_shows_nothing_is_bridged_where_it_is_unharmed() -> None:
    assert cut({A: [faster(8), unharmed(64), faster(512)]}, (8, 64, 512)) == [(A, (8, 64, 512))]
    several = {A: [faster(8), unharmed(64), unharmed(512), faster(4096)]}
    assert cut(several, SIZES[:4]) == [(A, SIZES[:4])]


@pytest.mark.parametrize("middle", [unknown(64), slower(64), slower(64, 0.97)])
def test_a_size_that_is_or_may_be_harmed_is_not_bridged(middle: PointEvidence) -> None:
    """Nor one where it is surely slower, if by less than the tolerance: a range promises gains."""
    assert cut({A: [faster(8), middle, faster(512)]}, (8, 64, 512)) == [
        (A, (8,)),
        (DEFAULT, (64,)),
        (A, (512,)),
    ]


def test_a_size_that_was_not_measured_is_not_bridged() -> None:
    assert len(cut({A: [faster(8), faster(512)]}, (8, 64, 512))) == 3


def test_bridging_never_costs_more_than_it_gains() -> None:
    """Three sizes within the tolerance, each a little slower, outweigh two small gains."""
    small = [point(s, 0.96, 0.951, 1.001) for s in (64, 512, 4096)]
    found = {A: [faster(8, 1.04), *small, faster(32768, 1.04)]}
    assert cut(found) == [(A, (8,)), (DEFAULT, (64, 512, 4096)), (A, (32768,))]


def test_the_ranges_are_the_fewest() -> None:
    """From the left, A and B share 512 and 4096 as well; but then A can't bridge 64."""
    found = {
        A: [faster(8), unharmed(64), faster(512), unknown(4096)],
        B: [unknown(8), unknown(64), faster(512), faster(4096)],
    }
    assert cut(found, SIZES[:4]) == [(A, (8, 64, 512)), (B, (4096,))]


def test_the_smaller_of_two_that_are_nearly_as_good_is_taken() -> None:
    found = {LARGE: [faster(8, 1.30)], A: [faster(8, 1.29)]}
    assert cut(found, (8,)) == [(A, (8,))]


def test_a_larger_one_that_gains_much_more_is_taken() -> None:
    wide = point(8, 1.3, 1.1, 1.6)
    found = {LARGE: [wide], A: [point(8, 1.2, 1.1, 1.35)]}
    assert _find_good(8, comparison(found)) == {LARGE}
    assert cut(found, (8,)) == [(LARGE, (8,))]


_KINDS = {
    "faster": faster,
    "unharmed": unharmed,
    "unknown": unknown,
    "slower": slower,
}
_rows = st.lists(st.sampled_from(sorted(_KINDS)), min_size=5, max_size=5)


def _evidence(
    rows: Mapping[Configuration, Sequence[str]],
) -> dict[Configuration, list[PointEvidence]]:
    return {
        c: [_KINDS[kind](size) for size, kind in zip(SIZES, kinds, strict=True)]
        for c, kinds in rows.items()
    }


def _fewest(rows: Mapping[Configuration, Sequence[str]]) -> int:
    """The fewest ranges by trying every way to cut five sizes."""

    def fits(first: int, last: int) -> bool:
        gains = [any(r[i] == "faster" for r in rows.values()) for i in range(first, last)]
        if not any(gains):
            return True
        return (
            gains[0]
            and gains[-1]
            and any(
                all(
                    r[i] == "faster" or (r[i] == "unharmed" and not gains[i - first])
                    for i in range(first, last)
                )
                for r in rows.values()
            )
        )

    best = len(SIZES)
    for mask in range(1 << (len(SIZES) - 1)):
        cuts = [0, *(i + 1 for i in range(len(SIZES) - 1) if mask >> i & 1), len(SIZES)]
        if all(fits(a, b) for a, b in pairwise(cuts)):
            best = min(best, len(cuts) - 1)
    return best


@given(_rows, _rows, _rows)
def test_ranges_hold_every_size_once_and_are_the_fewest(
    a: list[str], b: list[str], c: list[str]
) -> None:
    rows = {A: a, B: b, LARGE: c}
    found = cut(_evidence(rows))
    assert [size for _, sizes in found for size in sizes] == list(SIZES)
    assert len(found) == _fewest(rows)
    for configuration, sizes in found:
        for size in sizes:
            kinds = {key: row[SIZES.index(size)] for key, row in rows.items()}
            if configuration.is_default:
                assert "faster" not in kinds.values()
            else:
                assert kinds[configuration] in ("faster", "unharmed")
                assert kinds[configuration] == "faster" or "faster" not in kinds.values()


# Borders and profiles


def test_borders_show_both_configurations_on_both_sides() -> None:
    found = comparison({A: [faster(8, 1.5), faster(64, 1.2)], B: [unharmed(8), faster(64, 1.6)]})
    (border,) = range_boundaries(find_ranges(plan((8, 64)), found), found)
    assert (border.below, border.above) == (8, 64)
    assert {(side.bytes, side.configuration["V"], side.ratio) for side in border.sides} == {
        (8, "a", 1.5),
        (8, "b", 1.0),
        (64, "a", 1.2),
        (64, "b", 1.6),
    }


def test_unharmed_is_about_the_whole_interval() -> None:
    found = comparison({A: [point(8, 1.2, 0.94, 1.5)]})
    assert not _is_unharmed(A, (8,), found, 0.05)
    assert _is_unharmed(A, (8,), found, 0.07)
    assert not _is_unharmed(A, (8, 64), found, 0.07)


def test_profiles_follow_the_ranges_and_add_one_for_all_sizes() -> None:
    rng = random.Random(1)
    rows = [unharmed(8), *(faster(s, rng.uniform(1.2, 1.3)) for s in SIZES[1:])]
    profiles = ProfileMaker(plan(), comparison({A: rows})).recommend()
    assert [(p.name, p.configuration, p.verdict) for p in profiles] == [
        ("allreduce-8-8", DEFAULT, Verdict.UNDECIDED),
        ("allreduce-64-32768", A, Verdict.FASTER),
        ("all-sizes", A, Verdict.FASTER),
    ]


def test_each_profile_says_what_it_was_measured_beside() -> None:
    found = comparison({A: [unknown(8), *(faster(s) for s in SIZES[1:])]})
    noisy = replace(plan(), aggressor=Aggressor(AggressorPattern.ALLTOALL, 3))
    said = "measured beside an aggressor: alltoall of 128 KiB from 3 ranks on 3 nodes"
    for with_noise, without in zip(
        ProfileMaker(noisy, found).recommend(),
        ProfileMaker(plan(), found).recommend(),
        strict=True,
    ):
        assert describe_conditions(with_noise.conditions) == said
        assert with_noise.note == without.note


@pytest.mark.parametrize(
    ("timing", "said"),
    [
        (Timing(), ""),
        (Timing(mode="batched", operations=20), "timed: in batches of 20"),
        (
            Timing(mode="batched", operations=100, graph=True),
            "timed: in batches of 100, recorded as graphs",
        ),
        (
            Timing(mode="batched", operations=20, timer="device"),
            "timed: in batches of 20, by the device's clock",
        ),
        (Timing(timer="device"), "timed: by the device's clock"),
    ],
)
def test_each_profile_says_how_it_was_timed(timing: Timing, said: str) -> None:
    found = comparison({A: [unknown(8), *(faster(s) for s in SIZES[1:])]})
    for profile in ProfileMaker(replace(plan(), timing=timing), found).recommend():
        assert describe_conditions(profile.conditions) == said


def test_noise_is_part_of_the_question_where_there_is_some() -> None:
    assert "aggressor" not in plan().comparable({})
    noisy = replace(
        plan(), aggressor=Aggressor(AggressorPattern.INCAST, 2, burst_s=0.5, pause_s=1)
    )
    assert noisy.comparable({})["aggressor"] == {
        "pattern": "incast", "nodes": 2, "ranks_per_node": 1, "message_bytes": 131072,
        "burst_s": 0.5, "pause_s": 1,
    }  # fmt: skip
