"""The course of a campaign: what the time went into, what failed, how steady the default was."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from commtune.model import Configuration, Outcome, Phase, Run
from commtune.model.conclusion import DefaultNoise
from commtune.report.record import CampaignRecord
from commtune.tuner.execution.session import is_disturbed
from commtune.tuner.statistics.machine_states import MIXED

#: Sizes of which the default's course is drawn.
_DRAWN_SIZES = 4
_FEWEST_FOR_SPREAD = 8
_MAD_TO_SD = 1.4826

_TITLES = {
    Phase.SEARCH: "search",
    Phase.ABLATE: "ablation",
    Phase.CONFIRM: "confirmation",
    Phase.GUARD: "guards",
    Phase.VERIFY: "verification",
}
_BUDGETS = {
    Phase.SEARCH: "search_s",
    Phase.ABLATE: "ablation_s",
    Phase.CONFIRM: "confirmation_s",
}


@dataclass(frozen=True)
class PhaseCost:
    """What a phase took; ``budget_s`` is 0 where nothing was planned for it.

    What was lost is not among the failed.
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
class Failure:
    """Runs that failed, or were lost, in the same way.

    Attributes:
        configurations: how many different ones it met.
        common: settings that all of them share and that no good run had.
        example: what was said of one of them.
    """

    outcome: Outcome
    runs: int
    configurations: int
    wall_s: float
    common: tuple[str, ...]
    example: str


@dataclass(frozen=True)
class DefaultRun:
    """One size of one run of the default; ``at_s`` is since the campaign's first run."""

    run_id: str
    bytes: int
    at_s: float
    median_s: float
    speed: str
    is_disturbed: bool


def phase_costs(record: CampaignRecord) -> tuple[PhaseCost, ...]:
    """Runs and wall time by phase, in the order of a campaign."""
    return tuple(
        _cost(record, phase, [run for run in record.runs if run.phase is phase])
        for phase in _TITLES
        if any(run.phase is phase for run in record.runs)
    )


def _cost(record: CampaignRecord, phase: Phase, runs: Sequence[Run]) -> PhaseCost:
    failed = [run for run in runs if _has_failed(run)]
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


def _budget(record: CampaignRecord, phase: Phase) -> float:
    name = _BUDGETS.get(phase, "")
    settings = record.campaign.settings.get("budget") or {}
    return float(record.conclusion.budget.get(name) or settings.get(name) or 0.0)


def outside_s(record: CampaignRecord) -> float:
    """Seconds of the sessions while no run was made: starting, deciding, storing, queueing."""
    sessions: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for run in record.runs:
        if run.wall_s > 0:  # what never started has no place in time
            sessions[run.session].append((run.started_at, run.started_at + run.wall_s))
    return math.fsum(_gaps_s(spans) for spans in sessions.values())


def _gaps_s(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds between the first start and the last end that no span covers; spans may overlap."""
    gaps, reached = 0.0, math.inf
    for start, end in sorted(spans):
        gaps += max(0.0, start - reached)
        reached = end if math.isinf(reached) else max(reached, end)
    return gaps


def _has_failed(run: Run) -> bool:
    return run.outcome is not Outcome.OK and not run.outcome.is_lost


def list_failures(record: CampaignRecord) -> tuple[Failure, ...]:
    """Failed runs by how they ended, the most frequent first."""
    return _by_cause(record, [run for run in record.runs if _has_failed(run)])


def list_losses(record: CampaignRecord) -> tuple[Failure, ...]:
    """Lost runs by what befell them, the most frequent first."""
    return _by_cause(record, [run for run in record.runs if run.outcome.is_lost])


def _by_cause(record: CampaignRecord, ended: Sequence[Run]) -> tuple[Failure, ...]:
    found: defaultdict[Outcome, list[Run]] = defaultdict(list)
    for run in ended:
        found[run.outcome].append(run)
    worked = {
        item
        for run in record.runs
        if run.outcome is Outcome.OK
        for item in run.configuration.items()
    }
    causes = [_failure(outcome, runs, worked) for outcome, runs in found.items()]
    return tuple(sorted(causes, key=lambda cause: (-cause.runs, cause.outcome)))


def _failure(outcome: Outcome, runs: Sequence[Run], worked: set[tuple[str, str]]) -> Failure:
    configurations = {run.configuration for run in runs}
    return Failure(
        outcome=outcome,
        runs=len(runs),
        configurations=len(configurations),
        wall_s=math.fsum(run.wall_s for run in runs),
        common=_common(configurations, worked) if outcome.blames_configuration else (),
        example=next((run.detail for run in runs if run.detail), ""),
    )


def _common(configurations: set[Configuration], worked: set[tuple[str, str]]) -> tuple[str, ...]:
    shared = set.intersection(*(set(c.items()) for c in configurations))
    return tuple(f"{name}={value}" for name, value in sorted(shared - worked))


def default_runs(record: CampaignRecord) -> tuple[DefaultRun, ...]:
    """Every good run of the default in the tuned operation, size by size."""
    start = min((run.started_at for run in record.runs if run.wall_s > 0), default=0.0)
    return tuple(
        DefaultRun(
            run_id=run.run_id,
            bytes=m.bytes,
            at_s=run.started_at - start,
            median_s=m.median_s,
            speed=record.speeds.name(m.canary_s, m.canary_after_s),
            is_disturbed=is_disturbed(run),
        )
        for run in record.runs
        if run.configuration.is_default
        and run.outcome is Outcome.OK
        and run.operation == record.operation
        for m in run.measurements
    )


def drawn_sizes(runs: Sequence[DefaultRun]) -> tuple[int, ...]:
    """A few sizes from the smallest to the largest."""
    sizes = sorted({run.bytes for run in runs})
    if len(sizes) <= _DRAWN_SIZES:
        return tuple(sizes)
    step = (len(sizes) - 1) / (_DRAWN_SIZES - 1)
    return tuple(sizes[round(i * step)] for i in range(_DRAWN_SIZES))


def default_noise(record: CampaignRecord, runs: Sequence[DefaultRun]) -> tuple[DefaultNoise, ...]:
    """How steady the default was: as the campaign concluded, else from its runs."""
    if record.conclusion.noise:
        return record.conclusion.noise
    cells: defaultdict[tuple[int, str], list[DefaultRun]] = defaultdict(list)
    for run in runs:
        if run.speed != MIXED:
            cells[run.bytes, run.speed].append(run)
    total = {size: sum(len(c) for (s, _), c in cells.items() if s == size) for size, _ in cells}
    return tuple(
        DefaultNoise(size, speed, len(cell) / total[size], _spread(cell), len(cell), None)
        for (size, speed), cell in sorted(cells.items())
    )


def _spread(cell: Sequence[DefaultRun]) -> float | None:
    """Standard deviation of log time, from the median deviation: outliers don't make it."""
    if len(cell) < _FEWEST_FOR_SPREAD:
        return None
    logs = [math.log(run.median_s) for run in cell]
    middle = median(logs)
    return _MAD_TO_SD * median(abs(value - middle) for value in logs)
