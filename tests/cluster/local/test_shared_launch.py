"""Search runs in one launch: real ranks and forks, by a backend that needs neither MPI nor GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from search_session import OWN_RUNS, TIMING, VARIABLE, FaultyProgram, SearchSession, is_shared
from serving_bench import build_serving_bench
from waiting import PATIENCE_S, wait_for

from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.cluster.local.shared_launch import SharedLaunch, can_share_launches
from commtune.documents.yaml_document import parse_document
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    DEFAULT,
    Aggressor,
    AggressorPattern,
    MpiInstallation,
    Operation,
    Outcome,
    Phase,
    RunRequest,
    Workload,
)
from commtune.spaces.loading import build_space
from commtune.tuner.ports import Records


@dataclass
class _Session(SearchSession):
    benchmark: LocalBenchmark
    said: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def serving(mpi: MpiInstallation) -> Path:
    return build_serving_bench(mpi)


@pytest.fixture
def session(mpi: MpiInstallation, serving: Path, tmp_path: Path) -> Iterator[_Session]:
    said: list[str] = []
    shared = SharedLaunch(said.append)
    benchmark = LocalBenchmark(
        mpi=mpi,
        program=FaultyProgram(NativeProgram(serving, (VARIABLE,))),
        environment=base_environment(os.environ, mpi),
        watched=(VARIABLE,),
        folder=tmp_path / "runs",
        shared=shared,
    )
    yield _Session(benchmark, said=said)
    shared.close()
    assert _ranks() == []


def _ranks() -> list[psutil.Process]:
    """Our ranks that serve, and what they forked."""
    found = []
    for one in psutil.Process().children(recursive=True):
        try:
            if "--mode=serve" in one.cmdline() and one.name() == "commtune-bench":
                found.append(one)
        except psutil.Error:
            continue
    return found


def test_runs_share_a_launch_and_see_their_own_settings(session: _Session) -> None:
    session.begin()
    ranks = {process.pid for process in _ranks()}
    for value in ("65536", "1048576", "", "7"):
        result = session.run(value)
        assert result.outcome is Outcome.OK, result.detail
        assert is_shared(result)
        assert {m.bytes for m in result.measurements} == {8, 64}
        assert result.header is not None
        seen = [rank["environment"].get(VARIABLE, "") for rank in result.header["rank_info"]]
        assert seen == [value] * 2
        assert "environment" not in result.header  # that of the launch is not the run's own
    assert {process.pid for process in _ranks()} == ranks
    # The launch's own work is not background load.
    began, shared = time.monotonic(), session.benchmark.shared
    assert shared is not None
    before_s = shared.used_s()
    result = session.run("3")
    assert shared.used_s() - before_s > 0
    assert result.other_load is None or 0 <= result.other_load <= 1
    assert result.wall_s <= time.monotonic() - began


def test_what_follows_the_search_has_launches_of_its_own_and_nothing_beside(
    session: _Session,
) -> None:
    session.begin()
    assert len(_ranks()) == 2
    result = session.run("1", Phase.CONFIRM)
    assert result.outcome is Outcome.OK
    assert not is_shared(result)
    assert _ranks() == []
    assert is_shared(session.run("2"))


@pytest.mark.slow
def test_a_run_that_fails_costs_its_configuration_only(session: _Session) -> None:
    session.begin()
    for fault, outcome in {
        "crash": Outcome.CRASHED,
        "wrong": Outcome.WRONG_RESULT,
        "hang": Outcome.TIMED_OUT,
    }.items():
        limit_s = 2.0 if fault == "hang" else PATIENCE_S
        failed = session.run(fault, limit_s=limit_s)
        assert failed.outcome is outcome, failed.detail
        assert _ranks() == []
        good = session.run("5")
        assert good.outcome is Outcome.OK and is_shared(good)


@pytest.mark.slow
def test_a_configuration_that_fails_first_in_a_launch_does_not_end_sharing(
    session: _Session,
) -> None:
    for _ in range(OWN_RUNS):
        session.run()
    assert session.run("crash").outcome is Outcome.CRASHED
    assert session.said == []
    assert is_shared(session.run("5"))


def test_a_launch_that_is_killed_as_it_begins_is_replaced_by_another(
    session: _Session, tmp_path: Path
) -> None:
    by_mpi = local_launcher(session.benchmark.mpi)

    def kill_the_fifth(ranks: int, program: Sequence[str], limit_s: float) -> list[str]:
        with (tmp_path / "launches").open("a+") as launches:
            launches.write("one\n")
            launches.seek(0)
            is_fifth = len(launches.readlines()) == OWN_RUNS + 1
        words = [*by_mpi.command(ranks, program, limit_s)]
        return ["sh", "-c", "kill -9 $$"] if is_fifth else words

    launcher = replace(by_mpi, command=kill_the_fifth)
    session.benchmark = replace(session.benchmark, launcher=launcher)
    session.begin()
    assert session.said == []


def test_where_launches_cant_be_shared_each_run_has_its_own(
    session: _Session, executable: Path
) -> None:
    # What it measures needs MPI, which a forked process doesn't have.
    on_host = _OnHost(NativeProgram(executable, (VARIABLE,)))
    session.benchmark = replace(session.benchmark, program=on_host)
    for _ in range(OWN_RUNS + 2):
        result = session.run()
        assert result.outcome is Outcome.OK, result.detail
        assert not is_shared(result)
    assert len(session.said) == 1
    begun = "runs can't share a launch here, so each has one of its own: it ended with status "
    assert session.said[0].startswith(begun)


@dataclass(frozen=True)
class _OnHost:
    native: NativeProgram

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        words = self.native.arguments(request, records)
        return [word for word in words if not word.startswith(("--backend=", "--bind="))]

    def read(self, records: Path, request: RunRequest) -> Records:
        asked = replace(request, workload=replace(request.workload, backend="mpi-host"))
        return self.native.read(records, asked)


def test_a_rank_that_is_killed_between_two_runs_is_started_again(session: _Session) -> None:
    session.begin()
    created = _segments(_ranks())
    assert created
    time.sleep(2.0)  # launches are older than a run, and file systems' clocks are coarse
    _ranks()[0].kill()
    result = session.run("2")  # which is not to blame, whether or not the launcher is gone by then
    assert result.outcome is Outcome.OK, result.detail
    assert not any(segment.exists() for segment in created)
    assert is_shared(session.run("3")), session.benchmark.shared  # says how a launch failed
    assert session.said == []


def _segments(processes: list[psutil.Process]) -> list[Path]:
    """The named segments of MPI that processes have mapped."""
    return [
        Path(mapped.path)
        for process in processes
        for mapped in process.memory_maps()
        if mapped.path.startswith("/dev/shm/") and Path(mapped.path).exists()
    ]


def test_a_launch_that_ended_between_two_runs_is_started_again(session: _Session) -> None:
    session.begin()
    (launcher,) = set(psutil.Process().children()) & set(_ranks()[0].parents())
    launcher.terminate()
    wait_for(lambda: not _lives(launcher), "the launcher's end")
    result = session.run("2")
    assert result.outcome is Outcome.OK and is_shared(result)


def test_a_later_controller_ends_what_one_that_was_killed_left(session: _Session) -> None:
    session.begin()
    ranks = _ranks()
    request = RunRequest("gone", DEFAULT, Workload(Operation.ALLTOALL, (8,)), TIMING)
    assert session.benchmark.recover(request) is None
    wait_for(lambda: not any(_lives(process) for process in ranks), "the end of all ranks")


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


_SPACE = """
space: 1
name: sharing
library: nccl
parameters:
  - {{name: {name}, kind: choice, values: ["1", "2"]}}
  - {{name: NCCL_NTHREADS, kind: choice, values: ["64"]}}
"""


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        (VARIABLE, {}, True),
        ("UCX_TLS", {}, False),
        (VARIABLE, {"shares_launches": False}, False),
        (VARIABLE, {"aggressor": Aggressor(AggressorPattern.INCAST, 8)}, False),
    ],
)
def test_only_variables_that_a_library_reads_anew_share_launches(
    name: str, changes: dict[str, object], expected: bool
) -> None:
    space = build_space(parse_document(_SPACE.format(name=name)))
    plan = Plan("sharing", space, Workload(Operation.ALLREDUCE, (8,), backend="xccl"))
    assert can_share_launches(replace(plan, **changes)) is expected  # type: ignore[arg-type]
    on_host = replace(plan, workload=replace(plan.workload, backend="mpi-host"))
    assert not can_share_launches(on_host)
