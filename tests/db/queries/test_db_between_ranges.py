"""A size between two ranges of a campaign is answered by the range that ends nearer to it."""

from __future__ import annotations

import database_values as given
import pytest
from best_rows import best_profiles

from commtune.db.storage.store import Store
from commtune.errors import NoAnswer
from commtune.model import DEFAULT, Interval, PointEvidence, Profile, Verdict

SIZES = (1024, 4096, 65536, 262144)


def ranged(low: int, high: int, *, name: str = "", verdict: Verdict = Verdict.FASTER) -> Profile:
    """A profile with evidence at every size of its campaign, as those that gain have."""
    gain = Interval(1.2, 1.1, 1.3, 20)
    points = tuple(PointEvidence("allreduce", s, "all", 2e-5, 1e-5, gain, verdict) for s in SIZES)
    return given.profile(
        name or f"allreduce-{low}-{high}", bytes_low=low, bytes_high=high, points=points,
        guards=(), verdict=verdict,
        configuration=given.TUNED if verdict is Verdict.FASTER else DEFAULT,
    )  # fmt: skip


def stored(store: Store, name: str, *profiles: Profile) -> None:
    store.save_profiles(store.open_campaign(given.campaign(name)).id, profiles)


def answers(url: str, size: int, limit: int = 100) -> list[tuple[str, int, int | None]]:
    found = best_profiles(url, "allreduce", size, limit=limit)
    return [(row.campaign, row.bytes_low, row.nearest_bytes) for row in found]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (4096, [(1024, 4096)]),
        (8192, [(1024, 4096)]),
        (16384, [(65536, 65536), (1024, 4096)]),  # as near to one as to the other
        (32768, [(65536, 65536)]),
        (100000, [(65536, 65536)]),
    ],
)
def test_the_nearer_range_answers_with_its_own_evidence(
    url: str, store: Store, size: int, expected: list[tuple[int, int]]
) -> None:
    stored(store, "two", ranged(1024, 4096, verdict=Verdict.UNDECIDED), ranged(65536, 262144))
    assert answers(url, size) == [("two", *answer) for answer in expected]


def test_it_does_so_beside_what_holds_the_size(url: str, store: Store) -> None:
    stored(store, "all", ranged(1024, 4096, verdict=Verdict.DEFAULT), ranged(65536, 262144),
           ranged(1024, 262144, name="all-sizes"))  # fmt: skip
    stored(store, "one", ranged(1024, 262144))
    assert answers(url, 40000) == [
        ("one", 1024, 65536), ("all", 1024, 65536), ("all", 65536, 65536)
    ]  # fmt: skip
    assert answers(url, 65536) == [
        ("one", 1024, 65536), ("all", 1024, 65536), ("all", 65536, 65536)
    ]  # fmt: skip
    assert answers(url, 40000, limit=1) == [("one", 1024, 65536)]


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_outside_of_what_was_measured_there_is_no_answer(
    url: str, store: Store, size: int
) -> None:
    stored(store, "two", ranged(1024, 4096), ranged(65536, 262144))
    with pytest.raises(NoAnswer, match="no profile for allreduce"):
        best_profiles(url, "allreduce", size)


def test_conditions_hold_there_too(url: str, store: Store) -> None:
    stored(store, "two", ranged(1024, 4096), ranged(65536, 262144))
    assert len(best_profiles(url, "allreduce", 8192, campaign="two", system="lap", ranks=2)) == 1
    with pytest.raises(NoAnswer):
        best_profiles(url, "allreduce", 8192, ranks=4)
