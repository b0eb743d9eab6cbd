"""Everything stored of a campaign that its report speaks of, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commtune import formatting, model
from commtune.db.queries.description import benchmark_header
from commtune.db.queries.profiles import load_profiles
from commtune.db.records import CampaignDescription
from commtune.db.storage.store import Store
from commtune.model.conclusion import Conclusion
from commtune.model.operations import MIXED
from commtune.model.profile import ALL_SIZES
from commtune.model.run_costs import RunCost
from commtune.report.size_times import TimedRuns
from commtune.tuner.statistics.machine_states import MachineStates


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign with its runs.

    Attributes:
        runs: those of confirmation with their measurements; the others' are ``times``.
        plans: blocks by number, as they were planned.
        first_block: blocks before it were run before the last decision what to confirm.
        traffic: what an aggressor sent beside its runs, least and most, 10^9 bits a second.
        concluded: whether a conclusion is stored; a campaign that goes on has none.
        header: what the benchmark said at the beginning of a good run; ``None`` without one.
        parts: steps of the operation that good runs measured by themselves, by run.
        run_costs: what good runs cost, part by part, by run.
    """

    campaign: CampaignDescription
    trials: tuple[model.Trial, ...]
    runs: tuple[model.Run, ...]
    profiles: tuple[model.Profile, ...]
    conclusion: Conclusion
    executions: tuple[model.Execution, ...]
    plans: Mapping[int, model.BlockPlan]
    first_block: int
    concluded: bool
    times: TimedRuns
    jobs: tuple[model.JobRecord, ...] = ()
    traffic: tuple[float, float] | None = None
    header: Mapping[str, Any] | None = None
    parts: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    run_costs: Mapping[str, RunCost] = field(default_factory=dict)

    @property
    def speeds(self) -> MachineStates:
        """The machine's states."""
        return self.times.speeds

    @property
    def workload(self) -> Mapping[str, Any]:
        """What was measured, as plain data."""
        found: Mapping[str, Any] = self.campaign.what.get("workload") or {}
        return found

    def held_against(self, name: str) -> float | None:
        """A number of the campaign's method; without a conclusion, its settings have it."""
        stored = getattr(self.conclusion.method, name)
        found = self.campaign.settings.get(name) if stored is None else stored
        return None if found is None else float(found)

    @property
    def beside(self) -> str:
        """What its runs stood beside on purpose, for people; empty where nothing was there."""
        stored = self.campaign.what.get("aggressor")
        return formatting.describe_aggressor(model.Aggressor.of_plain(stored)) if stored else ""

    @property
    def emulated(self) -> str:
        """That its nodes were emulated, for people; empty where they weren't."""
        nodes = self.workload.get("emulated_nodes")
        return formatting.describe_emulated(int(nodes)) if nodes else ""

    @property
    def pattern(self) -> str:
        """Which messages its operation has, for people; empty where its word says it.

        Profiles know more of it: the name of a matrix's file, which is no part of the question.
        """
        patterns = (profile.conditions.pattern for profile in self.profiles)
        if said := next(filter(None, patterns), ""):
            return said
        stored = self.workload
        return model.Workload.of_plain(stored).pattern if "operation" in stored else ""

    @property
    def guards(self) -> Mapping[str, str]:
        """Variables of its environment that passed unchanged to every run."""
        stored = self.campaign.what.get("guards") or {}
        return {name: value for name, value in stored.items() if value is not None}

    @property
    def slowed(self) -> tuple[str, int]:
        """Of good runs in which GPUs were slowed down: what the first one says, and how many."""
        told = [run.detail for run in self.runs if run.outcome is model.Outcome.OK and run.detail]
        return (told[0], len(told)) if told else ("", 0)

    @property
    def operation(self) -> str:
        """The operation that was tuned."""
        if self.profiles:
            return self.profiles[0].operation
        return str(self.workload.get("operation") or self.campaign.what.get("operation") or "")

    @property
    def ranged(self) -> tuple[model.Profile, ...]:
        """The profiles for ranges of sizes, from the smallest up."""
        found = [p for p in self.profiles if p.name != ALL_SIZES]
        return tuple(sorted(found, key=lambda p: p.bytes_low))

    @property
    def one(self) -> model.Profile | None:
        """The profile for every size, where there is one."""
        return next((p for p in self.profiles if p.name == ALL_SIZES), None)

    @property
    def is_unreal(self) -> bool:
        """Whether nothing here was measured on the machine that it names."""
        return (
            self.campaign.simulated
            or bool(self.conclusion.replayed)
            or any(p.simulated for p in self.profiles)
        )


def read_record(store: Store, url: str, campaign: CampaignDescription) -> CampaignRecord:
    """Reads a campaign.

    Args:
        url: of the store's database, from ``database_url``.

    Raises:
        DatabaseFault: the database can't be read.
    """
    # Of the search only columns: one that goes on for weeks has millions of measurements.
    every, times = store.timed_runs(campaign.id)
    confirmed = {run.run_id: run for run in store.runs(campaign.id, model.Phase.CONFIRM)}
    runs = tuple(confirmed.get(run.run_id, run) for run in every)
    stored = store.conclusion(campaign.id)
    decision = store.decision(campaign.id)
    workload = campaign.what.get("workload") or {}
    return CampaignRecord(
        campaign=campaign,
        trials=tuple(store.trials(campaign.id)),
        runs=runs,
        profiles=tuple(load_profiles(url, campaign.name, with_details=True)),
        conclusion=stored or Conclusion(),
        executions=tuple(store.executions(campaign.id)),
        plans={plan.number: plan for plan in store.blocks(campaign.id)},
        first_block=decision.first_block if decision else 0,
        concluded=stored is not None,
        times=TimedRuns(runs, times),
        jobs=tuple(store.job_book(campaign.id).all_jobs()),
        traffic=store.traffic(campaign.id) if "aggressor" in campaign.what else None,
        header=benchmark_header(url, campaign.id),
        parts=store.parts(campaign.id) if workload.get("operation") in MIXED else {},
        run_costs=store.costs(campaign.id),
    )
