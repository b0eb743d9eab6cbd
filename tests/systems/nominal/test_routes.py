"""Paths and rings against small graphs, and against trying everything; messages against counts."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, pairwise, permutations

import pytest

from commtune.systems.nominal.fabric import Fabric, Link, _shortest_paths, disjoint_rings
from commtune.systems.nominal.traffic import NominalQuestion, Traffic


def fabric(gpus: int, *links: tuple[int, int, int]) -> Fabric:
    """Links of 1 byte per second."""
    return Fabric("x", gpus, tuple(Link(a, b, count, 1.0) for a, b, count in links))


def test_of_paths_that_are_as_short_the_widest_counts() -> None:
    found = fabric(4, (0, 1, 1), (1, 3, 9), (0, 2, 3), (2, 3, 4))
    assert set(_shortest_paths(found, 0, 3)) == {(0, 1, 3), (0, 2, 3)}
    assert found.widest_path(0, 3) == (0, 2, 3)
    assert found.pair_bandwidths()[0, 3] == 3


def test_a_shorter_path_goes_before_a_wider_one() -> None:
    assert fabric(3, (0, 2, 1), (0, 1, 8), (1, 2, 8)).widest_path(0, 2) == (0, 2)


def test_gpus_that_nothing_joins_have_no_path() -> None:
    found = fabric(4, (0, 1, 1), (2, 3, 1))
    assert found.widest_path(0, 2) is None
    assert (0, 2) not in found.pair_bandwidths()


def most_rings(gpus: int, free: Counter[frozenset[int]]) -> int:
    """By trying every ring, then every other beside it."""
    best = 0
    for order in permutations(range(1, gpus)):
        ring = Counter(frozenset(hop) for hop in pairwise((0, *order, 0)))
        if all(free[link] >= used for link, used in ring.items()):
            best = max(best, 1 + most_rings(gpus, free - ring))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_rings_are_the_most_there_are(seed: int) -> None:
    chance = random.Random(seed)
    counts = {pair: chance.randint(0, 3) for pair in combinations(range(5), 2)}
    found = fabric(5, *((a, b, count) for (a, b), count in counts.items() if count))
    free = Counter({frozenset(pair): count for pair, count in counts.items()})
    assert disjoint_rings(found, (0, 1, 2, 3, 4))[0] == most_rings(5, free)


@pytest.mark.parametrize(
    ("operation", "outbound"),
    [("rail", 3 * 2), ("asymmetric", 3 * 8 * 2), ("symmetric", 3 * 3 * 2)],
)
def test_what_counts_of_a_pattern_of_groups(operation: str, outbound: int) -> None:
    """CommBench: k (n-1) messages, times g or k; in and out where both go."""

    def counted(direction: str) -> float:
        found = Traffic.of(
            NominalQuestion(operation, 24, 3, group_size=8, active=3, direction=direction)
        )
        assert found is not None
        return found.counted

    assert counted("outbound") == outbound
    assert counted("bidirectional") == 2 * outbound
    assert counted("omnidirectional") == 2 * outbound


def test_messages_of_an_asymmetric_pattern_go_to_all_of_the_other_group() -> None:
    question = NominalQuestion(
        "asymmetric", 16, 2, group_size=8, active=2, direction="bidirectional"
    )
    found = Traffic.of(question)
    assert found is not None
    first, second = found.crossing
    assert first == {(gpu, way): 8 for gpu in (0, 1) for way in ("out", "in")}
    assert second == {(gpu, way): 2 for gpu in range(8) for way in ("out", "in")}
