"""Summarizes the course of a campaign: use of time and node-hours, failures, drift."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from commtune.campaign.plan import BUDGETS
from commtune.db.settings import excluded_nodes, node_hours_budget
from commtune.model import JobRecord, JobStage, Outcome, Phase, Run
from commtune.model.conclusion import DefaultNoise
from commtune.model.run_costs import RunCost
from commtune.report.record import DefaultRuns, ReportedCampaign
from commtune.tuner.outcome.conclusion import noise_of
from commtune.tuner.statistics.evidence import is_disturbed
from commtune.tuner.statistics.machine_states import MIXED

_TITLES = {
    Phase.SEARCH: "search",
    Phase.ABLATE: "ablation",
    Phase.CONFIRM: "confirmation",
    Phase.GUARD: "guards",
    Phase.VERIFY: "verification",
}


@dataclass(frozen=True)
class PhaseCost:
    """The cost of a phase; ``budget_s`` is 0 if it had no budget.

    Lost runs don't count as failed.
    """

    title: str
    runs: int
    failed: int
    lost: int
    disturbed: int
    wall_s: float
    failed_s: float
    lost_s: float
    budget_s: float


@dataclass(frozen=True)
class _Failure:
    """A group of runs that failed, or were lost, in the same way.

    Attributes:
        configurations: number of different configurations.
        common: settings that all of these have and no good run had.
    """

    outcome: Outcome
    runs: int
    configurations: int
    wall_s: float
    common: tuple[str, ...]
    example: str


def phase_costs(record: ReportedCampaign) -> tuple[PhaseCost, ...]:
    """Returns the cost of each phase, in order."""
    runs = {phase: [run for run in record.runs if run.phase is phase] for phase in _TITLES}
    return tuple(_cost(record, phase, mine) for phase, mine in runs.items() if mine)


def _cost(record: ReportedCampaign, phase: Phase, runs: Sequence[Run]) -> PhaseCost:
    failed = [run for run in runs if run.outcome.is_failure]
    lost = [run for run in runs if run.outcome.is_lost]
    told = record.conclusion.spent.get(str(phase))
    return PhaseCost(
        title=_TITLES[phase],
        runs=len(runs),
        failed=len(failed),
        lost=len(lost),
        disturbed=told.disturbed if told else sum(is_disturbed(run) for run in runs),
        wall_s=math.fsum(run.wall_s for run in runs),
        failed_s=math.fsum(run.wall_s for run in failed),
        lost_s=math.fsum(run.wall_s for run in lost),
        budget_s=_budget(record, phase),
    )


def _budget(record: ReportedCampaign, phase: Phase) -> float:
    name = BUDGETS.get(phase, "")
    settings = record.campaign.settings.get("budget") or {}
    return float(record.conclusion.budget.get(name) or settings.get(name) or 0.0)


def outside_s(record: ReportedCampaign) -> float:
    """Returns the seconds of sessions outside of runs: starting, deciding, storing, queueing."""
    sessions: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for run in record.runs:
        if run.wall_s > 0:  # else it never started
            sessions[run.session].append((run.started_at, run.started_at + run.wall_s))
    return math.fsum(_gaps_s(spans) for spans in sessions.values())


def _gaps_s(spans: Sequence[tuple[float, float]]) -> float:
    """Returns seconds between first start and last end outside of all spans, which may overlap."""
    gaps, reached = 0.0, math.inf
    for start, end in sorted(spans):
        gaps += max(0.0, start - reached)
        reached = end if math.isinf(reached) else max(reached, end)
    return gaps


def group_by_cause(record: ReportedCampaign) -> tuple[_Failure, ...]:
    """Groups runs that failed or were lost by how they ended, the most frequent first."""
    found: defaultdict[Outcome, list[Run]] = defaultdict(list)
    for run in record.runs:
        if run.outcome is not Outcome.OK:
            found[run.outcome].append(run)
    good = {run.configuration for run in record.runs if run.outcome is Outcome.OK} if found else ()
    worked = {item for configuration in good for item in configuration.items()}
    causes = [_failure(outcome, runs, worked) for outcome, runs in found.items()]
    return tuple(sorted(causes, key=lambda cause: (-cause.runs, cause.outcome)))


def _failure(outcome: Outcome, runs: Sequence[Run], worked: set[tuple[str, str]]) -> _Failure:
    configurations = {run.configuration for run in runs}
    shared: set[tuple[str, str]] = set()
    if outcome.blames_configuration:
        shared = set.intersection(*(set(c.items()) for c in configurations)) - worked
    return _Failure(
        outcome=outcome,
        runs=len(runs),
        configurations=len(configurations),
        wall_s=math.fsum(run.wall_s for run in runs),
        common=tuple(f"{name}={value}" for name, value in sorted(shared)),
        example=next((run.detail for run in runs if run.detail), ""),
    )


def default_noise(record: ReportedCampaign, runs: DefaultRuns) -> tuple[DefaultNoise, ...]:
    """Returns the noise of the default: as in the conclusion, else computed from its runs."""
    if record.conclusion.noise:
        return record.conclusion.noise
    cells: defaultdict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    columns = (runs.bytes, runs.speed, runs.at_s, runs.time_s)
    for size, speed, at_s, time_s in zip(*(c.tolist() for c in columns), strict=True):
        if speed != MIXED:
            cells[size, speed].append((at_s, math.log(time_s)))
    return noise_of(cells)


_MEANT = {
    "launch": "from the start of the launcher to the ranks' main()",
    "launch and end": "outside of the ranks: nodes have clocks of their own, so these are one",
    "MPI_Init": "longest over ranks",
    "library": "communicator of NCCL or RCCL",
    "first calls": "of all sizes: connections are made; in no sample",
    "measuring": "warm-up, samples, checks",
    "rest": "backends, buffers, data, records",
    "end": "from the last record to the launcher's end",
}


@dataclass(frozen=True)
class _RunPart:
    """The seconds of a part of a run, over the runs that report it."""

    name: str
    meaning: str
    median_s: float
    least_s: float
    most_s: float
    runs: int


def run_parts(costs: Mapping[str, RunCost]) -> tuple[_RunPart, ...]:
    """Returns the parts in order, then the whole run; empty if no run reports them.

    The medians of parts don't add up to the median of the whole.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for cost in costs.values():
        for name, seconds in cost.parts():
            found[name].append(max(0.0, seconds))
    known = [_part(name, _MEANT[name], found[name]) for name in _MEANT if name in found]
    if known:
        known.append(_part("whole run", "", [cost.wall_s for cost in costs.values()]))
    return tuple(known)


def _part(name: str, meaning: str, seconds: list[float]) -> _RunPart:
    return _RunPart(name, meaning, median(seconds), min(seconds), max(seconds), len(seconds))


@dataclass(frozen=True)
class _JobGroup:
    """A group of jobs of one kind with the same outcome.

    Attributes:
        came_to: the scheduler's last state, and whether they are still in flight.
        wait_s: median seconds from registration to start; ``None`` if none started.
    """

    kind: str
    came_to: str
    jobs: int
    node_hours: float
    wait_s: float | None
    example: str


@dataclass(frozen=True)
class _Scheduled:
    """A campaign's use of a machine.

    Attributes:
        budget: limit of node-hours; ``None`` for no limit.
        nodes: number of different nodes of its runs.
        placed: number of runs whose nodes are known.
        distances: share of these runs by the distance between their nodes, most frequent first.
    """

    groups: tuple[_JobGroup, ...]
    node_hours: float
    budget: float | None
    nodes: int
    placed: int
    distances: Mapping[str, float]
    excluded: tuple[str, ...]

    @property
    def jobs(self) -> int:
        """The number of all jobs."""
        return sum(group.jobs for group in self.groups)


def scheduler_share(record: ReportedCampaign) -> _Scheduled | None:
    """Summarizes the jobs and nodes of a campaign; ``None`` without a scheduler."""
    placed = [run for run in record.runs if run.nodes]
    if not record.jobs and not placed:
        return None
    settings = record.campaign.settings
    distances = Counter(run.distance for run in placed if run.distance)
    return _Scheduled(
        groups=_groups(record.jobs),
        node_hours=math.fsum(job.node_hours for job in record.jobs),
        budget=node_hours_budget(settings),
        nodes=len({node for run in placed for node in run.nodes}),
        placed=len(placed),
        distances={name: runs / len(placed) for name, runs in distances.most_common()},
        excluded=excluded_nodes(settings),
    )


def _groups(jobs: Sequence[JobRecord]) -> tuple[_JobGroup, ...]:
    """Groups jobs by kind and outcome, the most frequent first."""
    found: defaultdict[tuple[str, str], list[JobRecord]] = defaultdict(list)
    for job in jobs:
        is_over = job.stage is JobStage.OVER
        came_to = job.word or "over" if is_over else f"{job.word or job.stage}, in flight"
        found[str(job.kind), came_to].append(job)
    groups = [_group(*name, members) for name, members in found.items()]
    return tuple(sorted(groups, key=lambda group: (-group.jobs, group.kind, group.came_to)))


def _group(kind: str, came_to: str, jobs: Sequence[JobRecord]) -> _JobGroup:
    waits = [job.started_at - job.prepared_at for job in jobs if job.started_at is not None]
    return _JobGroup(
        kind=kind,
        came_to=came_to,
        jobs=len(jobs),
        node_hours=math.fsum(job.node_hours for job in jobs),
        wait_s=median(waits) if waits else None,
        example=next((job.detail for job in jobs if job.detail), ""),
    )
