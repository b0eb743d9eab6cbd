"""The benchmark's untimed mode: control variables, and the order of sums."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_runs import RunBench, write_records

from commtune.kernels.bench import NativeProgram
from commtune.kernels.records import read_records
from commtune.model import DEFAULT, Operation, RunRequest, Timing, Workload
from commtune.tuner.ports import SizeTrace

_CVAR = "MPIR_CVAR_COLLECTIVE_FALLBACK"
_RING = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring"}


def traced(
    bench: RunBench, *arguments: str, ranks: int = 3, environment: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    return bench("--mode=trace", *arguments, ranks=ranks, environment=environment).valid_records()


def digests(records: list[dict[str, Any]]) -> list[str | None]:
    return [record["digest"] for record in records if record["record"] == "trace"]


@pytest.mark.parametrize("operation", [one for one in Operation if not one.is_pattern])
def test_every_operation_but_patterns_can_be_traced(
    run_bench: RunBench, operation: Operation
) -> None:
    header, *traces, footer = traced(run_bench, f"--op={operation}", "--sizes=8,4096")
    assert [trace["bytes"] for trace in traces] == [8, 4096]
    assert (footer["measurements"], footer["status"]) == (0, "ok")
    assert "controls" not in header["rank_info"][0]
    has_order = operation in (Operation.ALLREDUCE, Operation.REDUCE, Operation.REDUCE_SCATTER)
    assert [trace["digest"] is not None for trace in traces] == [has_order] * 2
    agree = True if operation is Operation.ALLREDUCE else None
    assert [trace["agree"] for trace in traces] == [agree] * 2


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["allreduce", "reduce-scatter"])
def test_the_same_run_gives_the_same_digests(run_bench: RunBench, operation: str) -> None:
    arguments = [f"--op={operation}", "--sizes=4,1024,65536"]
    first, second = (digests(traced(run_bench, *arguments)) for _ in range(2))
    assert first == second
    assert len(set(first)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_another_algorithm_adds_up_in_another_order(run_bench: RunBench, dtype: str) -> None:
    arguments = ["--op=allreduce", "--sizes=8,1024,65536", f"--dtype={dtype}"]
    default = digests(traced(run_bench, *arguments))
    ring = digests(traced(run_bench, *arguments, environment=_RING))
    assert all(a != b for a, b in zip(default, ring, strict=True))


@pytest.mark.parametrize(
    ("arguments", "ranks"),
    [
        (["--op=allreduce"], 2),
        (["--op=allreduce", "--dtype=int32"], 3),
        (["--op=allreduce", "--reduction=max"], 3),
        (["--op=allgather"], 3),
    ],
)
def test_no_digest_where_no_order_shows(
    run_bench: RunBench, arguments: list[str], ranks: int
) -> None:
    assert digests(traced(run_bench, *arguments, "--sizes=64", ranks=ranks)) == [None]


def test_every_rank_says_what_its_library_holds(run_bench: RunBench) -> None:
    names = f"{_CVAR},MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM,NO_SUCH_VARIABLE"
    header = traced(
        run_bench,
        "--op=allreduce",
        "--sizes=8",
        f"--controls={names}",
        ranks=2,
        environment={_CVAR: "print"},
    )[0]
    for rank in header["rank_info"]:
        controls = rank["controls"]
        assert controls["NO_SUCH_VARIABLE"] is None
        assert controls["MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"] == {
            "kind": "integer",
            "value": "0",
        }
        assert controls[_CVAR]["kind"] == "integer"
    default = traced(run_bench, "--op=allreduce", "--sizes=8", f"--controls={_CVAR}", ranks=2)[0]
    held = [h["rank_info"][0]["controls"][_CVAR]["value"] for h in (header, default)]
    assert held[0] != held[1]


def test_the_output_is_cut_by_sizes(run_bench: RunBench) -> None:
    run = run_bench("--mode=trace", "--op=broadcast", "--sizes=8,64")
    lines = run.completed.output.splitlines()
    assert [line for line in lines if line.startswith("commtune-bench:")] == [
        "commtune-bench: size 8",
        "commtune-bench: size 64",
    ]


def _request() -> RunRequest:
    return RunRequest("r", DEFAULT, Workload(Operation.ALLREDUCE, (8, 64), 3), Timing())


def test_reader_and_benchmark_understand_each_other(
    run_bench: RunBench, executable: Path, tmp_path: Path
) -> None:
    program = NativeProgram(executable)
    arguments = program.trace_arguments(_request(), tmp_path / "t", [_CVAR])
    records = traced(run_bench, *arguments[1:], f"--records={run_bench.folder / 'records.jsonl'}")
    found = program.read(run_bench.folder / "records.jsonl", _request())
    assert found.problems == ()
    assert found.measurements == ()
    assert [t.bytes for t in found.traces] == [8, 64]
    assert [t.digest for t in found.traces] == digests(records)
    assert found.traces[0] == SizeTrace(8, 128, digests(records)[0], agree=True)
    assert "--controls" not in " ".join(program.trace_arguments(_request(), tmp_path / "t", []))


@pytest.fixture(scope="module")
def sound(module_bench: RunBench) -> list[dict[str, Any]]:
    """The records of a real trace that answers ``_request``."""
    return traced(
        module_bench, "--op=allreduce", "--sizes=8,64", "--run-id=r", f"--controls={_CVAR}"
    )


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda r: r[1].update(digest=7), "digest is not a text"),
        (lambda r: r[1].update(agree="yes"), "agree is not a bool"),
        (lambda r: r[1].update(bytes=-1), "bytes is not a whole number"),
        (lambda r: r[1].update(bytes=16), "a trace of 16 bytes, which was not requested"),
        (lambda r: r[2].update(bytes=8), "a second trace of 8 bytes"),
        (lambda r: r[0]["rank_info"][0].update(controls=[]), "rank_info is not a list of ranks"),
        (
            lambda r: r[0]["rank_info"][0].update(controls={"A": {"value": "1"}}),
            "rank_info is not a list of ranks",
        ),
    ],
)
def test_damage_is_a_problem_in_words(
    sound: list[dict[str, Any]],
    tmp_path: Path,
    damage: Callable[[list[dict[str, Any]]], None],
    problem: str,
) -> None:
    records = copy.deepcopy(sound)
    damage(records)
    file = write_records(tmp_path / "r", records)
    assert problem in " ".join(read_records(file, _request()).problems)
