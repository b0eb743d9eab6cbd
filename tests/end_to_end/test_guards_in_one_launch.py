"""All guard operations in one launch, with the real benchmark, a store, and an export."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from database_values import profiles_of
from export_documents import DOCUMENT, PROFILE
from held_campaigns import record
from quiet import QuietReporter
from search_session import FaultyProgram
from waiting import PATIENCE_S

from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.db.queries import profiles
from commtune.db.storage.store import Store
from commtune.documents.yaml_document import parse_document
from commtune.export import render_profile
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    Configuration,
    MpiInstallation,
    Operation,
    Outcome,
    PointEvidence,
    RunRequest,
    Timing,
    Workload,
)
from commtune.model.conclusion import Decision
from commtune.spaces.loading import build_space
from commtune.tuner.confirmation.phase import _GUARD_BLOCKS, ConfirmationPhase
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.ports import Records

_SPACE = """
space: 1
name: faults
library: mpich
parameters:
  - {name: FAULT, kind: choice, values: ["0", crash]}
"""
_SIZES = (8, 4096)
_GOOD, _BAD = (Configuration({"FAULT": fault}) for fault in ("0", "crash"))
_GUARDS = (Operation.BROADCAST, Operation.STREAM)


@dataclass(frozen=True)
class InOneState(FaultyProgram):
    """Without a canary: on a busy machine there may be no pair of runs in one machine state."""

    def read(self, records: Path, request: RunRequest) -> Records:
        found = super().read(records, request)
        measured = [replace(m, canary_s=None, canary_after_s=None) for m in found.measurements]
        return replace(found, measurements=tuple(measured))


@dataclass(frozen=True)
class Guarding:
    """The guard phase of a campaign of two guards, over a real store."""

    benchmark: LocalBenchmark
    store: Store
    plan: Plan

    @property
    def campaign_id(self) -> int:
        return self.store.open_campaign(record(self.plan, simulated=False)).id

    def phase(self) -> ConfirmationPhase:
        """A new session over the same database."""
        store = Store(self.store.database)
        store.lock(self.campaign_id)
        runner = Runner(self.plan, self.campaign_id, self.benchmark, store)
        runner.recover()
        runner.load()
        return ConfirmationPhase(Session(self.plan, runner, QuietReporter()))


@pytest.fixture
def guarding(mpi: MpiInstallation, executable: Path, store: Store, tmp_path: Path) -> Guarding:
    benchmark = LocalBenchmark(
        mpi=mpi,
        program=InOneState(NativeProgram(executable, ("FAULT",)), "FAULT", size=4096),
        environment=base_environment(os.environ, mpi),
        watched=("FAULT",),
        folder=tmp_path / "runs",
    )
    plan = Plan(
        name="guarded",
        space=build_space(parse_document(_SPACE)),
        workload=Workload(Operation.ALLREDUCE, _SIZES),
        timing=Timing(warmup=1, min_samples=3, max_samples=5, time_cap_s=0.01),
        guards=_GUARDS,
        time_limit_s=PATIENCE_S,
    )
    return Guarding(benchmark, store, plan)


def _decision(*candidates: Configuration) -> Decision:
    return Decision(candidates, blocks=1, first_block=0, budget_s=1.0)


def test_both_guards_are_measured_by_every_launch(guarding: Guarding) -> None:
    phase = guarding.phase()
    points = phase.guard(_decision(_GOOD), [_GOOD])[_GOOD]

    runs = list(guarding.store.runs(guarding.campaign_id))
    # Other programs may slow a run, which is then made again.
    assert len({(run.block, run.configuration) for run in runs}) == 2 * _GUARD_BLOCKS
    assert {run.outcome for run in runs} == {Outcome.OK}
    assert {(run.operation, run.then) for run in runs} == {("stream", ("broadcast",))}
    files = sorted(guarding.benchmark.folder.iterdir())
    assert [file.stem for file in files] == sorted(run.run_id for run in runs)
    with guarding.store.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT operation, bytes FROM measurements")
        stored = Counter((row.operation, row.bytes) for row in rows)
    assert stored == {(str(g), size): len(runs) for g in _GUARDS for size in _SIZES}
    assert {(p.operation, p.bytes) for p in points} == set(stored)

    # From what is stored, the same evidence, and not a run more.
    assert guarding.phase().guard(_decision(_GOOD), [_GOOD])[_GOOD] == points
    assert len(list(guarding.store.runs(guarding.campaign_id))) == len(runs)

    _check_export(guarding, points)
    _check_recovery(guarding)


def _check_export(guarding: Guarding, points: tuple[PointEvidence, ...]) -> None:
    profile = replace(PROFILE, configuration=_GOOD, guards=points)
    guarding.store.save_profiles(guarding.campaign_id, [profile])
    (kept,) = profiles_of(guarding.store, "guarded")
    stored_profile = profiles.load_profile(guarding.store.database.whole_url, str(kept.id)).profile
    exported = json.loads(render_profile("json", replace(DOCUMENT, profile=stored_profile)))
    assert {g["operation"] for g in exported["profile"]["guards"]} == {"broadcast", "stream"}


def _check_recovery(guarding: Guarding) -> None:
    """A run that an earlier controller left is read whole."""
    run = list(guarding.store.runs(guarding.campaign_id))[-1]
    with guarding.store.database.write() as connection:
        connection.exec_driver_sql(
            f"DELETE FROM measurements WHERE run_id IN "
            f"(SELECT id FROM runs WHERE run_id = '{run.run_id}')"
        )
        connection.exec_driver_sql(
            f"UPDATE runs SET state = 'running', outcome = NULL WHERE run_id = '{run.run_id}'"
        )
    guarding.phase()
    again = list(guarding.store.runs(guarding.campaign_id))[-1]
    assert (again.run_id, again.outcome, again.measurements) == (
        run.run_id,
        Outcome.OK,
        run.measurements,
    )


def test_a_launch_that_fails_counts_against_both_and_says_where(guarding: Guarding) -> None:
    found = guarding.phase().guard(_decision(_BAD), [_BAD])
    assert found == {_BAD: ()}
    failed = [r for r in guarding.store.runs(guarding.campaign_id) if r.configuration == _BAD]
    assert len({run.block for run in failed}) == _GUARD_BLOCKS
    for run in failed:
        assert run.outcome is Outcome.CRASHED
        assert run.detail.endswith(" (at stream)")
        assert [(m.operation, m.bytes) for m in run.measurements] == [("stream", 8)]
