"""An ablation alone, over a made-up machine on which one or two of eight variables matter."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import simulated
from quiet import QuietReporter
from simulated import Effect, MadeUpNoise, SimulatedBenchmark

from commtune.campaign.plan import Budget, Plan
from commtune.model import Configuration, Operation, Workload
from commtune.model.conclusion import Ablation
from commtune.spaces.space import Space
from commtune.tuner.ablation.phase import AblationPhase
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session

SPACE = simulated.space()
#: Eight variables, of which one or two matter: the others are idle.
WINNER = Configuration({f"V{number}": "2" for number in range(8)})
FROM_BYTES = 65536
SEEDS = range(10)
Holds = Callable[[Configuration], float]


def has(configuration: Configuration, name: str) -> bool:
    return configuration.get(name) == "2"


def effect(holds: Holds, gain: float = 1.4) -> Effect:
    """A gain at large sizes, of which a configuration has a share between 0 and 1."""

    def found(configuration: Configuration, size: int) -> float:
        return -holds(configuration) * math.log(gain) if size >= FROM_BYTES else 0.0

    return found


def one(configuration: Configuration) -> float:
    return has(configuration, "V3")


def two(configuration: Configuration) -> float:
    return (has(configuration, "V3") + has(configuration, "V5")) / 2


def together(configuration: Configuration) -> float:
    return has(configuration, "V3") and has(configuration, "V5")


def either(configuration: Configuration) -> float:
    return has(configuration, "V3") or has(configuration, "V5")


@dataclass
class Bench:
    """An ablation alone, in memory, over sessions."""

    effect: Effect
    seed: int = 1
    space: Space = SPACE
    budget_s: float = 20.0
    noise: str = "normal"
    store: InMemoryStore = field(default_factory=InMemoryStore)

    def __post_init__(self) -> None:
        self.store.seed = str(self.seed)
        rng = random.Random(f"ablation:{self.seed}")
        self.benchmark = SimulatedBenchmark(MadeUpNoise(self.noise, rng), self.effect)

    def run(self, candidates: Sequence[Configuration] = (WINNER,)) -> list[Ablation]:
        workload = Workload(Operation.ALLREDUCE, simulated.SIZES)
        budget = Budget(50, self.budget_s, 30)
        plan = Plan("ablation", self.space, workload, seed=self.seed, budget=budget)
        runner = Runner(plan, 1, self.benchmark, self.store, clock=self.benchmark.clock)
        runner.recover()
        runner.load()
        session = Session(plan, runner, QuietReporter())
        at_all_sizes = dict.fromkeys(candidates, simulated.SIZES)
        self.phase = AblationPhase(session)
        return self.phase.run(at_all_sizes, self.budget_s)


def only(names: str) -> Configuration:
    return Configuration(dict.fromkeys(names.split(), "2"))
