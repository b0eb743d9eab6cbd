"""Campaigns as they lie in a database, made through the real store over a made-up machine.

What a report is written from: trials, runs, profiles and a conclusion, without the tuner that
would have made them, so that each test can have the campaign that it needs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stored_conclusions import TUNED, Said
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.db.codec import load_model
from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.model import (
    DEFAULT,
    BlockPlan,
    Configuration,
    Operation,
    Outcome,
    Phase,
    RunRequest,
    RunResult,
    SubMeasurement,
    Timing,
    Workload,
    content_key,
)
from commtune.model.conclusion import Conclusion, Decision

PARAMETERS = {
    "LIB_EAGER_THRESHOLD": ["4096", "16384", "65536"],
    "LIB_ALGORITHM": ["ring", "tree", "recursive_doubling", "hang"],
    "LIB_PIPELINE_CHUNK_SIZE_BYTES": ["8192", "32768"],
    "LIB_IDLE": ["0", "1"],
}


def truth(configuration: Configuration, size: int) -> float:
    """Tree and a high threshold are faster from 64 KiB on, and tree hurts below 1 KiB."""
    seconds = 1e-6 + size / 5e9
    if size >= 65536:
        seconds /= 1.25 if configuration.get("LIB_ALGORITHM") == "tree" else 1
        seconds /= 1.15 if configuration.get("LIB_EAGER_THRESHOLD") == "65536" else 1
    if size < 1024 and configuration.get("LIB_ALGORITHM") == "tree":
        seconds *= 1.1
    return seconds


def nothing(configuration: Configuration, size: int) -> float:
    """No variable does anything."""
    del configuration
    return 1e-6 + size / 5e9


@dataclass
class Made:
    """A campaign to be stored; the defaults make a small one that finds something.

    Attributes:
        description: of the system.
        loaded: share of runs during which others use the cores.
        noise: how much runs differ by themselves; with 0 and nothing loaded, times are constant.
        mixed_share: share of measurements during which the machine changes its speed.
        weighted: whether gains over sizes are over the campaign's messages.
        confirmations: how many there were, this one included.
        whole: whether points over all machine states are stated beside those of each.
        broken: whether a block of confirmation was interrupted, and a run of another one failed
            when it was made again.
        refined: whether the ablation came to another value, and to more gain by it.
        workload, settings: put over those that campaigns have here.
        header: of every run.
        parts: steps of the operation, as shares of the whole's time.
    """

    name: str = "made-up"
    sizes: Sequence[int] = (8, 1024, 65536, 1048576)
    trials: int = 60
    blocks: int = 12
    effect: Any = truth
    slow_share: float = 0.0
    simulated: bool = False
    concluded: bool = True
    replayed: str = ""
    description: Mapping[str, Any] = field(default_factory=lambda: {"cores_usable": 2})
    loaded: float = 0.05
    seed: int = 1
    drift_per_run: float = 0.0
    noise: float = 0.03
    mixed_share: float = 0.0
    weighted: bool = False
    confirmations: int = 1
    refined: bool = False
    whole: bool = False
    broken: bool = False
    workload: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    header: Mapping[str, Any] | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    def store(self, store: Store) -> int:
        """Stores it; returns its number."""
        return _Maker(self, store).make()


class _Maker:
    """Runs a campaign without a tuner: what to run is known beforehand."""

    def __init__(self, made: Made, store: Store) -> None:
        self.made, self.store = made, store
        clock = VirtualClock(1_700_000_000.0)
        self.benchmark = SyntheticBenchmark(
            made.effect,
            clock,
            seed=made.seed,
            noise=made.noise,
            slow_share=made.slow_share,
            outcomes={("LIB_ALGORITHM", "hang"): Outcome.CRASHED},
        )
        self.rng = random.Random(made.seed)
        self.campaign_id = store.open_campaign(self._record()).id
        self.trial_of: dict[Configuration, int] = {}
        self.runs = 0
        self.block = 0
        self.results: list[tuple[RunRequest, RunResult]] = []

    def make(self) -> int:
        self._trial(DEFAULT, "baseline")
        self._search()
        first_block = self.block + 1
        self.store.decide(self.campaign_id, Decision(first_block=first_block))
        if self.made.blocks:
            self._confirm()
        said = Said(self.made, tuple(self.results))
        self.store.save_profiles(self.campaign_id, said.profiles())
        if self.made.concluded:
            self.store.conclude(self.campaign_id, load_model(Conclusion, said.conclusion()))
            self.store.finish_campaign(self.campaign_id)
        return self.campaign_id

    def _record(self) -> CampaignRecord:
        made = self.made
        workload = {"operation": "allreduce", "backend": "mpi-host", "sizes": list(made.sizes),
                    "ranks": 2, "nodes": 1, "dtype": "float32", "reduction": "sum",
                    **made.workload}  # fmt: skip
        return CampaignRecord(
            name=made.name,
            what={"workload": workload},
            settings={"budget": {"search_s": 30.0, "confirmation_s": 10.0}, "level": 0.95,
                      "minimum_gain": 0.02, "tolerance": 0.05, **made.settings},
            space={"name": "made-up", "version": 1, "pinned": {}, "parameters": PARAMETERS},
            space_key="k",
            seed=made.seed,
            system=SystemRecord(
                content_key(made.description), "made-up machine, 2 cores", made.description
            ),
            stack=StackRecord("fk", "Made-up MPI 1.0"),
            simulated=made.simulated,
        )  # fmt: skip

    def _trial(self, configuration: Configuration, origin: str) -> int:
        if configuration not in self.trial_of:
            number = self.trial_of[configuration] = len(self.trial_of)
            self.store.add_trial(self.campaign_id, number, configuration, origin)
        return self.trial_of[configuration]

    def _random(self) -> Configuration:
        chosen = {name: self.rng.choice([None, *v]) for name, v in PARAMETERS.items()}
        return Configuration({k: v for k, v in chosen.items() if v is not None})

    def _search(self) -> None:
        for number in range(self.made.trials):
            if number % 7 == 0:
                self.block += 1
                self._run(DEFAULT, Phase.SEARCH, 0)
            rare = {"LIB_RARE": "1"} if number % 9 == 4 else {}
            chosen = Configuration({**self._random(), **rare})
            self._run(chosen, Phase.SEARCH, number % 7 + 1)

    def _confirm(self) -> None:
        for _ in range(self.made.blocks):
            self.block += 1
            order = [DEFAULT, TUNED]
            self.rng.shuffle(order)
            plan = BlockPlan(self.block, Phase.CONFIRM, Operation.ALLREDUCE, tuple(order))
            self.store.plan_block(self.campaign_id, plan)
            for position, configuration in enumerate(order):
                self._run(configuration, Phase.CONFIRM, position)
        if self.made.broken:
            self._break()

    def _break(self) -> None:
        """Two more blocks, of which neither makes a pair."""
        results = list(self.results)
        for ran in ([TUNED, DEFAULT, TUNED], [DEFAULT]):
            self.block += 1
            plan = BlockPlan(self.block, Phase.CONFIRM, Operation.ALLREDUCE, (TUNED, DEFAULT))
            self.store.plan_block(self.campaign_id, plan)
            for number, configuration in enumerate(ran):
                if number == 2:
                    self.benchmark.outcomes = {("LIB_ALGORITHM", "tree"): Outcome.CRASHED}
                self._run(configuration, Phase.CONFIRM, number % 2)
        self.results = results

    def _run(self, configuration: Configuration, phase: Phase, position: int) -> None:
        request = RunRequest(
            run_id=f"{self.campaign_id}-{self.runs}",
            configuration=configuration,
            workload=Workload(Operation.ALLREDUCE, tuple(self.made.sizes)),
            timing=_TIMING,
            phase=phase,
            trial=self._trial(configuration, "sampler"),
            block=self.block,
            position=position,
        )
        self.runs += 1
        self.store.start_runs(self.campaign_id, [request], "session")
        result = self._disturbed(self.benchmark.measure(request, 1.0))
        self.benchmark.clock.now += 0.01  # what a controller takes between runs
        self.store.finish_run(self.campaign_id, result, "allreduce")
        self.results.append((request, result))

    def _disturbed(self, result: RunResult) -> RunResult:
        load = 0.4 if self.rng.random() < self.made.loaded else 0.01
        slower = math.exp(self.made.drift_per_run * self.runs) * (1.5 if load > 0.1 else 1)
        measured = tuple(
            replace(m, median_s=m.median_s * slower, canary_after_s=self._after(m.canary_s))
            for m in result.measurements
        )
        detail = "" if result.outcome is Outcome.OK else "rank 1 ended by signal 11"
        header = self.made.header or result.header
        pieces = tuple(
            SubMeasurement(replace(m, median_s=share * m.median_s), part, None)
            for m in measured
            for part, share in self.made.parts.items()
        )
        footer = {"record": "footer"} if pieces else result.footer
        return replace(
            result, other_load=load, measurements=measured, detail=detail, header=header,
            footer=footer, pieces=pieces,
        )  # fmt: skip

    def _after(self, canary_s: float | None) -> float | None:
        """The canary after a size; now and then the speed changed meanwhile."""
        if self.made.mixed_share and self.rng.random() < self.made.mixed_share:
            return 80e-9 if (canary_s or 0) > 200e-9 else 430e-9
        return canary_s


_TIMING = Timing()
