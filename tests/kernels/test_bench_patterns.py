"""Every operation of the benchmark by independent formulas: bytes, bandwidths, wrong data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench_runs import Ended, RunBench
from made_files import write_script

from commtune.kernels.records import read_records
from commtune.model import Operation

_FEW = ("--min-samples=2", "--max-samples=2", "--warmup=1", "--time-cap=0.01")


def _measured(run: Ended) -> list[dict[str, Any]]:
    return run.valid_records()[1:-1]


_GROUPED = [
    # operation, active, direction: blocks that cross the first group's boundary (of 3 groups of
    # 2 ranks), receivers that a sender shares its bytes among.
    ("rail", 1, "outbound", 2, 2),
    ("rail", 2, "outbound", 4, 2),
    ("rail", 2, "bidirectional", 8, 2),
    ("rail", 2, "omnidirectional", 8, 2),
    ("asymmetric", 1, "outbound", 4, 4),
    ("asymmetric", 2, "bidirectional", 16, 4),
    ("asymmetric", 1, "omnidirectional", 8, 4),
    ("symmetric", 1, "outbound", 2, 2),
    ("symmetric", 2, "outbound", 8, 4),
    ("symmetric", 2, "omnidirectional", 16, 4),
]


@pytest.mark.parametrize(("operation", "active", "direction", "blocks", "receivers"), _GROUPED)
def test_groups_count_what_crosses_the_first_ones_boundary(
    run_bench: RunBench, operation: str, active: int, direction: str, blocks: int, receivers: int
) -> None:
    run = run_bench(
        f"--op={operation}", "--sizes=4096", "--group-size=2", f"--active={active}",
        f"--direction={direction}", *_FEW, ranks=6,
    )  # fmt: skip
    header, found, _ = run.valid_records()
    assert header["shape"] == {"group_size": 2, "active": active, "direction": direction}
    assert found["bytes_per_peer"] == 4096 // receivers
    assert found["bytes_per_rank"] == 4096
    assert found["bytes_total"] == blocks * 4096 // receivers
    assert found["busbw_Bps"] == found["algbw_Bps"]
    assert found["wrong"] == 0 < found["checked"]


def test_a_window_is_that_many_messages(run_bench: RunBench) -> None:
    run = run_bench("--op=stream", "--sizes=1000", "--window=3", *_FEW)
    assert _measured(run)[0]["bytes_total"] == 3000
    assert run.valid_records()[0]["shape"] == {"window": 3}


def test_pairs_make_a_matrix(run_bench: RunBench) -> None:
    run = run_bench("--op=pairs", "--sizes=8,4096", *_FEW, ranks=3)
    found = _measured(run)
    ordered = [[i, j] for i in range(3) for j in range(3) if i != j]
    assert [(m["bytes"], m["pair"]) for m in found] == [(s, p) for s in (8, 4096) for p in ordered]
    assert all(m["bytes_total"] == m["bytes"] for m in found)
    # Only the receiver of a pair has something to check: before and after the samples.
    assert [m["checked"] for m in found] == [2 * m["bytes"] // 4 for m in found]
    records = read_records(run.records)
    assert records.problems == ()
    assert records.measurements == ()
    assert [p.pair for p in records.pieces] == [(i, j) for i, j in ordered] * 2


_MATRIX = "0 1 100  # the largest\n1 2 50\n\n2 0 25\n2 2 0\n1 1 0.001\n"


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    (tmp_path / "matrix").write_text(_MATRIX)
    return f"--matrix={tmp_path / 'matrix'}"


def test_a_matrix_is_scaled_to_its_largest_message(run_bench: RunBench, matrix: str) -> None:
    run = run_bench("--op=matrix", matrix, "--sizes=4000,40", *_FEW, ranks=3)
    # Messages have whole elements, and whoever sends anything sends one at least.
    assert [m["bytes_total"] for m in _measured(run)] == [
        4000 + 2000 + 1000 + 4,
        40 + 20 + 4 * round(2.5 + 1e-9) + 4,
    ]


def test_a_matrix_has_the_parts_that_there_are(run_bench: RunBench, matrix: str) -> None:
    run = run_bench("--op=matrix", matrix, "--sizes=4000", "--inside=mpi-host", *_FEW, ranks=3)
    # All ranks are on one node: nothing goes between nodes.
    assert [m.get("part") for m in _measured(run)] == ["inside", None]
    assert run.valid_records()[0]["shape"] == {"inside": "mpi-host"}
    plain = run_bench("--op=matrix", matrix, "--sizes=4000", *_FEW, ranks=3)
    assert [m.get("part") for m in _measured(plain)] == [None]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to name nodes")
def test_parts_of_a_matrix_have_their_own_bytes(
    run_bench: RunBench, matrix: str, tmp_path: Path
) -> None:
    # Ranks 0 and 1 on one node, rank 2 on another.
    script = write_script(
        tmp_path / "bench-on-nodes",
        "exec unshare --uts sh -c 'hostname node$((PMI_RANK / 2)); exec \"$@\"' - "
        f'{run_bench.executable} "$@"',
    )
    on_nodes = RunBench(run_bench.mpi, script, tmp_path)
    run = on_nodes(
        "--op=matrix", matrix, "--sizes=4000", "--inside=mpi-host", "--between=mpi-host", *_FEW,
        ranks=3,
    )  # fmt: skip
    found = _measured(run)
    assert run.valid_records()[0]["nodes"] == 2
    assert [(m.get("part"), m["bytes_total"]) for m in found] == [
        ("inside", 4000 + 4), ("between", 2000 + 1000), (None, 7004),
    ]  # fmt: skip
    assert [m["checked"] > 0 for m in found] == [False, False, True]


def test_a_variable_of_nccl_makes_several_nodes_of_one_machine(
    run_bench: RunBench, matrix: str, tmp_path: Path
) -> None:
    command = f'NCCL_HOSTID=n$((PMI_RANK / 2)) exec {run_bench.executable} "$@"'
    script = write_script(tmp_path / "bench-on-emulated-nodes", command)
    emulated = RunBench(run_bench.mpi, script, tmp_path)
    run = emulated("--op=matrix", matrix, "--sizes=4000", "--inside=mpi-host", *_FEW, ranks=3)
    header, *found, _ = run.valid_records()
    assert (header["nodes"], header["nodes_by"]) == (2, "NCCL_HOSTID")
    assert [(r["node"], r["local_rank"]) for r in header["rank_info"]] == [(0, 0), (0, 1), (1, 0)]
    assert [m.get("part") for m in found] == ["inside", "between", None]
    without = run_bench("--op=matrix", matrix, "--sizes=4000", *_FEW, ranks=3)
    assert (without.valid_records()[0]["nodes"], "nodes_by" in without.valid_records()[0]) == (
        1,
        False,
    )


def test_striping_is_measured_by_step_and_whole(run_bench: RunBench) -> None:
    run = run_bench("--op=striping", "--group-size=2", "--sizes=4000,4", *_FEW, ranks=4)
    found = _measured(run)
    # A single element can't be split: one rank carries it all, the last of the group.
    assert [(m["bytes"], m.get("part"), m["bytes_total"]) for m in found] == [
        (4000, "split", 2000), (4000, "translate", 4000), (4000, "assemble", 2000),
        (4000, "kept-apart", 4000), (4000, None, 4000),
        (4, "split", 4), (4, "translate", 4), (4, "assemble", 4),
        (4, "kept-apart", 4), (4, None, 4),
    ]  # fmt: skip
    assert all((m["checked"] > 0) == ("part" not in m) for m in found)
    for part in found:
        assert part["algbw_Bps"] == pytest.approx(
            part["bytes_total"] / part["time_s"]["median"], rel=1e-6
        )
    records = read_records(run.records)
    assert records.problems == ()
    assert [m.bytes for m in records.measurements] == [4000, 4]
    assert [p.part for p in records.pieces] == ["split", "translate", "assemble", "kept-apart"] * 2


def test_each_step_of_striping_can_name_a_backend(run_bench: RunBench) -> None:
    by = {"inside": "mpi-host", "between": "mpi-host", "assemble": "mpi-host"}
    named = [f"--{key}={backend}" for key, backend in by.items()]
    run = run_bench("--op=striping", "--group-size=2", "--sizes=4000", *named, *_FEW, ranks=4)
    header, *_, footer = run.valid_records()
    assert header["shape"] == {"group_size": 2, **by}
    assert footer["status"] == "ok"


def test_groups_of_one_have_nothing_to_split(run_bench: RunBench) -> None:
    found = _measured(run_bench("--op=striping", "--sizes=4000", *_FEW))
    assert [m.get("part") for m in found] == ["translate", None]


_APART = ("rail", "asymmetric", "symmetric", "striping", "matrix", "pairs")
_SPOILED: list[tuple[Sequence[str], int]] = [
    *(([f"--op={operation}"], 3) for operation in Operation if operation not in _APART),
    (["--op=rail", "--group-size=2"], 4),
    (["--op=asymmetric", "--group-size=2", "--direction=bidirectional"], 4),
    (["--op=symmetric", "--group-size=2", "--active=2", "--direction=omnidirectional"], 4),
    (["--op=striping", "--group-size=2"], 4),
    (["--op=allreduce", "--rotate=yes"], 2),
]


@pytest.mark.parametrize(("arguments", "ranks"), _SPOILED, ids=[" ".join(a) for a, _ in _SPOILED])
def test_wrong_data_is_found(run_bench: RunBench, arguments: Sequence[str], ranks: int) -> None:
    run = run_bench(*arguments, "--sizes=4096,8192", "--fault=wrong@4096", *_FEW, ranks=ranks)
    whole = [m for m in run.valid_records(exit_code=3)[1:-1] if "part" not in m]
    assert [(m["wrong"], m["status"]) for m in whole] == [(2, "wrong"), (0, "ok")]


def test_wrong_data_is_found_in_matrices_and_in_every_pair(
    run_bench: RunBench, matrix: str
) -> None:
    spoil = ("--sizes=4096", "--fault=wrong@4096", *_FEW)
    for arguments in (["--op=matrix", matrix], ["--op=pairs"]):
        run = run_bench(*arguments, *spoil, ranks=3)
        assert {m["wrong"] for m in run.valid_records(exit_code=3)[1:-1]} == {2}


def test_rotation_is_said_and_right(run_bench: RunBench) -> None:
    run = run_bench("--op=alltoall", "--sizes=8,1000,65536", "--rotate=yes", "--max-samples=20")
    assert all(m["wrong"] == 0 < m["checked"] for m in _measured(run))
    timing = run.valid_records()[0]["timing"]
    assert timing == {"mode": "blocking", "timer": "wall", "rotate": True}
    still = run_bench("--op=alltoall", "--sizes=8", *_FEW)
    assert still.valid_records()[0]["timing"] == {"mode": "blocking", "timer": "wall"}


def test_the_first_call_takes_nothing_from_a_sizes_time(run_bench: RunBench) -> None:
    # The first size connects the ranks: its first call is longer than this whole cap.
    run = run_bench(
        "--op=allreduce", "--sizes=8", "--time-cap=0.00001", "--min-samples=3", "--warmup=3"
    )
    (found,) = _measured(run)
    assert found["samples"] >= 1
    assert found["first_call_s"] + sum(found["samples_ns"]) * 1e-9 < found["elapsed_s"]
    assert found["warmup"] >= 1


#: What is decided from the words alone is tested in C++.
_REFUSED: list[tuple[Sequence[str], int, str]] = [
    (["--op=matrix", "--matrix=/nonexistent/m"], 2, "--matrix: can't read /nonexistent/m"),
    (["--op=allreduce", "--timing=batched"], 2, "mpi-host enqueues nothing on a device"),
    (["--op=allreduce", "--timer=device"], 2, "mpi-host has no clock on a device"),
    (["--op=rail", "--group-size=2"], 3, "3 ranks don't make them"),
    (["--op=allreduce", "--backend=pigeon"], 2, "has no backend 'pigeon'; it has: mpi-host"),
]


@pytest.mark.parametrize(
    ("arguments", "ranks", "message"), _REFUSED, ids=[" ".join(a) for a, *_ in _REFUSED]
)
def test_options_are_refused_in_clear_words(
    run_bench: RunBench, arguments: Sequence[str], ranks: int, message: str
) -> None:
    run = run_bench(*arguments, "--sizes=8", ranks=ranks)
    assert run.completed.exit_code == 2
    assert run.completed.output.count(message) == 1
    assert not run.records.exists()


def test_a_matrix_of_more_ranks_is_refused(run_bench: RunBench, matrix: str) -> None:
    run = run_bench("--op=matrix", matrix, "--sizes=8", ranks=2)
    assert run.completed.exit_code == 2
    assert run.completed.output.count("names rank 2, but there are 2 ranks") == 1
