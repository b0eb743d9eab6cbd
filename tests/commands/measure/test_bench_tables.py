"""Tables of pairs, of parts and of groups: which number stands where, and who is named."""

from __future__ import annotations

import database_values as given
import pytest

from commtune.commands.measure import bench_results
from commtune.model import (
    Measurement,
    Operation,
    PatternParameters,
    RunResult,
    SubMeasurement,
    Workload,
)

KIB = 1024


def pair(sender: int, receiver: int, size: int, seconds: float) -> SubMeasurement:
    return SubMeasurement(_measured(size, seconds), "", (sender, receiver))


def _measured(size: int, seconds: float, moved: float = 1.0) -> Measurement:
    from dataclasses import replace

    bandwidth = moved * size / seconds
    measured = given.measurement(size, seconds)
    return replace(measured, algbw=bandwidth, busbw=bandwidth)


def result(pieces: list[SubMeasurement], measurements: list[Measurement]) -> RunResult:
    return given.result(pieces=tuple(pieces), measurements=tuple(measurements))


PAIRS = Workload(Operation.PAIRS, (8, 64 * KIB), 3)


def all_pairs() -> RunResult:
    """Rank 2 is far from the others, and slower still when it receives from 1."""
    pieces = []
    for a in range(3):
        for b in range(3):
            if a == b:
                continue
            seconds = 1e-6 * (2 if 2 in (a, b) else 1) * (2 if (a, b) == (1, 2) else 1)
            pieces += [pair(a, b, 8, seconds), pair(a, b, 64 * KIB, 8 * seconds)]
    return result(pieces, [])


def rows_below(words: str, title: str) -> list[list[str]]:
    lines = words.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    return [line.split() for line in lines[start + 2 : start + 5]]


def test_pairs_as_matrices_from_sender_to_receiver() -> None:
    words = bench_results._run_table(PAIRS, all_pairs(), {})
    assert rows_below(words, "latency at 8 B, us") == [
        ["0", "-", "1.00", "2.00"], ["1", "1.00", "-", "4.00"], ["2", "2.00", "2.00", "-"],
    ]  # fmt: skip
    fast = f"{64 * KIB / 8e-6 / 1e9:.2f}"
    slow = f"{64 * KIB / 32e-6 / 1e9:.2f}"
    moved = rows_below(words, "bandwidth at 64 KiB, GB/s")
    assert moved[0][2] == fast
    assert moved[1][3] == slow
    assert "nominal" not in words


def test_the_best_and_the_worst_pair_are_named() -> None:
    words = bench_results._run_table(PAIRS, all_pairs(), {})
    (row,) = [line for line in words.splitlines() if line.startswith("64 KiB ")]
    assert "0 -> 1" in row and "1 -> 2" in row and row.endswith("4.00")


def test_pairs_are_held_against_the_nominal_of_each() -> None:
    whole = 64 * KIB / 8e-6
    nominal = {(a, b): whole for a in range(3) for b in range(3) if a != b}
    words = bench_results._run_table(PAIRS, all_pairs(), nominal)
    shares = rows_below(words, "of the nominal bandwidth at 64 KiB, %")
    assert shares[0][1:] == ["-", "100", "50"]
    assert shares[1][3] == "25"
    assert "best 0 -> 1 100 %, worst 1 -> 2 25 %, median 50 %" in words


def test_no_pair_at_all_is_said() -> None:
    assert bench_results._run_table(PAIRS, result([], []), {}) == "no pair was measured"


def test_parts_of_striping_stand_below_the_whole() -> None:
    workload = Workload(Operation.STRIPING, (64 * KIB,), 4, shape=PatternParameters(2))
    parts = {"split": 2e-6, "translate": 5e-6, "assemble": 3e-6, "kept-apart": 16e-6}
    pieces = [SubMeasurement(_measured(64 * KIB, s), part, None) for part, s in parts.items()]
    words = bench_results._run_table(workload, result(pieces, [_measured(64 * KIB, 8e-6)]), {})
    rows = [line.split() for line in words.splitlines()[1:]]
    assert [row[-1] for row in rows[1:]] == ["4.00", "1.60", "2.67", "0.50", "0.80"]
    assert "parts kept apart" in words
    assert "kept-apart" not in words
    assert rows[0][:3] == ["64", "KiB", "whole"]
    assert rows[-1][:4] == ["parts", "together", "10.0", "us"]


@pytest.mark.parametrize(
    ("direction", "said"),
    [
        ("outbound", "what leaves the first group (1 x 3 x size)"),
        ("bidirectional", "what crosses the border of the first group (2 x 3 x size)"),
        ("omnidirectional", "what crosses the border of the first group (2 x 3 x size)"),
    ],
)
def test_groups_say_which_bandwidth_it_is(direction: str, said: str) -> None:
    workload = Workload(Operation.RAIL, (1000,), 8, shape=PatternParameters(4, 3, direction))
    measured = _measured(1000, 1e-6, 3)
    words = bench_results._run_table(workload, result([], [measured]), {})
    assert "  3.00 GB/s  " in words.splitlines()[1]
    assert words.splitlines()[-1].startswith("bandwidth as CommBench counts it")
    assert said in words
