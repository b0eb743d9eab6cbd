"""Draws the conclusion of a campaign: everything that is stored of its results but profiles."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from commtune.campaign.plan import BUDGETS, Plan
from commtune.formatting import format_size
from commtune.model import FEW_PAIRS, Estimand, Execution, Phase, PointEvidence, Run, Verdict
from commtune.model.conclusion import (
    CONFIRMATION_SHARES,
    Answer,
    Answers,
    Conclusion,
    ConfirmedCandidate,
    ConfirmedEffect,
    Decision,
    DefaultNoise,
    FurtherRuns,
    Method,
    NotFollowed,
    PhaseSpent,
    error_share,
)
from commtune.tuner.confirmation.comparison import Comparison, Rules, more_pairs
from commtune.tuner.effective.canonical import is_credited
from commtune.tuner.outcome.detectability import UNINFORMATIVE_GAIN
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.tuner.outcome.ranges import (
    Range,
    best_single,
    find_ranges,
    list_open_points,
    overall_of,
    trade_off,
)
from commtune.tuner.statistics.evidence import Cell, Evidence, cell_times, is_disturbed
from commtune.tuner.statistics.machine_states import ALL
from commtune.tuner.statistics.power import detectable_gain

_INTERVALS = {
    Estimand.MEDIAN: "a mean of log ratios, trimmed where some are outliers, over machine states "
    "by their shares",
    Estimand.MEAN: "the logarithm of the ratio of mean times, by the delta method",
    Estimand.P95: "a mean of log ratios of the 95th percentile of each run's operations, trimmed "
    "where some are outliers, over machine states by their shares",
}
#: The shortest time (seconds) over which a drift is stated; over less it is mostly noise.
_SHORTEST_DRIFT_S = 600.0


def draw_conclusion(
    plan: Plan,
    evidence: Evidence,
    decision: Decision,
    comparison: Comparison,
    detectable: Mapping[int, float],
    *,
    rules: Rules,
    run_s: float,
    executions: Sequence[Execution] = (),
    set_aside: Sequence[tuple[str, str | None]] = (),
    replayed: str = "",
) -> Conclusion:
    """Draws the conclusion from the evidence.

    Args:
        detectable: from ``detectable_gains``.
        rules: those of the last look.
        run_s: wall seconds of a typical run.
        set_aside: parameters and values that the search left out after failures.
        replayed: name of the recording that was played back; empty for real runs.
    """
    return Conclusion(
        replayed=replayed,
        method=Method(
            plan.level,
            plan.minimum_gain,
            plan.tolerance,
            looks=len(decision.shares),
            confirmations=decision.number + 1,
            interval=_INTERVALS[plan.estimand],
        ),
        budget={name: getattr(plan.budget, name) for name in BUDGETS.values()},
        spent=_time_spent(evidence),
        noise=_default_noise(evidence),
        confirmed=_confirmed(decision, comparison, rules),
        ablations=decision.ablations,
        answers=_answers(plan, comparison),
        detectable=detectable,
        more=_more_runs(decision, comparison, rules, run_s),
        not_followed=tuple(
            NotFollowed(e.configuration, str(e.followed), e.why)
            for e in executions
            if not is_credited(plan.space, e)
        ),
        set_aside=tuple(set_aside),
    )


def _time_spent(evidence: Evidence) -> dict[str, PhaseSpent]:
    """Sums runs and wall seconds by phase; counts failed, lost and disturbed runs."""
    by_phase: defaultdict[str, list[Run]] = defaultdict(list)
    for run in evidence.runs:
        by_phase[str(run.phase)].append(run)
    return {
        phase: PhaseSpent(
            runs=len(runs),
            failed=sum(run.outcome.is_failure for run in runs),
            default_failed=sum(r.outcome.is_failure and r.configuration.is_default for r in runs),
            failures=Counter(str(run.outcome) for run in runs if run.outcome.is_failure),
            lost=sum(run.outcome.is_lost for run in runs),
            disturbed=sum(is_disturbed(run) for run in runs),
            wall_s=sum(run.wall_s for run in runs),
        )
        for phase, runs in by_phase.items()
    }


def _default_noise(evidence: Evidence) -> tuple[DefaultNoise, ...]:
    """Measures how much runs of the default differ, by size and machine state."""
    speeds = evidence.speeds()
    found: defaultdict[Cell, list[tuple[float, float]]] = defaultdict(list)
    for run in evidence.good(Phase.SEARCH, Phase.ABLATE, Phase.CONFIRM):
        if run.configuration.is_default:
            for cell, value in cell_times(run, speeds).items():
                found[cell].append((run.started_at, math.log(value)))
    return noise_of(found)


def noise_of(times: Mapping[Cell, Sequence[tuple[float, float]]]) -> tuple[DefaultNoise, ...]:
    """Measures noise from start times of runs (seconds) and logarithms of their times."""
    by_size: defaultdict[int, int] = defaultdict(int)
    for (size, _), values in times.items():
        by_size[size] += len(values)
    return tuple(
        DefaultNoise(
            bytes=size,
            speed=speed,
            share=len(values) / by_size[size],
            spread=_spread([value for _, value in values]),
            runs=len(values),
            drift_per_hour=_drift(values),
        )
        for (size, speed), values in sorted(times.items())
    )


def _spread(values: Sequence[float]) -> float | None:
    """Returns the standard deviation; ``None`` for fewer than three values."""
    if len(values) < 3:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _drift(values: Sequence[tuple[float, float]]) -> float | None:
    """Returns the change of the logarithm per hour, from the medians of the two halves."""
    ordered = sorted(values)
    if len(ordered) < 8 or ordered[-1][0] - ordered[0][0] < _SHORTEST_DRIFT_S:
        return None
    half = len(ordered) // 2
    early, late = ordered[:half], ordered[half:]
    hours = (median(t for t, _ in late) - median(t for t, _ in early)) / 3600
    return (median(v for _, v in late) - median(v for _, v in early)) / hours if hours else None


def _confirmed(
    decision: Decision, comparison: Comparison, rules: Rules
) -> tuple[ConfirmedCandidate, ...]:
    found = []
    for place, candidate in enumerate(decision.candidates):
        compared = comparison[candidate]
        asked = rules.interval_level, rules.minimum_gain
        points = tuple(
            _confirmed_effect(point, more_pairs(compared.estimates[point.bytes], *asked))
            for point in compared.points
        )
        made = decision.made(place)
        found.append(ConfirmedCandidate(candidate, made, compared.stopped, points))
    return tuple(found)


def _confirmed_effect(point: PointEvidence, more: int | None) -> ConfirmedEffect:
    return ConfirmedEffect(
        bytes=point.bytes,
        speed=point.speed,
        default_s=point.default_s,
        tuned_s=point.tuned_s,
        verdict=point.verdict,
        share=point.share,
        more_pairs=more if point.speed == ALL else None,
        **vars(point.gain),
    )


def _answers(plan: Plan, comparison: Comparison) -> Answers:
    cut, one = find_ranges(plan, comparison), best_single(plan, comparison)
    whole = Range(one, tuple(sorted(plan.workload.sizes))) if one is not None else None
    return Answers(
        one=_answer(whole, comparison) if whole else None,
        ranges=tuple(_answer(part, comparison) for part in cut),
        trade_off=trade_off(plan, comparison, cut, one),
    )


def _answer(part: Range, comparison: Comparison) -> Answer:
    points = overall_of(comparison, part.configuration)
    gains = {size: point.gain.ratio for size, point in points.items() if size in part.sizes}
    return Answer(part.configuration, gains, part.sizes[0], part.sizes[-1])


def detectable_gains(
    decision: Decision, comparison: Comparison, rules: Rules
) -> Mapping[int, float]:
    """Computes the minimum detectable effect by size (bytes): found in 9 of 10 cases.

    From the pairs so far and the planned blocks, for the noisiest candidate that is not ruled
    out: less noise of others doesn't limit what that one may hide.
    """
    planned = decision.looks[-1].planned if decision.looks else decision.blocks
    by_size: defaultdict[int, list[tuple[bool, float]]] = defaultdict(list)
    for place, compared in enumerate(comparison.values()):
        points = overall_points(compared.points)
        made = decision.made(place)
        # Scaled by blocks, not by pairs: runs in different machine states make no pair.
        times = planned / made if made else 1.0
        for size, found in compared.estimates.items():
            # Fewer may have met no rare disturbance: nobody knows what they would have found.
            if found is not None and found.pairs >= FEW_PAIRS:
                strata = [*compared.pairs.get(size, {}).values()]
                gain = detectable_gain(
                    found, rules.interval_level, rules.minimum_gain, times, strata
                )
                is_open = points[size].verdict is not Verdict.DEFAULT
                by_size[size].append((is_open, gain))
    gains = {size: max(values)[1] for size, values in sorted(by_size.items())}
    return {size: gain for size, gain in gains.items() if gain < UNINFORMATIVE_GAIN}


def _more_runs(
    decision: Decision, comparison: Comparison, rules: Rules, run_s: float
) -> FurtherRuns | None:
    """Estimates the runs of a further confirmation that decides the size nearest to a gain.

    It begins with fresh blocks, of the default and one candidate, and has the next share of the
    error rate. Sizes at which some candidate is faster already are left out, and those at which
    nothing is known: as many runs as that says nobody can tell.
    """
    share = error_share(decision.number + 1) * CONFIRMATION_SHARES[-1]
    level = replace(rules, share=share).interval_level
    found: list[tuple[int, int]] = []
    faster = {
        size
        for one in comparison.values()
        for size, point in overall_points(one.points).items()
        if point.verdict is Verdict.FASTER
    }
    for candidate, point, estimate in list_open_points(comparison, rules.minimum_gain):
        gain = point.gain
        if point.bytes in faster or gain.high - 1 > UNINFORMATIVE_GAIN:
            continue
        if gain.ratio > 1 + rules.minimum_gain:
            pairs = estimate.blocks_to_decide(level, rules.minimum_gain)
            made = decision.made(decision.candidates.index(candidate))
            blocks = pairs * made / estimate.pairs
            if math.isfinite(blocks):
                found.append((math.ceil(blocks), point.bytes))
    if not found:
        return None
    blocks, size = min(found)
    return FurtherRuns(
        runs=2 * blocks,
        seconds=2 * blocks * run_s,
        bytes=size,
        why=f"a speedup at {format_size(size)} is inconclusive",
    )
