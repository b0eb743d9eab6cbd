"""The campaign that ``trace-messages`` writes: calls in proportion, and what people name files."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from command_line import ROOT
from components import require_component

from commtune.app.measure.message_campaign import (
    MessageCounts,
    check_new_files,
    write_campaign,
    write_nccl_campaign,
)
from commtune.campaign.loading import load_campaign
from commtune.errors import CommtuneError, UserError
from commtune.kernels.python_bench import Pattern
from commtune.model import DEFAULT, Backend, Operation, Outcome, Phase, RunRequest
from commtune.wiring import benchmark_setup


@pytest.fixture(autouse=True)
def mpich() -> None:
    there = (ROOT / ".mpi" / "mpich.installed").exists()
    require_component("wheel:mpich (make .mpi/mpich.installed)", there)


def _write(
    folder: Path, calls: dict[tuple[str, int], dict[int, int]], name: str = "solver.yaml",
    command: tuple[str, ...] = ("./solver",),
) -> tuple[Path, ModuleType]:  # fmt: skip
    file, pattern = write_campaign(folder / name, MessageCounts("", calls), command, "wheel:mpich")
    spec = importlib.util.spec_from_file_location("written", pattern)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return file, module


def test_calls_stand_in_proportion_and_sizes_by_their_number(tmp_path: Path) -> None:
    calls = {
        ("allreduce", 4): {8: 30_000, 1024: 7},
        ("broadcast", 4): {8: 10, 1024: 7},
        ("broadcast", 2): {8: 5},
    }
    file, module = _write(tmp_path, calls)
    assert module.CALLS == {
        8: {"allreduce": 100, "broadcast": 1},
        1024: {"allreduce": 1, "broadcast": 1},
    }
    made = module.Solver(4, 1024)
    assert isinstance(made, Pattern)
    assert [(c.operation, c.size, c.times) for c in made.calls] == [
        ("allreduce", 1024, 1), ("broadcast", 1024, 1)
    ]  # fmt: skip
    # Where what is best changes, campaigns measure between two sizes, too.
    assert module.Solver(4, 500).calls[0].size == 500
    spec = load_campaign(file)
    assert spec.plan.workload.sizes == (8, 1024)
    assert (spec.plan.workload.ranks, str(spec.plan.workload.operation)) == (4, "own:Solver")
    # So many executions make as many calls as were counted, within their rounding.
    assert spec.plan.messages == {8: 297, 1024: 7}
    assert spec.plan.space.library == "mpich"
    assert [str(guard) for guard in spec.plan.guards] == ["ping-pong", "reduce"]


def test_many_sizes_are_grouped(tmp_path: Path) -> None:
    calls = {("broadcast", 2): dict.fromkeys(range(1, 5000), 1)}
    file, module = _write(tmp_path, calls)
    assert list(module.CALLS) == [2**power for power in range(2, 13)]
    counted = load_campaign(file).plan.messages
    assert sum(counted.values()) == 4999


@pytest.mark.parametrize("name", ["2d-solver.v1.yaml", "class.yaml", "_.yml"])
def test_any_campaign_has_a_pattern_with_a_name(name: str, tmp_path: Path) -> None:
    calls = {("allreduce", 2): {8: 1}}
    try:
        file, _ = _write(tmp_path, calls, name)
    except CommtuneError as error:
        assert "can't name a campaign" in error.message
        return
    assert str(load_campaign(file).plan.workload.operation).startswith("own:")


def test_no_command_line_gets_out_of_its_comment(tmp_path: Path) -> None:
    command = ("sh", "-c", 'echo """\nraise SystemExit\n# \\', "a\\b")
    file, module = _write(tmp_path, {("allreduce", 2): {8: 1}}, command=command)
    assert module.CALLS == {8: {"allreduce": 1}}
    assert load_campaign(file).plan.workload.sizes == (8,)


def test_an_mpi_of_any_name_is_read_back(tmp_path: Path) -> None:
    prefix = tmp_path / "mpi #2: {a}"
    prefix.symlink_to(ROOT / ".mpi/mpich-5.0.2")
    counts = MessageCounts("", {("allreduce", 2): {8: 1}})
    file, _ = write_campaign(tmp_path / "solver.yaml", counts, ("./solver",), str(prefix))
    assert load_campaign(file).mpi == str(prefix)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("mine")
    with pytest.raises(UserError, match=r"a.py is there already"):
        check_new_files(tmp_path / "a.yaml")
    with pytest.raises(UserError, match="is to be a campaign file"):
        check_new_files(tmp_path / "b.py")


def test_nccl_s_calls_are_a_campaign_of_the_operation_that_moves_most(tmp_path: Path) -> None:
    calls = {
        ("allgather", 2): {2048: 1_000},
        ("allreduce", 2): {2_101_248: 18, 4_202_496: 1},
        ("broadcast", 2): {8: 1},
        ("allreduce", 1): {512: 2},
    }
    file = write_nccl_campaign(tmp_path / "ddp.yaml", MessageCounts("", calls), ("./ddp",))
    plan = load_campaign(file).plan
    assert (plan.workload.operation, plan.workload.backend) == (Operation.ALLREDUCE, Backend.XCCL)
    assert (plan.workload.ranks, plan.workload.sizes) == (2, (2_101_248, 4_202_496))
    assert dict(plan.messages) == calls["allreduce", 2]
    assert plan.guards == (Operation.ALLGATHER, Operation.BROADCAST)
    assert "# Not in it: allreduce, 1 rank: 2 calls.\n" in file.read_text()


def test_guard_operations_are_measured_by_themselves(tmp_path: Path) -> None:
    file, _ = _write(tmp_path, {("allreduce", 2): {1024: 5}})
    spec = load_campaign(file)
    mpi = benchmark_setup.find_named_mpi(spec.mpi)
    own = spec.plan.workload
    benchmark = benchmark_setup.prepare_benchmark(mpi, {}, (), own, tmp_path)
    for number, guard in enumerate(spec.plan.guards):
        workload = replace(own, operation=guard)
        request = RunRequest(str(number), DEFAULT, workload, spec.plan.timing, Phase.GUARD)
        result = benchmark.measure(request, 60.0)
        assert (result.outcome, result.detail) == (Outcome.OK, "")
        assert [one.bytes for one in result.measurements] == [1024]
    assert not own.takes_several
