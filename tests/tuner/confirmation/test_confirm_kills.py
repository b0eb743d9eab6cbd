"""Confirmations whose controller is killed: the next one ends them as if nothing had been."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest
from confirmations import A, Confirmation, gains, noise
from killed_campaigns import Killed
from simulated import Draw, MadeUpNoise, SimulatedBenchmark

from commtune.model import (
    BlockPlan,
    RunRequest,
    RunResult,
)
from commtune.model.conclusion import Decision
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.statistics.blocks import whole_blocks


@dataclass
class DyingStore(InMemoryStore):
    """A store whose controller dies right before, or right after, one of its calls."""

    until: int = 1_000_000
    events: int = 0

    def _event(self) -> None:
        self.events += 1
        if self.events == self.until:
            raise Killed

    def plan_block(self, campaign_id: int, plan: BlockPlan) -> None:
        self._event()
        super().plan_block(campaign_id, plan)

    def start_runs(self, campaign_id: int, requests: Sequence[RunRequest], session: str) -> None:
        self._event()
        super().start_runs(campaign_id, requests, session)
        self._event()

    def finish_run(self, campaign_id: int, result: RunResult, operation: str) -> None:
        super().finish_run(campaign_id, result, operation)
        self._event()

    def decide(self, campaign_id: int, decision: Decision) -> None:
        self._event()
        super().decide(campaign_id, decision)
        self._event()


@dataclass
class TwoSpeeds:
    """A machine that is three times slower in the block before the first look, and some others."""

    rng: random.Random
    made: int

    def __call__(self, request: RunRequest) -> Draw:
        slow = self.made > 5 and self.made % 5 == 1
        quiet = MadeUpNoise("normal", self.rng, run_s=0.0)(request)
        canary = 400e-9 if slow else 80e-9
        factor = 3.0 if slow else 1.0
        return Draw(
            {size: factor * time for size, time in quiet.times_s.items()},
            dict.fromkeys(quiet.times_s, (canary, canary)),
            0.0,
        )


@dataclass
class SameAgain(SimulatedBenchmark):
    """Measures the same again in the same block, counting whole blocks only, and in no time."""

    store: InMemoryStore = field(default_factory=InMemoryStore)
    speeds: int = 1

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        plans = {plan.number: plan for plan in self.store.plans}
        made = len(whole_blocks(self.store.stored, plans))
        rng = random.Random(f"{made}:{request.configuration}")
        quiet = MadeUpNoise("normal", rng, run_s=0.0)
        self.noise = quiet if self.speeds == 1 else TwoSpeeds(rng, made)
        return super().measure(request, time_limit_s)


def interrupted(until: int, speeds: int = 1) -> tuple[Comparison, Decision, DyingStore]:
    """A confirmation whose controller dies at an event, and the one that ends it."""
    store = DyingStore(until=until)
    effect = gains(a=1.5, b=1.065)
    benchmark = SameAgain(noise("normal", 1), effect, store=store, speeds=speeds)
    made = Confirmation(benchmark, store=store)
    try:
        comparison, decision = made.run()
    except Killed:
        comparison, decision = made.run()
    return comparison, decision, store


@cache
def uninterrupted(speeds: int = 1) -> tuple[Comparison, Decision, DyingStore]:
    return interrupted(1_000_000, speeds)


def measured(comparison: Comparison) -> list[object]:
    """All that points say but their intervals: blocks that are made anew have other orders."""
    return [
        (point.bytes, point.speed, point.default_s, point.tuned_s, point.gain.pairs, point.verdict)
        for compared in comparison.values()
        for point in compared.points
    ]


@pytest.mark.slow
@pytest.mark.parametrize("speeds", [1, 2])
def test_a_kill_at_any_moment_changes_no_look_and_no_result(speeds: int) -> None:
    expected, looks, store = uninterrupted(speeds)
    assert len(looks.looks) > 1
    assert len({p.speed for p in expected[A].points}) == (1 if speeds == 1 else 3)
    # Every moment is a test of its own; every third is enough to meet all kinds of them.
    for until in [*range(1, store.events, 3), store.events]:
        comparison, decision, _ = interrupted(until, speeds)
        assert decision.looks == looks.looks, until
        assert [c.stopped for c in comparison.values()] == [c.stopped for c in expected.values()]
        assert measured(comparison) == measured(expected), until


def test_a_kill_between_the_blocks_and_their_look_makes_no_further_block() -> None:
    _, decision, whole = uninterrupted()
    store = DyingStore(seed="1")  # the order of the one that it is compared with
    seen: list[int] = []

    def dies_before_the_first_look(campaign_id: int, stored: Decision) -> None:
        if stored.looks and not seen:
            seen.append(len(store.stored))
            raise Killed
        InMemoryStore.decide(store, campaign_id, stored)

    store.decide = dies_before_the_first_look  # type: ignore[method-assign,assignment]  # dies once
    made = Confirmation(SameAgain(noise("normal", 1), gains(a=1.5, b=1.065), store=store))
    made.store = store
    with pytest.raises(Killed):
        made.run()
    stored = store.decision(1)
    assert stored is not None and stored.looks == ()
    _, again = made.run()
    assert seen == [3 * decision.looks[0].made]
    assert again.looks == decision.looks
    assert len(store.stored) == len(whole.stored)
