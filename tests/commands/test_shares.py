"""Shares of the nominal bandwidth where commands print times."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest

from commtune.app.profiles import nominal_share
from commtune.commands.campaigns import status
from commtune.commands.measure.bench_results import _describe_share
from commtune.commands.profiles import best
from commtune.db.storage.store import Store
from commtune.formatting import format_percent
from commtune.model import Backend, Operation, Outcome, RunResult, Verdict, Workload
from commtune.systems.loading import load_system
from commtune.systems.nominal.collectives import bus_bandwidth
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.nominal.operations import FABRIC
from commtune.systems.nominal.traffic import NominalQuestion

MIB = 1 << 20
LEONARDO = {FABRIC: asdict(fabric_of(load_system("leonardo")))}


def header(to: str = "switch") -> dict[str, Any]:
    """Two GPUs with 18 links of NVLink 4 each."""
    links = [{"to": to, "pci": None, "links": 18, "version": "4.0", "link_Bps": 26.562e9}]
    gpus = [{"pci": f"0000:1{i}:00.0", "links": links} for i in range(2)]
    ranks = [{"rank": i, "node": 0, "local_rank": i, "gpu": gpu} for i, gpu in enumerate(gpus)]
    return {"record": "header", "rank_info": ranks}


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Slurm's programs have nobody to ask."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))


def confirmed(
    store: Store,
    settings: dict[str, Any],
    run_header: dict[str, Any] | None = None,
    **profile: Any,
) -> None:
    """A campaign whose surest gain is at 1 MiB in 15 us."""
    campaign_id = given.begin(store, given.campaign(settings=settings))
    given.add_run(store, campaign_id, "r1", header=run_header)
    store.save_profiles(campaign_id, [given.profile(note="", **profile)])


def said(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, Any]:
    """The row that people get, and the number for programs."""
    status.status_command(url, json_output=False)
    row = capsys.readouterr().out.splitlines()[1]
    status.status_command(url, json_output=True)
    (found,) = json.loads(capsys.readouterr().out)
    return row, found["of_nominal"]


def test_status_of_a_described_system(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    confirmed(store, LEONARDO, nodes=2, ranks=8)
    row, share = said(url, capsys)
    # 1 MiB in 15 us over two nodes of 50 GB/s each: half of it leaves each node, twice.
    assert share["share"] == pytest.approx(MIB / 15e-6 / 50e9, rel=1e-6)
    assert share["model"] == "hierarchical, ports of a node"
    assert row.endswith(
        "1.60x to 1.80x (1.70x, 7 pairs) at 1 MiB (fast machine state), 140 % of nominal 87.5 GB/s"
    )


def test_status_of_gpus_whose_driver_names_links(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    confirmed(store, {}, header(), backend="xccl")
    row, share = said(url, capsys)
    assert share["share"] == pytest.approx(MIB / 15e-6 / 450e9)
    assert row.endswith(", 16 % of nominal 450 GB/s")


@pytest.mark.parametrize(
    ("settings", "run_header", "profile"),
    [
        ({}, None, {}),
        ({}, header(), {}),  # host memory: GPUs' links are not what it uses
        (LEONARDO, None, {}),
        ({**LEONARDO, "emulated_nodes": 2}, None, {"backend": "xccl"}),
        ({}, header("cpu"), {"backend": "xccl"}),
    ],
)
def test_status_says_nothing_where_nothing_is_known(
    store: Store,
    url: str,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, Any],
    run_header: dict[str, Any] | None,
    profile: dict[str, Any],
) -> None:
    confirmed(store, settings, run_header, **profile)
    row, share = said(url, capsys)
    assert share is None
    assert "nominal" not in row


def test_status_of_a_pattern_counts_what_crosses_the_border_of_a_node(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = {"group_size": 4, "active": 2, "direction": "bidirectional"}
    points = (given.point(MIB, operation="rail"),)
    profile = {"operation": "rail", "backend": "xccl", "nodes": 2, "ranks": 8, "points": points}
    confirmed(store, {**LEONARDO, "shape": shape}, None, **profile)
    row, share = said(url, capsys)
    # Two ports of 100 Gb/s, both ways.
    assert share["nominal_Bps"] == pytest.approx(50e9)
    assert share["share"] == pytest.approx(2 * 2 * MIB / 15e-6 / 50e9)
    assert row.endswith("of nominal 50 GB/s")


@pytest.mark.parametrize(("verdict", "taken_s"), [("faster", 15e-6), ("default", 20e-6)])
def test_best_says_what_share_its_answer_reaches(
    store: Store, url: str, capsys: pytest.CaptureFixture[str], verdict: str, taken_s: float
) -> None:
    """Of the time that the answer takes: with the profile, or the default's where that stays."""
    found = Verdict(verdict)
    points = (given.point(MIB),)
    confirmed(store, LEONARDO, backend="xccl", nodes=2, ranks=8, verdict=found, points=points)
    question = ("allreduce", "1MiB")
    best.best_command(*question, db=url)
    words = capsys.readouterr().out
    reached = MIB / taken_s * 2 * 7 / 8 / 87.5e9
    assert f"{format_percent(reached)} of nominal 87.5 GB/s by hierarchical" in words
    assert ("  with it: " if verdict == "faster" else "  the default: ") in words
    best.best_command(*question, db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["of_nominal"]["share"] == pytest.approx(reached)


def test_best_finds_its_share_without_the_parser_of_descriptions(store: Store, url: str) -> None:
    """That takes longer to load than all the rest of the answer."""
    confirmed(store, LEONARDO, backend="xccl", nodes=2, ranks=8, points=(given.point(MIB),))
    program = (
        "import sys; from commtune.commands.profiles import best; "
        "best.best_command('allreduce', '1MiB', db=sys.argv[1]); "
        "print(*{'pydantic', 'yaml', 'commtune.spaces'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=True
    )
    assert "of nominal 87.5 GB/s" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_best_says_nothing_of_a_nominal_that_nobody_knows(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    confirmed(store, {}, backend="xccl")
    question = ("allreduce", "1MiB")
    best.best_command(*question, db=url)
    assert "nominal" not in capsys.readouterr().out


def test_pairs_of_gpus_have_a_nominal_each() -> None:
    workload = Workload(Operation.PAIRS, (MIB,), 2, backend=Backend.XCCL)
    assert nominal_share.of_pairs(workload, run_of(header())) == {(0, 1): 450e9, (1, 0): 450e9}
    assert nominal_share.of_pairs(workload, run_of(None)) == {}


def run_of(run_header: dict[str, Any] | None) -> RunResult:
    measured = tuple(given.measurement(size, size / 225e9) for size in (MIB, 64 * MIB))
    return given.result(header=run_header, measurements=measured, outcome=Outcome.OK)


def test_a_single_run_is_compared_with_what_its_driver_names() -> None:
    workload = Workload(Operation.PING_PONG, (MIB, 64 * MIB), 2, backend=Backend.XCCL)
    run = run_of(header())
    whole = nominal_share.nominal_of_run(workload, run)
    assert whole is not None
    words = _describe_share(whole, run)
    assert words.startswith("largest size: 50% of nominal 3600 Gb/s (450 GB/s) by widest")
    assert "18 links x 25 GB/s from GPU 0 to the switch; links that the driver names" in words
    assert nominal_share.nominal_of_run(workload, run_of(None)) is None
    none = nominal_share.nominal_of_run(replace(workload, emulated_nodes=2), run)
    assert none is not None and "emulated" in _describe_share(none, run)


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [("allreduce", 4, 1.5), ("alltoall", 4, 0.75), ("allgather", 8, 0.875), ("broadcast", 4, 1),
     ("ping-pong", 2, 1), ("incast", 4, 3), ("ring", 4, 1)],
)  # fmt: skip
def test_bus_bandwidth_is_counted_as_the_benchmark_counts(
    operation: str, ranks: int, factor: float
) -> None:
    found = bus_bandwidth(NominalQuestion(operation, ranks), 1000, 1e-6)
    assert found == pytest.approx(factor * 1e9)


@pytest.mark.parametrize(
    ("question", "factor"),
    [
        (NominalQuestion("stream", 2), None),
        (NominalQuestion("stream", 2, window=8), 8),
        (NominalQuestion("rail", 8, group_size=4, active=3), 3),
        (NominalQuestion("symmetric", 8, group_size=4, active=3, direction="bidirectional"), 6),
        (NominalQuestion("asymmetric", 8, group_size=4, active=1, direction="omnidirectional"), 2),
        (NominalQuestion("rail", 8), None),
        (NominalQuestion("matrix", 4), None),
        (NominalQuestion("matrix", 4, flows=((0, 1, 4.0), (2, 3, 1.0))), 1.25),
        (NominalQuestion("striping", 4, group_size=2), 1),
    ],
)
def test_bandwidth_of_patterns(question: NominalQuestion, factor: float | None) -> None:
    """CommBench's: what crosses the border of the first group, in and out."""
    found = bus_bandwidth(question, 1000, 1e-6)
    assert found == (None if factor is None else pytest.approx(factor * 1e9))
