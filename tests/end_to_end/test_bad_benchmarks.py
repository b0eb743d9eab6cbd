"""Benchmarks that hang, crash, lie, babble or are not there: each its own outcome, and on it goes.

A made-up variable FAULT picks what goes wrong; the rest is the real thing: launcher, benchmark,
records, campaign, store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from held_campaigns import hold
from late_limits import begin_when_of
from left_over import living
from quiet import QuietReporter
from stores import opened_store
from waiting import PATIENCE_S

from commtune.campaign.plan import Budget, Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.db.connection.engine import Database
from commtune.db.storage.store import Store
from commtune.documents.yaml_document import parse_document
from commtune.errors import EnvironmentFault
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    Configuration,
    MpiInstallation,
    Operation,
    Outcome,
    Run,
    RunRequest,
    Timing,
    Workload,
)
from commtune.spaces.loading import build_space
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Records

_SPACE = """
space: 1
name: faults
library: mpich
parameters:
  - {name: FAULT, kind: choice, values: [hang, crash, wrong, babble, silent, cut, deaf]}
  - {name: OTHER, kind: bool}
"""
_SIZES = (8, 1024, 65536)
_NATIVE = ("hang", "crash", "wrong", "babble")


@dataclass(frozen=True)
class FaultyProgram:
    """The native benchmark, spoiled at 1024 bytes in the way that FAULT says."""

    native: NativeProgram

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        command = self.native.arguments(request, records)
        fault = request.configuration.get("FAULT", "")
        if fault in _NATIVE:
            return [*command, f"--fault={fault}@1024"]
        # `deaf` hangs as well, under a shell that ignores what it is told.
        deaf = ["/bin/sh", "-c", 'trap "" TERM INT HUP; "$@"', "sh", *command, "--fault=hang@1024"]
        others = {"silent": ["/bin/echo", "nothing"], "deaf": deaf}
        return others.get(fault, command)

    def read(self, records: Path, request: RunRequest) -> Records:
        if request.configuration.get("FAULT") == "cut" and records.exists():
            lines = records.read_bytes().splitlines(keepends=True)
            records.write_bytes(b"".join(lines[:-1]))
        return self.native.read(records, request)


@dataclass
class Ended:
    """What a campaign left: its report, its runs by configuration, and what it said."""

    report: CampaignResult
    runs: dict[Configuration, list[Run]]
    said: list[str]
    database: Database
    folder: Path

    def of(self, fault: str) -> Run:
        """The run of a fault by itself."""
        (run,) = self.runs[Configuration({"FAULT": fault})]
        return run

    def column(self, name: str, run: Run) -> str:
        with self.database.read() as connection:
            statement = f"SELECT {name} FROM runs WHERE run_id = '{run.run_id}'"
            return str(connection.exec_driver_sql(statement).scalar())


def _plan(limit_s: float = PATIENCE_S) -> Plan:
    faults = [*_NATIVE, "silent", "cut", "deaf"]
    return Plan(
        name="faults",
        space=build_space(parse_document(_SPACE)),
        workload=Workload(Operation.ALLREDUCE, _SIZES),
        timing=Timing(warmup=1, min_samples=3, max_samples=5, time_cap_s=0.01),
        # What is to be tried first is tried, however little is left of the budget.
        budget=Budget(1.0, ablation_s=0.1, confirmation_s=0.1, trials=len(faults) + 2),
        first=(
            Configuration({"OTHER": "1"}),
            *(Configuration({"FAULT": fault}) for fault in faults),
            Configuration({"FAULT": "crash", "OTHER": "1"}),
        ),
        time_limit_s=limit_s,
    )


def _benchmark(mpi: MpiInstallation, executable: Path, folder: Path) -> LocalBenchmark:
    variables = ("FAULT", "OTHER")
    return LocalBenchmark(
        mpi=mpi,
        program=FaultyProgram(NativeProgram(executable, variables)),
        environment=base_environment(os.environ, mpi),
        watched=variables,
        folder=folder / "runs",
    )


def _runner(benchmark: LocalBenchmark, store: Store, plan: Plan | None = None) -> Runner:
    plan = plan or _plan()
    return Runner(plan, hold(store, plan, simulated=False), benchmark, store)


def _is_to_hang(words: Sequence[str]) -> bool:
    """Whether a run that will hang wrote its header and its first size."""
    if not any("hang" in word for word in words):
        return False  # it ends by itself, in its own time
    (records,) = [Path(word.partition("=")[2]) for word in words if word.startswith("--records=")]
    return records.exists() and records.read_bytes().count(b"\n") >= 2


@pytest.fixture(scope="module")
def ended(
    mpi: MpiInstallation, executable: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ended]:
    """A campaign through all faults; the tests look at what is left."""
    folder = tmp_path_factory.mktemp("faults")
    with opened_store(folder / "test.db") as store:
        plan, reporter = _plan(limit_s=0.5), QuietReporter()
        runner = _runner(_benchmark(mpi, executable, folder), store, plan)
        with pytest.MonkeyPatch.context() as patched:
            begin_when_of(patched, _is_to_hang)
            report = Campaign(plan, runner, reporter).run()
        runs: dict[Configuration, list[Run]] = {}
        for run in store.runs(runner.campaign_id):
            runs.setdefault(run.configuration, []).append(run)
        yield Ended(report, runs, reporter.said, store.database, folder)


@pytest.mark.parametrize(
    ("fault", "outcome", "detail", "sizes"),
    [
        ("hang", Outcome.TIMED_OUT, "over its 0.5 s, with 1 size finished", [8]),
        ("deaf", Outcome.TIMED_OUT, "over its 0.5 s, with 1 size finished", [8]),
        ("crash", Outcome.CRASHED, "a rank was ended by a signal (status 6)", [8]),
        ("wrong", Outcome.WRONG_RESULT, "2 elements of the result were wrong", list(_SIZES)),
        (
            "babble",
            Outcome.MALFORMED,
            "longer than 67108864 bytes; the rest was not read",
            [8],
        ),
        ("silent", Outcome.TRUNCATED, "the record file has no footer", []),
        ("cut", Outcome.TRUNCATED, "the record file has no footer", list(_SIZES)),
    ],
)
def test_each_fault_is_its_own_outcome_and_keeps_what_was_finished(
    ended: Ended, fault: str, outcome: Outcome, detail: str, sizes: list[int]
) -> None:
    run = ended.of(fault)
    assert (run.outcome, run.detail) == (outcome, detail)
    assert [m.bytes for m in run.measurements] == sizes


def test_the_end_of_the_output_is_kept_where_a_run_failed(ended: Ended) -> None:
    assert "Aborted (signal 6)" in ended.column("output_tail", ended.of("crash"))
    assert ended.column("output_tail", ended.of("silent")) == "nothing\nnothing\n"
    good = ended.runs[Configuration()][0]
    assert ended.column("output_tail", good) == ""


def test_the_campaign_went_on_to_its_end(ended: Ended) -> None:
    assert ended.report.trials == 10
    defaults = ended.runs[Configuration()]
    assert {run.outcome for run in defaults} == {Outcome.OK}
    assert all([m.bytes for m in run.measurements] == list(_SIZES) for run in defaults)


def test_a_value_that_failed_twice_is_set_aside_and_the_user_told(ended: Ended) -> None:
    assert ("FAULT", "crash") in ended.report.set_aside
    assert "setting aside FAULT=crash: failed twice (crashed), never worked" in ended.said


def test_no_failed_configuration_is_recommended(ended: Ended) -> None:
    assert all("FAULT" not in profile.configuration for profile in ended.report.profiles)
    assert all("FAULT" not in c for c in ended.report.comparison)


def test_no_process_is_left(ended: Ended) -> None:
    assert living(str(ended.folder)) == {}


def test_what_was_babbled_does_not_fill_the_disk(ended: Ended) -> None:
    sizes = [file.stat().st_size for file in (ended.folder / "runs").iterdir()]
    assert max(sizes) <= 2**20


@pytest.mark.parametrize("missing", ["launcher", "benchmark"])
def test_without_its_programs_the_campaign_stops_and_goes_on_when_they_are_back(
    mpi: MpiInstallation, executable: Path, store: Store, tmp_path: Path, missing: str
) -> None:
    gone = tmp_path / "gone"
    without = (
        _benchmark(replace(mpi, launcher=gone), executable, tmp_path)
        if missing == "launcher"
        else _benchmark(mpi, gone, tmp_path)
    )
    runner = _runner(without, store)
    with pytest.raises(EnvironmentFault) as fault:
        Campaign(_plan(), runner, QuietReporter()).run()
    assert fault.value.message == (
        f"can't start {gone}: No such file or directory"
        if missing == "launcher"
        else f"the benchmark is missing: {gone}"
    )
    (run,) = store.runs(runner.campaign_id)
    assert run.outcome is Outcome.MISSING_PROGRAM

    runner = _runner(_benchmark(mpi, executable, tmp_path), store)
    runner.recover()
    runner.load()
    runner.submit([Configuration()], run.phase, run.block)
    assert [run.outcome for run in runner.collect()] == [Outcome.OK]


def test_a_default_that_always_fails_ends_the_campaign_with_its_output(
    mpi: MpiInstallation, store: Store, tmp_path: Path
) -> None:
    runner = _runner(_benchmark(mpi, Path("/bin/false"), tmp_path), store)
    with pytest.raises(EnvironmentFault) as fault:
        Campaign(_plan(), runner, QuietReporter()).run()
    assert fault.value.message.startswith(
        "the default configuration failed three times in a row: failed, exit status 1"
    )
    assert fault.value.hint.startswith("try 'commtune bench'")
