"""Calls counted in NCCL's log: a recorded one, and lines of its form."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.cluster.tracing.nccl_calls import count_calls


def _line(name: str, count: int, datatype: int, ranks: int, rank: int = 0) -> str:
    return (
        f"node0:100:{200 + rank} [0] NCCL INFO {name}: opCount 3 sendbuff 0x7f00 recvbuff 0x7f10 "
        f"count {count} datatype {datatype} op 0 root 0 comm 0x55 [nranks={ranks}] stream 0x66\n"
    )


def test_the_calls_of_a_program_are_those_that_it_made() -> None:
    """The program is in the README beside the log."""
    log = (Path(__file__).parent / "nccl_logs" / "calls.txt").read_text()
    assert count_calls(log.splitlines()) == {
        ("allreduce", 2): {1024: 5, 2048: 3},
        ("broadcast", 2): {512: 1},
        ("reduce", 2): {256: 1},
        ("allgather", 2): {2048: 1},
        ("reduce-scatter", 2): {2048: 1},
        ("alltoall", 2): {2048: 1},
        ("allreduce", 1): {512: 2},
    }


@pytest.mark.parametrize(
    ("name", "operation", "size"),
    [
        ("AllReduce", "allreduce", 1024),
        ("Broadcast", "broadcast", 1024),
        ("Reduce", "reduce", 1024),
        ("AllGather", "allgather", 4096),
        ("ReduceScatter", "reduce-scatter", 4096),
        ("AlltoAll", "alltoall", 4096),
    ],
)
def test_sizes_are_the_benchmark_s(name: str, operation: str, size: int) -> None:
    said = [_line(name, 256, 7, 4, rank) for rank in range(4)]
    assert count_calls(said) == {(operation, 4): {size: 1}}


def test_each_call_is_said_by_every_rank_of_its_communicator() -> None:
    said = [_line("AllReduce", 512, 9, 2, rank) for rank in (0, 1) for _ in range(10)]
    said += [_line("AllReduce", 8, 5, 2, rank) for rank in (0, 1)]
    said += [_line("AllReduce", 1, 8, 1)]
    assert count_calls(said) == {("allreduce", 1): {8: 1}, ("allreduce", 2): {64: 1, 1024: 10}}


def test_other_lines_are_passed_over() -> None:
    said = [
        _line("Send", 256, 7, 2),
        _line("AllReduce", 256, 99, 2),
        _line("AllReduce", 256, 7, 0),
        "node0:100:200 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo TREE proto LL\n",
        _line("AllReduce", 256, 7, 2)[:90],
    ]
    assert count_calls(said) == {}
