"""The tables that both benchmarks are tested with; test_golden.cpp reads the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commtune.kernels.python_bench.layout import lay_out
from commtune.kernels.python_bench.sampling import (
    StoppingRule,
    _median_bounds,
    batch_for,
    summarise_samples,
)

_GOLDEN = Path(__file__).parents[1] / "golden"
_RULE = StoppingRule(warmup=5, min_samples=10, max_samples=200, relative_ci=0.01, time_cap_s=0.05)
_TIMES = ("min", "p5", "p25", "median", "p75", "p95", "p99", "max", "mean", "stdev")


def rows(name: str) -> list[Any]:
    found = json.loads((_GOLDEN / f"{name}.json").read_text())
    assert found
    return list(found)


def test_samples_are_summed_up_as_in_the_table() -> None:
    for samples, expected in rows("summaries"):
        found = summarise_samples(samples)
        numbers = [*(found.times[name] for name in _TIMES), found.median_low, found.median_high]
        assert numbers == pytest.approx(expected, rel=1e-12)


def test_the_median_lies_between_the_bounds_of_the_table() -> None:
    assert [[n, *_median_bounds(n)] for n, *_ in rows("median_bounds")] == rows("median_bounds")


def test_a_size_is_measured_for_as_long_as_the_tables_say() -> None:
    for operation_s, resolution_s, batch in rows("batches"):
        assert batch_for(operation_s, resolution_s) == batch
    for taken, sample_s, following in rows("chunks"):
        assert _RULE.next_chunk(taken, sample_s) == following
    for done, spent_s, slowest_s, following in rows("warmups"):
        assert _RULE.next_warmup(done, spent_s, slowest_s) == following
    for samples, spent_s, word in rows("stops"):
        assert (_RULE.stop(samples, spent_s) or "") == word


def test_sizes_are_laid_out_as_in_the_table() -> None:
    for operation, dtype, size, ranks, *expected in rows("layouts"):
        found = lay_out(operation, dtype, size, ranks)
        assert expected == [
            found.count, found.bytes_per_rank, found.bytes_per_peer, found.bytes_total,
            found.send_count, found.receive_count, found.meaning,
        ]  # fmt: skip
