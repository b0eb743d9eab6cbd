"""The benchmark's command line for a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commtune.cluster.exit_codes import judge_run
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    DEFAULT,
    Backend,
    Operation,
    Outcome,
    PatternParameters,
    RunRequest,
    Timing,
    Workload,
)
from commtune.process import Completed


def words(workload: Workload, timing: Timing | None = None) -> list[str]:
    request = RunRequest("r", DEFAULT, workload, timing or Timing())
    return NativeProgram(Path("/bench")).arguments(request, Path("/records"))


def test_host_memory_asks_for_no_gpu() -> None:
    given = words(Workload(Operation.ALLREDUCE, (8,)))
    assert not [w for w in given if w.startswith(("--backend", "--bind", "--timing", "--window"))]


def test_a_gpu_backend_binds_its_ranks() -> None:
    given = words(Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL))
    assert "--backend=xccl" in given
    assert "--bind=gpu" in given


def test_timing_in_batches_on_the_device() -> None:
    timing = Timing(mode="batched", operations=7, timer="device")
    given = words(Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL), timing)
    assert {"--timing=batched", "--operations=7", "--timer=device"} <= set(given)


def test_a_graph_is_asked_for_only_where_it_is_wanted() -> None:
    workload = Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL)
    given = words(workload, Timing(mode="batched", operations=20, graph=True))
    assert {"--timing=batched", "--operations=20", "--graph=yes"} <= set(given)
    plain = words(workload, Timing(mode="batched", operations=20))
    assert not [word for word in plain if word.startswith("--graph")]


def test_operations_after_the_first_are_named_in_their_order() -> None:
    several = (Operation.BROADCAST, Operation.ALLTOALL)
    given = words(Workload(Operation.STREAM, (8,), then=several, window=4))
    assert {"--op=stream", "--then=broadcast,alltoall", "--window=4"} <= set(given)
    assert not [w for w in words(Workload(Operation.STREAM, (8,))) if w.startswith("--then")]


def test_guard_operations_have_no_window() -> None:
    stream = Workload(Operation.STREAM, (8,), window=4)
    assert "--window=4" in words(stream)
    guard = Workload(Operation.ALLREDUCE, (8,), window=4)
    assert not [word for word in words(guard) if word.startswith("--window")]


def test_each_pattern_gets_what_it_uses_of_a_shape() -> None:
    shape = PatternParameters(
        4, 2, "bidirectional",
        inside="ipc-put", between="xccl", matrix="key", assemble="ipc-get",
    )  # fmt: skip
    grouped = ["--group-size=4", "--active=2", "--direction=bidirectional"]
    mixed = ["--inside=ipc-put", "--between=xccl"]
    for operation, wanted in (
        (Operation.RAIL, grouped),
        (Operation.STRIPING, [grouped[0], *mixed, "--assemble=ipc-get"]),
        (Operation.MATRIX, mixed),
        (Operation.ALLTOALL, []),  # as a guard operation of one of them
    ):
        given = words(Workload(operation, (8,), 8, shape=shape))
        said = [w for w in given if w.partition("=")[0] in _OF_SHAPES]
        assert said == wanted


_OF_SHAPES = (
    "--group-size", "--active", "--direction", "--inside", "--between", "--assemble", "--rotate",
)  # fmt: skip


def test_rotation_is_asked_for_only_where_it_is_wanted() -> None:
    assert "--rotate=yes" in words(Workload(Operation.ALLREDUCE, (8,), rotate=True))
    assert not [w for w in words(Workload(Operation.ALLREDUCE, (8,))) if "rotate" in w]


def test_only_a_matrix_gets_the_file_of_its_messages(tmp_path: Path) -> None:
    program = NativeProgram(Path("/bench"), matrix=tmp_path / "m.txt")
    for operation, has in ((Operation.MATRIX, True), (Operation.ALLTOALL, False)):
        request = RunRequest("r", DEFAULT, Workload(operation, (8,)), Timing())
        assert (f"--matrix={tmp_path / 'm.txt'}" in program.arguments(request, Path("/r"))) is has


def test_memory_of_gpus_is_left_to_the_system_only_where_that_was_asked_for() -> None:
    for backend, leaves, has in (
        (Backend.XCCL, True, True),
        (Backend.XCCL, False, False),
        (Backend.MPI_HOST, True, False),
        (Backend.MPI_DEVICE, True, False),
    ):
        workload = Workload(Operation.ALLREDUCE, (8,), backend=backend)
        program = NativeProgram(Path("/bench"), leaves_memory=leaves)
        request = RunRequest("r", DEFAULT, workload, Timing())
        assert ("--end=quick" in program.arguments(request, Path("/r"))) is has


@pytest.mark.parametrize(
    ("built", "ran", "word"),
    [
        ("NCCL 2.28.9", "NCCL 2.27.3", "MISMATCH"),
        ("NCCL 2.28.9", "RCCL 2.28.9", "MISMATCH"),
        ("NCCL 2.28.9", "NCCL 2.28.9", ""),
        ("RCCL 2.27.7", "RCCL 2.27.7+rocm7", ""),
        ("", "NCCL 2.27.3", ""),
        ("NCCL 2.28.9", None, ""),
    ],
)
def test_another_library_than_that_of_the_build_is_a_mismatch(
    tmp_path: Path, built: str, ran: str | None, word: str
) -> None:
    """Results are stored for the version of the header; a run with another one is none of them."""
    workload = Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL)
    request = RunRequest("r", DEFAULT, workload, Timing())
    header = {
        "record": "header", "contract": 1, "run_id": "r", "operation": "allreduce",
        "backend": "xccl", "dtype": "float32", "reduction": "sum", "ranks": 2, "rank_info": [],
        "oversubscribed": False, **({"library": {"name": ran, "init_s": 0.1}} if ran else {}),
    }  # fmt: skip
    records = tmp_path / "r.jsonl"
    records.write_text(json.dumps(header) + "\n")
    found = NativeProgram(Path("/bench"), library=built).read(records, request)
    assert found.header is not None
    assert found.problems == ()
    assert found.mismatch.partition(":")[0] == word
    for exit_code in (0, 1):
        outcome, detail = judge_run(found, Completed(exit_code, None, False, 1.0, ""), 60.0)
        assert (outcome is Outcome.MISSING_PROGRAM) is bool(word)
        if ran and word:
            assert ran in detail and built in detail
