"""Data, stopping rule and statistics: the same numbers as the native benchmark gives."""

from __future__ import annotations

import statistics

import numpy
import pytest

from commtune.kernels.python_bench.data import DataPattern, Expected
from commtune.kernels.python_bench.layout import OPERATIONS, lay_out
from commtune.kernels.python_bench.sampling import (
    StoppingRule,
    _median_bounds,
    batch_for,
    summarise_samples,
)
from commtune.kernels.python_bench.work import _expected_by
from commtune.model.operations import IN_PYTHON

#: What src/operations/check.cpp writes: elements 0, 1, 2, 3, 4095 and 4999.
_NATIVE = [
    ("float32", "sum", 1, 0, 2, [5081977, 4021783, 226247, 2830046, 2878916, 572573]),
    ("float32", "sum", 1, 3, 4, [4158471, 1752268, 2963677, 3284037, 3497136, 768126]),
    ("float64", "sum", 7, 1, 3, [
        615684749998480, 439238629249870, 726380529770771, 593019214485033, 1067849059496921,
        1026491944900588,
    ]),
    ("int32", "max", 9223372036854775807, 2, 5, [
        1754110047, 793042066, 1446135221, 1265197676, 706008791, 1224422936,
    ]),
    ("uint8", "sum", 1, 1, 2, [114, 17, 1, 86, 1, 100]),
    ("uint8", "sum", 42, 17, 100, [1, 0, 1, 1, 0, 1]),
]  # fmt: skip


def test_files_are_held_against_what_it_does() -> None:
    assert {str(operation) for operation in IN_PYTHON} == set(OPERATIONS)


@pytest.mark.parametrize(("dtype", "reduction", "seed", "rank", "ranks", "values"), _NATIVE)
def test_the_data_is_the_native_benchmarks(
    dtype: str, reduction: str, seed: int, rank: int, ranks: int, values: list[int]
) -> None:
    data = numpy.zeros(5000, dtype=dtype)
    DataPattern(numpy, dtype, reduction, seed, ranks).fill(data, rank)
    assert [int(data[i]) for i in (0, 1, 2, 3, 4095, 4999)] == values


def test_long_data_goes_on_where_its_pieces_meet() -> None:
    pattern = DataPattern(numpy, "int32", "sum", 1, 2)
    whole = numpy.zeros(600_000, dtype="int32")
    pattern.fill(whole, 1)
    assert pattern.count_different(whole[299_500:], pattern.table(1), 299_500) == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_spoilt_element_is_found(operation: str) -> None:
    ranks = 4
    layout = lay_out(operation, "float32", 4096, ranks)
    pattern = DataPattern(numpy, "float32", "sum", 1, ranks)
    for rank in range(ranks):
        received = numpy.zeros(layout.receive_count, dtype="float32")
        expected = _expected_by(layout, rank)
        pattern.poison(received)
        checked, wrong = pattern.count_wrong(received, expected)
        assert checked == wrong == sum(part.count for part in expected)
        for part in expected:
            _write(pattern, received, part)
        assert pattern.count_wrong(received, expected) == (checked, 0)
        for part in expected:
            received[part.offset + part.count - 1] += 1
        assert pattern.count_wrong(received, expected) == (checked, len(expected))


def _write(pattern: DataPattern, received: numpy.ndarray, part: Expected) -> None:
    table = pattern.table(part.source)
    index = numpy.arange(part.first, part.first + part.count, dtype=numpy.uint64)
    entries = (index * numpy.uint64(0x9E3779B97F4A7C15)) >> numpy.uint64(52)
    received[part.offset : part.offset + part.count] = table[entries]


def test_totals_are_rounded_down_but_never_to_none() -> None:
    assert lay_out("alltoall", "float32", 100, 3).bytes_total == 96
    assert lay_out("allgather", "float32", 4, 3).bytes_total == 12
    stream = lay_out("stream", "float32", 8, 2)
    assert (stream.bytes_per_peer, stream.bytes_total) == (8, 512)
    assert lay_out("stream", "float32", 8, 2, window=3).bytes_total == 24


def test_the_interval_of_the_median_is_exact() -> None:
    # 6 values: 2 / 2^6 = 3.1 % lie outside of the smallest and the largest; fewer hold none.
    assert [_median_bounds(n) for n in (1, 5, 6, 9, 20)] == [
        (0, 0),
        (0, 4),
        (0, 5),
        (1, 7),
        (5, 14),
    ]


def test_statistics_agree_with_pythons() -> None:
    values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    found = summarise_samples(values)
    assert found.median == statistics.median(values)
    assert found.times["stdev"] == pytest.approx(statistics.stdev(values))
    assert (found.median_low, found.median_high) == (1.0, 9.0)


def test_stopping() -> None:
    rule = StoppingRule(warmup=5, min_samples=10, max_samples=200, time_cap_s=0.05)
    assert rule.stop([1.0] * 9, 0.9) is None
    assert rule.stop([1.0] * 9, 1.0) == "hard-cap"
    assert rule.stop([1.0] * 10, 0.0) == "converged"
    assert rule.stop([1.0, 2.0] * 5, 0.06) == "time-cap"
    assert rule.stop([1.0, 2.0] * 100, 0.0) == "max-samples"
    assert rule.next_chunk(0, 1e-6) == 10
    assert rule.next_chunk(100, 1e-6) == 25
    assert rule.next_chunk(0, 1.0) == 1
    assert (rule.next_warmup(0, 0.0, 1e-6), rule.next_warmup(0, 0.0, 0.02)) == (5, 1)
    assert rule.next_warmup(1, 0.025, 1e-6) == 0


def test_batches_are_powers_of_two_up_to_a_limit() -> None:
    assert [batch_for(t, 1e-9) for t in (11e-6, 9e-6, 1e-6, 1e-9)] == [1, 2, 16, 1024]
    assert batch_for(11e-6, 1e-6) == 32
