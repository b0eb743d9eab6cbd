"""What ``compare`` is asked to measure, by its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commtune.app.measure.comparison import WorkloadChanges, _find_spread, _merge_workload
from commtune.commands.measure.compare import _read_changes
from commtune.db.records import CampaignDescription, StackRecord, SystemRecord
from commtune.errors import UserError
from commtune.model import Backend, Operation, OwnBenchmark, PatternParameters, Workload
from commtune.tuner.statistics.session_spread import SessionSpread


def test_without_flags_it_is_an_allreduce_on_the_host() -> None:
    workload = _merge_workload(WorkloadChanges(), None)
    assert (workload.operation, workload.backend) == (Operation.ALLREDUCE, Backend.MPI_HOST)
    assert (workload.ranks, workload.emulated_nodes) == (2, 0)


def test_settings_of_nccl_are_compared_by_its_backend() -> None:
    changes = _read_changes("alltoall", ranks=4, sizes="8,1MiB", backend="xccl", emulate_nodes=2)
    workload = _merge_workload(changes, None)
    assert (workload.operation, workload.backend) == (Operation.ALLTOALL, Backend.XCCL)
    assert (workload.ranks, workload.emulated_nodes) == (4, 2)
    assert workload.sizes == (8, 2**20)


def test_settings_are_compared_without_a_readable_database(tmp_path: Path) -> None:
    said: list[str] = []
    assert _find_spread("f", str(tmp_path / "none.db"), said.append) == SessionSpread()
    assert said == []
    (tmp_path / "text.db").write_text("no database\n" * 100)
    assert _find_spread("f", str(tmp_path / "text.db"), said.append) == SessionSpread()
    assert said[0].startswith("note: no variation between sessions is known: the database ")


def stored(workload: Workload) -> CampaignDescription:
    system = SystemRecord("f", "node", {})
    stack = StackRecord("xccl", "nccl 2.28.9", {})
    what = {"workload": workload.plain()}
    return CampaignDescription(1, "c", what, {}, {}, 1, False, 0.0, 0.0, system, stack)


@pytest.mark.parametrize(
    ("emulated", "changes", "message"),
    [
        (
            2,
            WorkloadChanges(ranks=12),
            "ranks: groups of 4 cross the boundaries of nodes with 6 ranks",
        ),
        (2, WorkloadChanges(ranks=10), "ranks: 10 ranks can't be divided into groups of 4"),
        (0, WorkloadChanges(ranks=10), "ranks: 10 ranks can't be divided into groups of 4"),
    ],
)
def test_groups_of_a_profile_lie_within_emulated_nodes(
    emulated: int, changes: WorkloadChanges, message: str
) -> None:
    rail = Workload(
        Operation.RAIL,
        (8,),
        8,
        backend=Backend.XCCL,
        emulated_nodes=emulated,
        shape=PatternParameters(4),
    )
    with pytest.raises(UserError) as caught:
        _merge_workload(changes, stored(rail))
    assert caught.value.message.startswith(message)
    assert caught.value.hint == "leave it out"
    assert _merge_workload(WorkloadChanges(ranks=16), stored(rail)).shape.group_size == 4


def test_other_emulated_nodes_are_held_against_the_groups_too() -> None:
    rail = Workload(Operation.RAIL, (8,), 24, backend=Backend.XCCL, shape=PatternParameters(3))
    assert _merge_workload(WorkloadChanges(emulate_nodes=4), stored(rail)).emulated_nodes == 4
    with pytest.raises(UserError, match="emulate_nodes: groups of 3 cross") as caught:
        _merge_workload(WorkloadChanges(emulate_nodes=3), stored(rail))
    assert caught.value.hint == "leave it out"


@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        ({"op": "allredcue"}, "--op: 'allredcue' is not a known value", "allreduce"),
        ({"backend": "nccl"}, "--backend: 'nccl' is not a known value", "xccl"),
        ({"backend": "command"}, "--backend: 'command' is not a known value", ""),
        (
            {"emulate_nodes": 2},
            "emulate_nodes: nodes can be emulated for the backend xccl only",
            "remove it",
        ),
        (
            {"backend": "xccl", "emulate_nodes": 1},
            "emulate_nodes: 1 is out of range",
            "from 2",
        ),
        (
            {"backend": "xccl", "ranks": 3, "emulate_nodes": 2},
            "emulate_nodes: 3 ranks can't be divided evenly among 2 emulated nodes",
            "nearest: ranks: 2",
        ),
        ({"sizes": "8,64KB"}, "--sizes: ", "64KiB"),
        (
            {"sizes": "3,8"},
            "sizes: 3 B is less than one element of float32 (4 bytes)",
            "write sizes of 4 B or more",
        ),
        ({"ranks": 1}, "ranks: 1 is out of range", "from 2"),
    ],
)
def test_what_is_wrong_is_named(flags: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        _merge_workload(_read_changes(**flags), None)
    assert caught.value.message.startswith(message)
    assert hint in caught.value.hint


def test_one_process_of_a_users_own_program_can_be_compared() -> None:
    own = OwnBenchmark(command=("./program",), output="osu", folder="/home/ann")
    workload = Workload(Operation("own:program"), (8,), 1, backend=Backend.COMMAND, own=own)
    assert _merge_workload(WorkloadChanges(), stored(workload)).ranks == 1
    with pytest.raises(UserError, match="ranks: 0 is out of range") as caught:
        _merge_workload(WorkloadChanges(ranks=0), stored(workload))
    assert caught.value.hint == "from 1"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("bcast", "broadcast"),
        ("all_reduce", "allreduce"),
        ("allreduce_perf", "allreduce"),
        ("osu_reduce_scatter", "reduce-scatter"),
        ("AllGather", "allgather"),
    ],
)
def test_words_of_other_benchmarks_are_understood(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _read_changes(op=word).operation == meant
    assert capsys.readouterr().err == f"note: --op {word} is read as {meant}\n"


def test_short_sizes_are_those_of_nccl_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert _read_changes(sizes="8,1M").sizes == (8, 2**20)
    assert capsys.readouterr().err == "note: --sizes 1M is read as 1MiB\n"
    assert _read_changes(sizes="1k .. 4k x2").sizes == (1024, 2048, 4096)
