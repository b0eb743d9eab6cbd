"""The real benchmark against the contract: every line valid, every number consistent."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bench_runs import CONTRACT, RunBench
from jsonschema import Draft202012Validator
from made_files import write_script

from commtune.kernels.bench import NativeProgram
from commtune.kernels.records import _CONTRACT, read_records
from commtune.model import DEFAULT, Operation, RunRequest, Timing, Workload


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(CONTRACT)
    assert CONTRACT["$defs"]["header"]["properties"]["contract"]["const"] == _CONTRACT


#: Those with other records beside a whole for each size are in test_bench_patterns.py.
_IN_PIECES = (Operation.MATRIX, Operation.STRIPING, Operation.PAIRS)


@dataclass(frozen=True)
class _Moved:
    """What 1,000 bytes of float32 (250 elements) over three ranks come to, by formulas.

    Attributes:
        blocks: what ranks receive, each once, in blocks of 1,000 bytes.
        answers: elements by which receivers answer.
    """

    total: int
    per_peer: int
    bus_factor: float
    made_of: str = "messages"
    blocks: int | None = None
    answers: int = 0


_MOVED = {
    Operation.PING_PONG: _Moved(1000, 1000, 1),
    Operation.BIDIRECTIONAL: _Moved(1000, 1000, 1),
    Operation.STREAM: _Moved(64 * 1000, 1000, 1, blocks=1, answers=1),
    Operation.ALLREDUCE: _Moved(1000, 1000, 4 / 3, "call"),
    Operation.REDUCE: _Moved(1000, 1000, 1, "call"),
    Operation.BROADCAST: _Moved(1000, 1000, 1, "call"),
    Operation.ALLGATHER: _Moved(996, 332, 2 / 3, "call"),
    Operation.REDUCE_SCATTER: _Moved(996, 332, 2 / 3, "call"),
    Operation.ALLTOALL: _Moved(996, 332, 2 / 3, "call"),
    Operation.RING: _Moved(1000, 1000, 1, blocks=3),
    Operation.INCAST: _Moved(2000, 1000, 1, blocks=2),
    Operation.ONE_TO_MANY: _Moved(2000, 1000, 1, blocks=2),
    Operation.SELF: _Moved(1000, 1000, 1, blocks=3),
}


@pytest.mark.parametrize("operation", [o for o in Operation if o not in _IN_PIECES])
def test_every_operation_follows_the_contract(run_bench: RunBench, operation: Operation) -> None:
    run = run_bench(f"--op={operation}", "--sizes=8,1000,4096,100000", "--run-id=one", ranks=3)
    header, *measurements, footer = run.valid_records()
    assert header["operation"] == operation
    assert header["run_id"] == "one"
    assert [rank["rank"] for rank in header["rank_info"]] == [0, 1, 2]
    assert [m["bytes"] for m in measurements] == [8, 1000, 4096, 100000]
    assert all(m["checked"] > 0 and m["wrong"] == 0 for m in measurements)
    assert footer["status"] == "ok"
    assert footer["measurements"] == 4
    if operation in _MOVED:
        _check_moved(measurements[1], _MOVED[operation])


def _check_moved(found: Mapping[str, Any], moved: _Moved) -> None:
    assert found["bytes_total"] == moved.total
    assert found["bytes_per_peer"] == moved.per_peer
    assert found["algbw_Bps"] == pytest.approx(moved.total / found["time_s"]["median"], rel=1e-6)
    assert found["busbw_Bps"] == pytest.approx(moved.bus_factor * found["algbw_Bps"], rel=1e-6)
    assert found["made_of"] == moved.made_of
    assert "part" not in found
    if moved.blocks is not None:  # before and after the samples
        assert found["checked"] == 2 * (250 * moved.blocks + moved.answers)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("allreduce", 4 / 3), ("allgather", 2 / 3), ("alltoall", 2 / 3), ("broadcast", 1.0)],
)
def test_numbers_agree_with_the_samples(
    run_bench: RunBench, operation: str, factor: float
) -> None:
    run = run_bench(
        f"--op={operation}", "--sizes=1200", "--max-samples=3", "--min-samples=3",
        "--time-cap=10", ranks=3,
    )  # fmt: skip
    _, measurement, _ = run.valid_records()
    samples_s = [ns * 1e-9 for ns in measurement["samples_ns"]]
    times = measurement["time_s"]
    # Samples are written in tenths of a nanosecond, hence the absolute tolerance.
    assert measurement["samples"] == len(samples_s)
    assert times["median"] == pytest.approx(statistics.median(samples_s), rel=1e-6, abs=1e-10)
    assert times["mean"] == pytest.approx(statistics.fmean(samples_s), rel=1e-6, abs=1e-10)
    assert times["stdev"] == pytest.approx(statistics.stdev(samples_s), rel=1e-6, abs=1e-10)
    assert (times["min"], times["max"]) == pytest.approx(
        (min(samples_s), max(samples_s)), rel=1e-6, abs=1e-10
    )
    low, high = measurement["median_ci_s"]
    assert low <= times["median"] <= high
    assert measurement["algbw_Bps"] == pytest.approx(1200 / times["median"], rel=1e-6)
    assert measurement["busbw_Bps"] == pytest.approx(factor * measurement["algbw_Bps"], rel=1e-6)


def test_reader_and_benchmark_understand_each_other(
    run_bench: RunBench, executable: Path, tmp_path: Path
) -> None:
    request = RunRequest(
        run_id="r-1",
        configuration=DEFAULT,
        workload=Workload(Operation.REDUCE_SCATTER, (64, 65536), dtype="int32", reduction="max"),
        timing=Timing(warmup=1, min_samples=4, max_samples=8, relative_ci=0.5, time_cap_s=10.0),
    )
    program = NativeProgram(executable, ("HOME", "COMMTUNE_NOT_SET"))
    run = run_bench(*program.arguments(request, tmp_path / "records.jsonl")[1:])
    records = program.read(run.records, request)
    assert records.problems == ()
    assert records.header is not None
    assert records.footer is not None
    assert [m.bytes for m in records.measurements] == [64, 65536]
    assert all(4 <= len(m.samples_s) <= 8 for m in records.measurements)
    assert all(0 < m.min_s <= m.median_s <= m.max_s < 10 for m in records.measurements)
    assert [m.algbw for m in records.measurements] == pytest.approx(
        [m.bytes / m.median_s for m in records.measurements], rel=1e-6
    )


def test_header_shows_what_each_rank_sees(run_bench: RunBench) -> None:
    odd = 'quo"te \\ back\tslash ü'
    run = run_bench(
        "--op=allreduce", "--sizes=8", "--env-names=COMMTUNE_ODD,COMMTUNE_UNSET",
        environment={"COMMTUNE_ODD": odd, "COMMTUNE_SECRET": "not to be stored"},
    )  # fmt: skip
    header = run.valid_records()[0]
    assert [rank["environment"] for rank in header["rank_info"]] == [{"COMMTUNE_ODD": odd}] * 2
    assert "not to be stored" not in run.records.read_text()
    assert any("libmpi" in path for path in header["libraries"])
    assert header["rank_info"][0]["cpus"]
    assert header["nodes"] == 1


def test_environment_that_is_no_utf8_is_still_json(run_bench: RunBench) -> None:
    value = os.fsdecode(b"caf\xe9")
    run = run_bench(
        "--op=allreduce", "--sizes=8", "--env-names=COMMTUNE_ODD",
        environment={"COMMTUNE_ODD": value},
    )  # fmt: skip
    assert run.valid_records()[0]["rank_info"][1]["environment"] == {"COMMTUNE_ODD": "caf\ufffd"}


@pytest.mark.alone
def test_canary_is_measured_where_two_ranks_share_a_node(
    run_bench: RunBench, tmp_path: Path
) -> None:
    first, second, *_ = [*sorted(os.sched_getaffinity(0)), None]
    if second is None:
        pytest.skip("both ranks would take turns on one CPU")
    # A machine with more to do than CPUs may keep ranks on one of them for a whole run.
    script = write_script(
        tmp_path / "bench-on-its-cpu",
        f'[ "$PMI_RANK" = 0 ] && cpu={first} || cpu={second}\n'
        f'exec taskset --cpu-list $cpu {run_bench.executable} "$@"',
    )
    run = replace(run_bench, executable=script)("--op=allreduce", "--sizes=8,16,32,64")
    canaries = [m["canary_ns"] for m in run.valid_records()[1:-1]]
    measured = [value for c in canaries for value in (c["before"], c["after"]) if value]
    # A busy machine can keep the two ranks apart now and then, never all the time.
    assert len(measured) >= 4
    assert all(5 < value < 100_000 for value in measured)


def test_one_rank_has_neither_canary_nor_skew(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", "--sizes=8", ranks=1)
    _, measurement, _ = run.valid_records()
    assert measurement["canary_ns"] == {"before": None, "after": None}
    assert measurement["rank_skew"] is None
    assert measurement["busbw_Bps"] == 0


def test_more_ranks_than_cpus_are_flagged_in_every_record(run_bench: RunBench) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        run = run_bench(
            "--op=allreduce", "--sizes=8,64", "--min-samples=1", "--max-samples=1", "--warmup=0"
        )
    finally:
        os.sched_setaffinity(0, allowed)
    header, *measurements, _ = run.valid_records()
    assert header["oversubscribed"] is True
    assert [m["oversubscribed"] for m in measurements] == [True, True]


def test_short_operations_are_batched_and_long_ones_are_not(run_bench: RunBench) -> None:
    # One rank waits for nobody: a busy machine makes its short operations no longer.
    run = run_bench("--op=allreduce", "--sizes=8,16777216", "--max-samples=10", ranks=1)
    small, large = run.valid_records()[1:-1]
    assert small["batch"] > 1
    assert small["batch"] * small["time_s"]["median"] > 2e-6
    assert large["batch"] == 1


def test_the_operations_of_a_sample_can_be_named(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", "--sizes=8,4096", "--operations=3", "--max-samples=10")
    header, *measurements, _ = run.valid_records()
    assert header["timing"]["operations"] == 3
    assert [m["batch"] for m in measurements] == [3, 3]


def test_records_go_to_standard_output_without_a_file(run_bench: RunBench) -> None:
    run = run_bench("--op=broadcast", "--sizes=8", "--records=")
    kinds = [json.loads(line)["record"] for line in run.completed.output.splitlines()]
    assert kinds == ["header", "measurement", "footer"]
    assert read_records(run.records).header is None
