"""Confirmations alone, over noise with a known truth: no search before them, all in memory."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import simulated
from quiet import QuietReporter
from simulated import Effect, MadeUpNoise, Noise, SimulatedBenchmark

from commtune.campaign.plan import Budget, Plan
from commtune.model import (
    Configuration,
    Operation,
    Workload,
)
from commtune.model.conclusion import Decision
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.confirmation.phase import ConfirmationPhase
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.ports import Reporter

SIZES = simulated.SIZES[:3]
A, B = (Configuration({"V1": value}) for value in "12")
SPACE = simulated.space()


def gains(**ratios: float) -> Effect:
    """Ratios default/candidate by the value of V1, called a, b and c, at every size."""
    logs = {str("abc".index(name) + 1): math.log(ratio) for name, ratio in ratios.items()}
    return lambda configuration, _: -logs.get(configuration.get("V1", ""), 0.0)


@dataclass
class Confirmation:
    """A confirmation alone: no search before it, and all in memory."""

    benchmark: SimulatedBenchmark
    candidates: Sequence[Configuration] = (A, B)
    blocks: int = 16
    seed: int = 1
    guards: tuple[Operation, ...] = ()
    store: InMemoryStore = field(default_factory=InMemoryStore)
    reporter: Reporter = field(default_factory=QuietReporter)

    def __post_init__(self) -> None:
        self.store.seed = str(self.seed)

    def plan(self) -> Plan:
        return Plan(
            "confirmation",
            SPACE,
            Workload(Operation.ALLREDUCE, SIZES),
            budget=Budget(1, 1, self.blocks * (len(self.candidates) + 1)),
            guards=self.guards,
        )

    def phase(self) -> ConfirmationPhase:
        """A new session over the same store."""
        plan = self.plan()
        runner = Runner(plan, 1, self.benchmark, self.store, clock=self.benchmark.clock)
        runner.recover()
        runner.load()
        return ConfirmationPhase(Session(plan, runner, self.reporter))

    def run(self) -> tuple[Comparison, Decision]:
        """Goes on from wherever the store is."""
        phase = self.phase()
        return phase.confirm(self._decision(phase))

    def _decision(self, phase: ConfirmationPhase) -> Decision:
        budget_s = self.blocks * (len(self.candidates) + 1)
        at_all_sizes = dict.fromkeys(self.candidates, SIZES)
        return phase.stored_decision() or phase.decide(at_all_sizes, budget_s)


def confirmed(
    noise: Noise, effect: Effect, candidates: Sequence[Configuration] = (A, B), **more: Any
) -> tuple[Comparison, Decision]:
    return Confirmation(SimulatedBenchmark(noise, effect), candidates, **more).run()


def noise(kind: str, seed: int, spread: float = 0.03) -> MadeUpNoise:
    # A run takes one second, which is what a confirmation without a search before it reckons with.
    return MadeUpNoise(kind, random.Random(f"{kind}:{seed}"), run_s=1.0, spread=spread)
