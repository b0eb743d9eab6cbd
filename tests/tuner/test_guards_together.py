"""Guard operations in one launch: blocks, evidence, and campaigns that were begun otherwise."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace

import pytest
from quiet import QuietReporter
from simulated import SIZES, MadeUpNoise, SimulatedBenchmark, null, space

from commtune.campaign.plan import Budget, Plan
from commtune.model import (
    Backend,
    BlockPlan,
    Configuration,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.model.conclusion import Decision
from commtune.tuner.confirmation.phase import _GUARD_BLOCKS, ConfirmationPhase
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.statistics.machine_states import ALL

A, B = (Configuration({"V1": value}) for value in "12")
BROADCAST, ALLTOALL, STREAM = Operation.BROADCAST, Operation.ALLTOALL, Operation.STREAM
DECISION = Decision((A,), blocks=1, first_block=0, budget_s=10.0)
#: What A gains in each operation; times of different ones in one pair would say something else.
GAINS = {BROADCAST: 1.5, ALLTOALL: 1.0, STREAM: 2.0}


@dataclass
class Several(SimulatedBenchmark):
    """The made-up benchmark with ``then``: each operation takes so many times the one before."""

    fails: Configuration | None = None
    until: int = 1_000_000
    requests: list[RunRequest] = field(default_factory=list)
    limits_s: list[float] = field(default_factory=list)

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        if len(self.requests) == self.until:
            raise KeyboardInterrupt
        self.requests.append(request)
        self.limits_s.append(time_limit_s)
        found = super().measure(request, time_limit_s)
        measured = []
        for place, operation in enumerate(request.workload.operations):
            gain = GAINS[operation] if request.configuration == A else 1.0
            factor = 100**place / gain
            measured += [
                replace(m, median_s=m.median_s * factor, operation=operation if place else "")
                for m in found.measurements
            ]
        failed = request.configuration == self.fails
        outcome = Outcome.CRASHED if failed else Outcome.OK
        return replace(found, measurements=tuple(measured), outcome=outcome)


@dataclass
class Guarding:
    """The guard phase alone, over a store in memory."""

    guards: tuple[Operation, ...] = (BROADCAST, ALLTOALL)
    backend: Backend = Backend.MPI_HOST
    store: InMemoryStore = field(default_factory=lambda: InMemoryStore("1"))
    benchmark: Several = field(
        default_factory=lambda: Several(MadeUpNoise("normal", random.Random(1), 1.0, 0.01), null)
    )
    left_s: float = math.inf

    def phase(self) -> ConfirmationPhase:
        plan = Plan(
            "guarding",
            space(),
            Workload(Operation.ALLREDUCE, SIZES, backend=self.backend),
            budget=Budget(1, 1, 10),
            guards=self.guards,
            time_limit_s=3.0,
        )
        runner = Runner(
            plan,
            1,
            self.benchmark,
            self.store,
            clock=self.benchmark.clock,
            most_left_s=lambda: self.left_s,
        )
        runner.recover()
        runner.load()
        return ConfirmationPhase(Session(plan, runner, QuietReporter()))

    def guard(self, *recommended: Configuration) -> dict[Configuration, tuple[PointEvidence, ...]]:
        return self.phase().guard(DECISION, recommended or (A,))


def pairs(points: tuple[PointEvidence, ...]) -> dict[str, set[int]]:
    return {
        str(operation): {p.gain.pairs for p in points if p.operation == operation}
        for operation in GAINS
        if any(p.operation == operation for p in points)
    }


def assert_gains(points: tuple[PointEvidence, ...]) -> None:
    for point in points:
        assert point.gain.ratio == pytest.approx(GAINS[Operation(point.operation)], rel=0.05)


def test_a_run_measures_all_guards_and_each_has_its_evidence() -> None:
    made = Guarding()
    found = made.guard(A, B)
    runs = made.store.stored
    assert len(runs) == 3 * _GUARD_BLOCKS
    assert {(run.operation, run.then) for run in runs} == {("broadcast", ("alltoall",))}
    assert {run.phase for run in runs} == {Phase.GUARD}
    assert (
        pairs(found[A])
        == pairs(found[B])
        == {"broadcast": {_GUARD_BLOCKS}, "alltoall": {_GUARD_BLOCKS}}
    )
    assert {p.bytes for p in found[A] if p.speed == ALL} == set(SIZES)
    assert_gains(found[A])
    # Three seconds for a run of one operation.
    assert set(made.benchmark.limits_s) == {6.0}


def test_once_made_they_are_made() -> None:
    made = Guarding()
    found = made.guard()
    assert made.guard() == found
    assert len(made.store.stored) == 2 * _GUARD_BLOCKS


def test_a_stream_is_the_first_since_the_benchmark_takes_it_nowhere_else() -> None:
    made = Guarding((BROADCAST, STREAM, ALLTOALL))
    assert_gains(made.guard()[A])
    (operations,) = {request.workload.operations for request in made.benchmark.requests}
    assert operations == (STREAM, BROADCAST, ALLTOALL)


def test_a_benchmark_that_measures_one_operation_a_run_is_asked_for_one() -> None:
    made = Guarding(backend=Backend.PYTHON_HOST)
    found = made.guard()
    assert len(made.store.stored) == 2 * 2 * _GUARD_BLOCKS
    assert {run.then for run in made.store.stored} == {()}
    assert pairs(found[A]) == {"broadcast": {_GUARD_BLOCKS}, "alltoall": {_GUARD_BLOCKS}}
    assert set(made.benchmark.limits_s) == {3.0}


def test_a_run_that_failed_counts_against_all_of_them() -> None:
    made = Guarding()
    made.benchmark.fails = A
    found = made.guard(A, B)
    assert found[A] == ()
    assert pairs(found[B]) == {"broadcast": {_GUARD_BLOCKS}, "alltoall": {_GUARD_BLOCKS}}
    assert len(made.store.stored) == 3 * _GUARD_BLOCKS


def test_a_block_that_was_cut_short_is_made_anew() -> None:
    made = Guarding()
    made.benchmark.until = 3
    with pytest.raises(KeyboardInterrupt):
        made.guard()
    made.benchmark.until = 1_000_000
    found = made.guard()
    assert pairs(found[A]) == {"broadcast": {_GUARD_BLOCKS}, "alltoall": {_GUARD_BLOCKS}}
    assert len(made.benchmark.requests) == 1 + 2 * _GUARD_BLOCKS
    assert_gains(found[A])


def test_the_time_left_must_suffice_for_all_operations_of_a_block() -> None:
    made = Guarding()
    made.benchmark.until = 2
    with pytest.raises(KeyboardInterrupt):
        made.guard()
    made.benchmark.until = 1_000_000
    made.left_s = 3.9  # runs took a second; a block of two with both guards counts as four
    made.guard()
    assert len(made.benchmark.requests) == 2
    made.left_s = 4.1
    made.guard()
    assert len(made.benchmark.requests) == 2 * _GUARD_BLOCKS


@pytest.mark.parametrize("whole", [2, _GUARD_BLOCKS])
def test_blocks_of_a_single_guard_from_before_count(whole: int) -> None:
    """What an earlier version left: blocks of the first guard, the last one cut short."""
    made = Guarding((BROADCAST,))
    made.benchmark.until = 2 * whole + 1
    if whole < _GUARD_BLOCKS:
        with pytest.raises(KeyboardInterrupt):
            made.guard()
    else:
        made.guard()
    made.benchmark.until = 1_000_000
    before = len(made.benchmark.requests)
    made.guards = (BROADCAST, ALLTOALL)
    found = made.guard()
    assert len(made.benchmark.requests) == before + 2 * _GUARD_BLOCKS
    of_broadcast = _GUARD_BLOCKS if whole == _GUARD_BLOCKS else whole + _GUARD_BLOCKS
    assert pairs(found[A]) == {"broadcast": {of_broadcast}, "alltoall": {_GUARD_BLOCKS}}
    assert_gains(found[A])
    last = made.benchmark.requests[-1].workload.operations
    assert last == ((ALLTOALL,) if whole == _GUARD_BLOCKS else (BROADCAST, ALLTOALL))
    assert made.guard() == found


def test_another_guard_later_is_measured_by_itself() -> None:
    made = Guarding()
    before = made.guard()[A]
    made.guards = (BROADCAST, ALLTOALL, STREAM)
    after = made.guard()[A]
    assert after[: len(before)] == before
    assert [r.workload.operations for r in made.benchmark.requests[-2 * _GUARD_BLOCKS :]] == [
        (STREAM,)
    ] * (2 * _GUARD_BLOCKS)


def test_blocks_have_the_name_of_their_first_operation() -> None:
    made = Guarding()
    made.guard()
    plans: list[BlockPlan] = list(made.store.plans)
    assert {(plan.phase, plan.operation) for plan in plans} == {(Phase.GUARD, BROADCAST)}
    assert len(plans) == _GUARD_BLOCKS
