"""Several operations after one another in the same processes: --then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_runs import RunBench

from commtune.kernels.records import read_records
from commtune.model import DEFAULT, Operation, RunRequest, Timing, Workload

_FEW = ("--min-samples=2", "--max-samples=2", "--warmup=1", "--time-cap=0.01")


def test_each_is_measured_and_checked_as_by_itself(run_bench: RunBench) -> None:
    # An incast receives more than the ranks of an allreduce, a ping-pong is half of what is timed.
    names = ("allreduce", "incast", "ping-pong")
    later = ",".join(names[1:])
    run = run_bench("--op=allreduce", f"--then={later}", "--sizes=1000,8", *_FEW, ranks=3)
    header, *found, footer = run.valid_records()
    assert [(m.get("operation", header["operation"]), m["bytes"]) for m in found] == [
        (name, size) for name in names for size in (1000, 8)
    ]
    assert footer["measurements"] == len(found)
    for one in found[::2]:
        name = one.get("operation", header["operation"])
        alone = run_bench(f"--op={name}", "--sizes=1000", *_FEW, ranks=3)
        _, wanted, _ = alone.valid_records()
        for key in ("count", "bytes_meaning", "bytes_total", "bytes_per_peer", "made_of"):
            assert one[key] == wanted[key], (name, key)
        assert (one["checked"], one["wrong"]) == (wanted["checked"], 0)
        factor = wanted["busbw_Bps"] / wanted["algbw_Bps"]
        assert one["busbw_Bps"] / one["algbw_Bps"] == pytest.approx(factor)


def test_commtune_takes_no_such_run_for_its_own(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", "--then=ring", "--sizes=8", *_FEW)
    records = read_records(run.records)
    assert [m.bytes for m in records.measurements] == [8]
    assert records.problems[0] == "line 3: a measurement of ring, which was not requested"


def test_what_was_asked_for_is_read_with_its_operation(run_bench: RunBench) -> None:
    workload = Workload(Operation.STREAM, (8, 64), then=(Operation.RING, Operation.ALLTOALL))
    request = RunRequest("r", DEFAULT, workload, Timing())
    run = run_bench("--op=stream", "--then=ring,alltoall", "--sizes=8,64", "--run-id=r", *_FEW)
    records = read_records(run.records, request)
    assert records.problems == ()
    assert [(m.operation, m.bytes) for m in records.measurements] == [
        (name, size) for name in ("", "ring", "alltoall") for size in (8, 64)
    ]
    fewer = replace(request, workload=replace(workload, then=(Operation.RING,)))
    problems = read_records(run.records, fewer).problems
    assert problems[0] == "line 6: a measurement of alltoall, which was not requested"
    doubled = [*run.lines[:4], run.lines[3], *run.lines[4:]]
    run.records.write_text("".join(f"{line}\n" for line in doubled))
    assert read_records(run.records, request).problems == (
        "line 5: a second measurement of ring of 8 bytes",
    )
