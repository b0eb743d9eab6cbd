"""Reads the stored data of a campaign that its report needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from commtune import formatting, model
from commtune.db.queries.description import benchmark_header
from commtune.db.queries.profiles import find_profiles, load_profiles, load_strength
from commtune.db.records import CampaignDescription
from commtune.db.storage.store import Store
from commtune.model import Configuration, Outcome, Phase, Run, SizeTimes, operations
from commtune.model.conclusion import Conclusion
from commtune.model.profile import ALL_SIZES
from commtune.model.run_costs import RunCost
from commtune.tuner.statistics.evidence import (
    TUNED,
    Evidence,
    fit_evenly,
    is_disturbed,
    number_states,
)
from commtune.tuner.statistics.machine_states import MIXED, MachineStates

_Places = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Logs = npt.NDArray[np.float64]
_Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DefaultRuns:
    """Good runs of the default as columns, with a row for each size.

    Attributes:
        run: index of the run.
        at_s: start of the run, seconds since the campaign's first run.
        speed: name of the machine state.
    """

    run: _Places
    bytes: _Places
    at_s: _Seconds
    time_s: _Seconds
    speed: npt.NDArray[np.str_]
    is_disturbed: _Flags

    def __len__(self) -> int:
        return len(self.run)

    def __getitem__(self, chosen: _Flags | slice) -> DefaultRuns:
        return DefaultRuns(*(column[chosen] for column in vars(self).values()))


class _TimedRuns:
    """Runs with their times in columns, since a long campaign has millions of times.

    Attributes:
        speeds: the machine states, as the tuner fitted them.
    """

    def __init__(self, runs: Sequence[Run], times: SizeTimes) -> None:
        self.runs = runs
        self._run, self._bytes = np.asarray(times.run), np.asarray(times.bytes)
        self._time_s = np.asarray(times.time_s)
        self._before_s = np.asarray(times.canary_s)
        self.speeds = self._fit()
        self._state = number_states(self.speeds, times)

    def _fit(self) -> MachineStates:
        evidence = Evidence.of_runs(self.runs)
        canaries: list[float] = []
        for phase in TUNED:
            of_phase = np.array([run.phase is phase for run in self.runs], dtype=bool)
            of_phase[of_phase] = evidence.times(phase)[1]
            canaries += self._before_s[of_phase[self._run] & ~np.isnan(self._before_s)].tolist()
        return fit_evenly(canaries)

    def of_default(self, operation: str) -> DefaultRuns:
        """Returns the good runs of the default in an operation."""
        names = np.array([*self.speeds.names, MIXED])  # state -1 is the last one
        rows = self._rows(lambda run: run.configuration.is_default and run.operation == operation)
        start = min((run.started_at for run in self.runs if run.wall_s > 0), default=0.0)
        run = self._run[rows]
        return DefaultRuns(
            run=run,
            bytes=self._bytes[rows],
            at_s=np.array([one.started_at - start for one in self.runs])[run],
            time_s=self._time_s[rows],
            speed=names[self._state[rows]],
            is_disturbed=self._flags(is_disturbed)[run],
        )

    @property
    def tried(self) -> Sequence[Configuration]:
        """The configurations of all runs."""
        return self._searched[0]

    def search_logs(self, low: int, high: int) -> _Logs:
        """Returns the mean log time of each of ``tried`` in the search, relative to the default.

        The mean is over runs and sizes from ``low`` to below ``high`` bytes, relative to the
        default's median at each size and machine state; NaN without any. Repeated runs aren't
        separate evidence.
        """
        tried, number, size, logs = self._searched
        here = (low <= size) & (size < high)
        counts = np.bincount(number[here], minlength=len(tried))
        sums = np.bincount(number[here], logs[here], minlength=len(tried))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    @cached_property
    def _searched(self) -> tuple[Sequence[Configuration], _Places, _Places, _Logs]:
        """All configurations; and for each time of the search, its configuration, size and log."""
        rows = self._rows(lambda run: run.phase is Phase.SEARCH)
        rows = rows[self._state[rows] >= 0]
        runs, cells = self._run[rows], self._bytes[rows] * 4 + self._state[rows]
        seconds, logs = self._time_s[rows], np.full(len(rows), np.nan)
        is_default = self._flags(lambda run: run.configuration.is_default)[runs]
        for cell in np.unique(cells):
            here = cells == cell
            if (here & is_default).any():
                logs[here] = np.log(seconds[here] / np.median(seconds[here & is_default]))
        number: dict[Configuration, int] = {}
        numbers = [number.setdefault(run.configuration, len(number)) for run in self.runs]
        known = ~np.isnan(logs)
        chosen = np.asarray(numbers, dtype=np.int64)[runs[known]]
        return list(number), chosen, self._bytes[rows][known], logs[known]

    def _rows(self, is_meant: Callable[[Run], bool]) -> _Places:
        """Returns the rows of good runs that meet a condition."""
        chosen = self._flags(lambda run: run.outcome is Outcome.OK and is_meant(run))
        return np.flatnonzero(chosen[self._run])

    def _flags(self, is_meant: Callable[[Run], bool]) -> _Flags:
        return np.fromiter(map(is_meant, self.runs), dtype=bool, count=len(self.runs))


@dataclass(frozen=True)
class ReportedCampaign:
    """A campaign with its runs.

    Attributes:
        origins: the origin of each trial.
        runs: all runs; only those of confirmation have measurements, for others see ``times``.
        plans: the planned blocks by number.
        first_block: the first block after the last decision on what to confirm.
        traffic: least and most traffic of an aggressor during the runs, Gb/s.
        concluded: whether a conclusion is stored; a campaign in progress has none.
        header: the benchmark's header of a good run; ``None`` without a good run.
        parts: steps of the operation that good runs measured separately, by run.
        run_costs: cost of good runs by part, by run.
        strengths: what each profile rests on, by its name.
    """

    campaign: CampaignDescription
    origins: tuple[str, ...]
    runs: tuple[Run, ...]
    profiles: tuple[model.Profile, ...]
    conclusion: Conclusion
    executions: tuple[model.Execution, ...]
    plans: Mapping[int, model.BlockPlan]
    first_block: int
    concluded: bool
    times: _TimedRuns
    jobs: tuple[model.JobRecord, ...] = ()
    traffic: tuple[float, float] | None = None
    header: Mapping[str, Any] | None = None
    parts: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    run_costs: Mapping[str, RunCost] = field(default_factory=dict)
    strengths: Mapping[str, model.Strength] = field(default_factory=dict)

    @property
    def speeds(self) -> MachineStates:
        """The machine's states."""
        return self.times.speeds

    @property
    def workload(self) -> Mapping[str, Any]:
        """The workload, as plain data."""
        found: Mapping[str, Any] = self.campaign.what.get("workload") or {}
        return found

    def held_against(self, name: str) -> float | None:
        """Returns a threshold of the campaign's conclusion, or else of its settings."""
        stored = getattr(self.conclusion.method, name)
        found = self.campaign.settings.get(name) if stored is None else stored
        return None if found is None else float(found)

    @property
    def beside(self) -> str:
        """The aggressor in words; empty if there was none."""
        stored = self.campaign.what.get("aggressor")
        return formatting.describe_aggressor(model.Aggressor.of_plain(stored)) if stored else ""

    @property
    def emulated(self) -> str:
        """The number of emulated nodes in words; empty if there were none."""
        nodes = self.workload.get("emulated_nodes")
        return formatting.describe_emulated(int(nodes)) if nodes else ""

    @property
    def pattern(self) -> str:
        """The message pattern in words; empty if the name of the operation says it.

        Profiles have more details, such as the name of a matrix file, than the campaign stores.
        """
        patterns = (profile.conditions.pattern for profile in self.profiles)
        if said := next(filter(None, patterns), ""):
            return said
        stored = self.workload
        return model.Workload.of_plain(stored).pattern if "operation" in stored else ""

    @property
    def guards(self) -> Mapping[str, str]:
        """The protected variables, which passed unchanged from its environment to every run."""
        stored = self.campaign.what.get("guards") or {}
        return {name: value for name, value in stored.items() if value is not None}

    @property
    def slowed(self) -> tuple[str, int]:
        """The remark of the first good run with throttled GPUs, and the number of such runs."""
        told = [run.detail for run in self.runs if run.outcome is Outcome.OK and run.detail]
        return (told[0], len(told)) if told else ("", 0)

    @property
    def operation(self) -> str:
        """The operation that was tuned."""
        if self.profiles:
            return self.profiles[0].operation
        return str(self.workload.get("operation") or "")

    @property
    def ranged(self) -> tuple[model.Profile, ...]:
        """The profiles for ranges of sizes, ascending."""
        found = [p for p in self.profiles if p.name != ALL_SIZES]
        return tuple(sorted(found, key=lambda p: p.bytes_low))

    @property
    def one(self) -> model.Profile | None:
        """The profile for all sizes, if there is one."""
        return next((p for p in self.profiles if p.name == ALL_SIZES), None)

    @property
    def is_unreal(self) -> bool:
        """Whether the campaign was simulated or replayed rather than measured."""
        return (
            self.campaign.simulated
            or bool(self.conclusion.replayed)
            or any(p.simulated for p in self.profiles)
        )


def read_record(store: Store, db: str | None, campaign: CampaignDescription) -> ReportedCampaign:
    """Reads the record of a campaign.

    Args:
        db: the store's database, as for ``database_url``.

    Raises:
        DatabaseFault: the database can't be read.
    """
    # The search's times are read as columns, since there may be millions.
    every, times = store.timed_runs(campaign.id)
    confirmed = {run.run_id: run for run in store.runs(campaign.id, Phase.CONFIRM)}
    runs = tuple(confirmed.get(run.run_id, run) for run in every)
    stored = store.conclusion(campaign.id)
    decision = store.decision(campaign.id)
    workload = campaign.what.get("workload") or {}
    profiles = {one.name: one for one in load_profiles(db, campaign.name)}
    listed = find_profiles(db, campaign.name)
    return ReportedCampaign(
        campaign=campaign,
        origins=tuple(store.origins(campaign.id)),
        runs=runs,
        profiles=tuple(profiles.values()),
        conclusion=stored or Conclusion(),
        executions=tuple(store.executions(campaign.id)),
        plans={plan.number: plan for plan in store.blocks(campaign.id)},
        first_block=decision.first_block if decision else 0,
        concluded=stored is not None,
        times=_TimedRuns(runs, times),
        jobs=tuple(store.job_book(campaign.id).all_jobs()),
        traffic=store.traffic(campaign.id) if "aggressor" in campaign.what else None,
        header=benchmark_header(db, campaign.id),
        parts=store.parts(campaign.id) if workload.get("operation") in operations.MIXED else {},
        run_costs=store.costs(campaign.id),
        strengths={p.name: load_strength(db, p.id) for p in listed if p.name in profiles},
    )
