"""What ``commtune bench`` is asked for, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from commtune.commands.measure.bench_request import request_of
from commtune.commands.measure.bench_results import _describe_run
from commtune.commands.measure.trace import trace_command
from commtune.errors import UserError
from commtune.model import Backend, PatternParameters, RunRequest
from commtune.tuner.execution.time_limits import first_limit

_ASKED = {"op": "allreduce", "ranks": 2, "sizes": "8", "time_cap": "0.05s"}


def asking(**flags: Any) -> RunRequest:
    return request_of(**{**_ASKED, **flags})


@pytest.mark.parametrize("operation", ["stream", "incast", "rail", "pairs", "ping-pong"])
def test_some_operations_need_two_ranks(operation: str) -> None:
    with pytest.raises(UserError, match="--ranks: 1 is out of range"):
        asking(op=operation, ranks=1)


@pytest.mark.parametrize("cap", ["0", "0s", "1e-9s", "200000s"])
def test_a_time_that_the_benchmark_does_not_take_is_refused_before_it_runs(cap: str) -> None:
    with pytest.raises(UserError, match="--time-cap: ") as caught:
        asking(time_cap=cap)
    assert caught.value.hint
    assert asking(time_cap="1us").timing.time_cap_s == 1e-6


@pytest.mark.parametrize("operation", ["ring", "self", "allreduce"])
def test_others_are_done_by_one_rank(operation: str) -> None:
    assert asking(op=operation, ranks=1).workload.ranks == 1


@pytest.mark.parametrize("operation", ["rail", "incast", "pairs", "self"])
def test_the_benchmark_in_python_refuses_what_it_does_not_do(operation: str) -> None:
    asked: dict[str, Any] = {"op": operation, "backend": "python-host"}
    with pytest.raises(UserError) as caught:
        asking(**asked)
    assert caught.value.message == (
        f"--backend: the backend python-host does not know the operation {operation}"
    )
    assert caught.value.hint.startswith("it knows ping-pong, ")
    assert asking(**{**asked, "op": "ring"}).workload.backend is Backend.PYTHON_HOST


def test_a_command_is_for_campaigns() -> None:
    with pytest.raises(UserError, match="--backend: 'command' is not a known value"):
        asking(backend="command")


def test_flags_of_patterns_make_a_shape() -> None:
    flags: dict[str, Any] = {
        "group_size": 2,
        "active": 2,
        "direction": "bidirectional",
        "rotate": "yes",
    }
    workload = asking(op="rail", ranks=4, **flags).workload
    assert workload.shape == PatternParameters(group_size=2, active=2, direction="bidirectional")
    assert workload.rotate
    assert workload.words == (
        "rail of float32, groups of 2, 2 of each active, bidirectional, "
        "rotating through the buffers"
    )


def test_a_group_is_the_ranks_of_an_emulated_node() -> None:
    asked: dict[str, Any] = {"op": "rail", "ranks": 8, "backend": "xccl"}
    assert asking(**asked, emulate_nodes=2).workload.shape.group_size == 4
    assert asking(**asked).workload.shape.group_size == 1


def test_the_backend_follows_from_those_inside_and_between() -> None:
    flags: dict[str, Any] = {"inside": "ipc-put", "between": "xccl"}
    workload = asking(op="striping", ranks=4, **flags).workload
    assert (workload.backend, workload.shape.inside) == (Backend.XCCL, "ipc-put")


@pytest.mark.parametrize(
    ("operation", "flags", "message", "hint"),
    [
        (
            "rail",
            {"group_size": 3},
            "--group-size: 4 ranks can't be divided into groups of 3",
            "nearest: 2",
        ),
        (
            "rail",
            {"group_size": 2, "active": 3},
            "--active: 3 active ranks are more",
            "nearest: 2",
        ),
        ("rail", {"direction": "up"}, "--direction: 'up' is not a known value", ""),
        ("rail", {"rotate": "maybe"}, "--rotate: 'maybe' is not a known value", ""),
        ("rail", {"group_size": 0}, "--group-size: 0 is out of range", "from 1"),
        (
            "ring",
            {"group_size": 2},
            "--group-size: ring has no group_size",
            "--op rail or asymmetric",
        ),
        (
            "rail",
            {"inside": "xccl"},
            "--inside: rail has no inside",
            "--op matrix or striping",
        ),
        (
            "striping",
            {"inside": "mpi-host", "between": "xccl"},
            "--inside: mpi-host works on host memory, and the backend xccl on device memory",
            "--backend mpi-host",
        ),
        (
            "matrix",
            {"matrix": "~no-such-user/m"},
            "--matrix: ~no-such-user is not the home folder",
            "",
        ),
        ("matrix", {"matrix": "nowhere.txt"}, "--matrix: .*nowhere.txt can't be read", ""),
        (
            "striping",
            {"inside": "ipc-put", "between": "xccl", "mode": "batched"},
            "--mode: with backends inside, between",
            "",
        ),
        (
            "pairs",
            {"ranks": 100, "sizes": "8,16,32,64,128"},
            "--sizes: 9,900 pairs at 5 sizes are more than 40,000",
            "",
        ),
        ("allreduce", {"ranks": 4097}, "--ranks: 4097 is out of range", "from 1 to 4096"),
        ("matrix", {}, "--matrix: operation matrix needs a file of messages", ""),
        ("allredduce", {}, "--op: 'allredduce' is not a known value", ""),
    ],
)
def test_flags_that_do_not_fit_are_refused_by_their_names(
    operation: str, flags: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        asking(**{"op": operation, "ranks": 4, **flags})
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({}, "timed one by one"),
        ({"mode": "batched"}, "timed in batches of 20"),
        ({"timer": "device"}, "timed by the device's clock"),
        (
            {"mode": "batched", "operations": 100, "timer": "device", "graph": "yes"},
            "timed in batches of 100, recorded as graphs, by the device's clock",
        ),
    ],
)
def test_operations_are_timed_as_campaigns_time_them(flags: dict[str, Any], words: str) -> None:
    request = asking(backend="xccl", **flags)
    assert (
        _describe_run(request, "mpich 5.0.2") == f"allreduce, 2 ranks, xccl, mpich 5.0.2, {words}"
    )
    plain = asking(mode="blocking", operations=None, timer="wall", graph="no")
    assert _describe_run(plain, "mpich 5.0.2") == "allreduce, 2 ranks, mpich 5.0.2"


@pytest.mark.parametrize(
    ("backend", "flags", "message", "hint"),
    [
        ("xccl", {"mode": "bached"}, "--mode: 'bached' is not a known value", "nearest: batched"),
        ("xccl", {"timer": "cpu"}, "--timer: 'cpu' is not a known value", "known: wall, "),
        ("xccl", {"graph": "1"}, "--graph: '1' is not a known value", "known: yes, no"),
        (
            "xccl",
            {"mode": "batched", "operations": 0},
            "--operations: 0 is out of range",
            "from 1 to 100000",
        ),
        (
            "xccl",
            {"operations": 20},
            "--operations: operations are counted for batches only",
            "add `--mode batched`, or remove it",
        ),
        (
            "xccl",
            {"graph": "yes"},
            "--graph: a graph is a recorded batch",
            "add `--mode batched`",
        ),
        ("", {"mode": "batched"}, "--mode: the backend mpi-host enqueues", "--backend xccl"),
        (
            "python-host",
            {"timer": "device"},
            "--timer: the backend python-host has no clock on the device",
            "write --timer wall, or measure with --backend xccl",
        ),
        (
            "",
            {"mode": "batched", "graph": "yes"},
            "--graph: the backend mpi-host can't be recorded",
            "remove it",
        ),
    ],
)
def test_ways_of_timing_that_a_backend_does_not_have_are_refused(
    backend: str, flags: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        asking(backend=backend, **flags)
    assert hint in caught.value.hint


def test_a_run_has_time_for_all_pairs() -> None:
    asked = asking(op="pairs", sizes="8,64", time_cap="0.1s", ranks=100)
    limit_s = first_limit(asked.workload, asked.timing)
    assert limit_s == pytest.approx(3 * 100 * 99 * 2 * 0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("backend", ["", "python-host"])
def test_a_size_holds_an_element(dtype: str, backend: str) -> None:
    element = 8 if dtype == "float64" else 4
    with pytest.raises(UserError) as caught:
        asking(dtype=dtype, backend=backend, sizes=f"{element - 1},64")
    assert caught.value.message == (
        f"--sizes: {element - 1} B is less than one element of {dtype} ({element} bytes)"
    )
    assert caught.value.hint == f"write sizes of {element} B or more"
    assert asking(dtype=dtype, backend=backend, sizes=str(element)).workload.sizes == (element,)


def test_a_byte_is_an_element_of_its_type() -> None:
    assert asking(sizes="1", dtype="uint8").workload.sizes == (1,)


def test_trace_takes_settings_as_bench_does() -> None:
    with pytest.raises(UserError, match="-x A: no value") as caught:
        trace_command(settings=["A"])
    assert caught.value.hint == "write -x NAME=VALUE"
