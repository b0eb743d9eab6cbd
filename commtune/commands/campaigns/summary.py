"""What a campaign came to, in words."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from commtune import formatting as text
from commtune import wording
from commtune.app.campaigns.tuning import CampaignResult, conclusion_data
from commtune.campaign.plan import Plan
from commtune.commands import options as flags
from commtune.model import Backend, Configuration, Phase, PointEvidence, Profile, Verdict
from commtune.model.conclusion import Conclusion, PhaseSpent
from commtune.model.profile import ALL_SIZES
from commtune.tuner.outcome.displayed_points import displayed_points, slower_state
from commtune.tuner.statistics.machine_states import ALL

#: What a variable brings is told from so many pairs on: it is a description, and no claim.
_FEWEST_LEFT_OUT = 2
#: What ``--json`` has of the result as it stands.
_COUNTED = ("trials", "later_trials", "runs", "wall_s", "benchmark_s", "oversubscribed")


def campaign_summary(
    plan: Plan,
    report: CampaignResult,
    *,
    where: str,
    again: str,
    found: str = "",
    db: str | None = None,
) -> str:
    """The end of ``commtune tune``.

    Args:
        where: the database.
        db: the database as the user named it.
        again: the command that goes on with a larger budget.
        found: what it says of what others found on its system, and of earlier campaigns.
    """
    parts = [_headline(plan, report)]
    if report.oversubscribed:
        parts.append(
            f"{plan.workload.ranks} ranks share fewer cores, so they wait for each other.\n"
            "Such times say nothing about other machines, so no profile is made."
        )
    else:
        parts += [
            _table(plan, report),
            *_settings(report.profiles, plan.space.pinned),
            *_remarks(plan, report),
            found,
        ]
    parts.append(f"Stored in {where}\n{_next(plan, report, again, db)}")
    return "\n\n".join(part for part in parts if part)


def campaign_data(plan: Plan, report: CampaignResult, where: str) -> dict[str, Any]:
    """The same as plain data, for ``--json``."""
    return {
        "campaign": plan.name,
        "database": where,
        **{name: getattr(report, name) for name in _COUNTED},
        "speed_thresholds_s": list(report.speeds.thresholds_s),
        "set_aside": [list(item) for item in report.set_aside],
        "conclusion": conclusion_data(report),
        "profiles": [asdict(profile) for profile in report.profiles],
    }


def _headline(plan: Plan, report: CampaignResult) -> str:
    workload = plan.workload
    said = [
        f"{plan.name}: {workload.words}, "
        f"{text.format_ranks(workload.ranks, workload.nodes)}; "
        f"{_tried(plan, report)}, {report.runs} runs",
    ]
    if plan.beside:
        said.append(f"every run was made {plan.beside};\nspeedups hold for such a network")
    if plan.emulated:
        said.append(f"{plan.emulated};\nspeedups hold for no real network")
    if ratios := text.describe_ratios(plan.estimand):
        said.append(ratios)
    if limits := report.speeds.thresholds_s:
        between = " and ".join(text.format_duration(limit) for limit in limits)
        said.append(
            f"this machine alternates between {len(limits) + 1} states (core-to-core round trips "
            f"below and above {between});\nruns are compared within each state"
        )
    if report.wall_s > 1 and report.benchmark_s and not report.conclusion.replayed:
        said.append(_time(report))
    return "\n".join(said)


def _tried(plan: Plan, report: CampaignResult) -> str:
    """The trials that ``status`` counts, and how far the search came in its space."""
    count = text.format_count(report.trials + report.later_trials, "trial")
    # Without ablation, they are candidates without the variables that the library ignored.
    by = "ablation" if Phase.ABLATE in report.conclusion.spent else "traces"
    later = f", {report.later_trials} derived by {by}" if report.later_trials else ""
    many = text.format_many(plan.space.count())
    searched = f"{report.trials - 1} of {many} configurations by the search"
    return f"{count} (the default, {searched}{later})"


def _time(report: CampaignResult) -> str:
    """How long it took, and how much of that was measuring."""
    took, share = text.format_wall_time(report.wall_s), 1 - report.benchmark_s / report.wall_s
    if share < 0:
        together = text.format_wall_time(report.benchmark_s)
        return f"{took}; {together} in benchmark processes, several at a time"
    return f"{took}, {share:.1%} of it controller overhead"


def _table(plan: Plan, report: CampaignResult) -> str:
    ranged = [p for p in report.profiles if p.name != ALL_SIZES]
    rows = [row for profile in ranged for row in _rows(profile, plan.level)]
    if not rows:
        if plan.budget.trials == 0:
            return _default_table(report.default_s)
        if _is_untried(plan, report):
            return (
                "no configuration was tried: runs of the default took all the search time; "
                "give it more, on a quieter machine"
            )
        return "nothing was confirmed: no candidate was compared with the default"
    has_states = any(row["machine state"] != ALL for row in rows)
    if not has_states:
        rows = [row | {"machine state": ""} for row in rows]
    table = text.format_rows(rows, right="size,default,candidate")
    return f"{table}\n{text.each_by_itself(plan.level)}" if has_states else table


def _default_table(default_s: Mapping[int, Sequence[float]]) -> str:
    """What the default took, where nothing else was asked for."""
    rows = [
        {
            "size": text.format_size(size),
            "median": text.format_duration(median(times)),
            "fastest run": text.format_duration(min(times)),
            "slowest run": text.format_duration(max(times)),
            "runs": str(len(times)),
        }
        for size, times in sorted(default_s.items())
    ]
    return text.format_rows(rows, right=",".join(rows[0])) if rows else "nothing was measured"


def _is_untried(plan: Plan, report: CampaignResult) -> bool:
    """Whether the search came to nothing but the default, though there is more to try."""
    return report.trials <= 1 and plan.budget.trials is None and plan.space.count() > 1


def _rows(profile: Profile, level: float) -> list[dict[str, str]]:
    """A row a size over all machine states; below it one a state, where several are known."""
    inside = displayed_points(profile.points_inside)
    shown = sorted(inside, key=lambda point: (point.bytes, point.speed != ALL))
    return [_row(profile, point, level) for point in shown]


def _row(profile: Profile, point: PointEvidence, level: float) -> dict[str, str]:
    columns = wording.point_columns(wording.format_simultaneous(level))
    size, *cells = wording.point_cells(point)
    is_overall = point.speed == ALL
    return {
        "size": size if is_overall else "",
        "machine state": ALL if is_overall else f"{point.speed} {point.share:.0%}",
        **dict(zip(columns[1:], cells, strict=True)),
        "use": _use(profile, point) if is_overall else "",
    }


def _use(profile: Profile, point: PointEvidence) -> str:
    finding = "" if point.verdict is Verdict.FASTER else wording.describe_finding(point)
    if profile.verdict is Verdict.FASTER:
        return wording.describe_use(profile.name, finding)
    if profile.verdict is Verdict.WITHDRAWN:
        return wording.describe_use("", withdrawn=profile.name)
    against = slower_state(point.bytes, profile.points, profile.minimum_gain)
    if against is not None:
        return f"the default, slower in the {against.speed} state"
    return wording.describe_use("", finding if point.verdict is Verdict.UNDECIDED else "")


def _settings(profiles: Sequence[Profile], pins: Mapping[str, str]) -> list[str]:
    """The variables of each distinct configuration, and the profiles that use it."""
    users: defaultdict[Configuration, list[Profile]] = defaultdict(list)
    for profile in profiles:
        if profile.verdict is Verdict.FASTER:
            users[profile.configuration].append(profile)
    pinned = [f"  {name}={value} (pinned in every run)" for name, value in pins.items()]
    return [
        "\n".join(
            [
                ", ".join(_name(profile) for profile in used),
                *(f"  {name}={value}{_brings(used[0], name)}" for name, value in chosen.items()),
                *pinned,
            ]
        )
        for chosen, used in users.items()
    ]


def _brings(profile: Profile, name: str) -> str:
    """What one of several variables brings, where it surely brings most and where it costs."""
    effects = profile.contributions
    if len(effects) < 2:
        return ""
    measured = {
        point.bytes: point.gain
        for effect in effects
        if name in effect.names
        for point in effect.points
    }
    # Ablation has few pairs: what lies outside of the range, or tells nothing, is not printed.
    telling = {
        size: gain
        for size, gain in measured.items()
        if size in profile.sizes and gain.pairs >= _FEWEST_LEFT_OUT and not gain.is_too_noisy
    }
    if not telling:
        return ""
    best = max(telling, key=lambda size: telling[size].low)
    hurt = [text.format_size(size) for size, gain in telling.items() if gain.high < 1]
    said = f"   (by ablation {text.describe_speedup(telling[best], best, fewest=_FEWEST_LEFT_OUT)}"
    return f"{said}; slower at {', '.join(hurt)})" if hurt else f"{said})"


def _name(profile: Profile) -> str:
    return f"{profile.name} ({text.format_sizes(profile.bytes_low, profile.bytes_high)})"


def _remarks(plan: Plan, report: CampaignResult) -> list[str]:
    said = []
    if _is_untried(plan, report):
        said.append("Keep the default until more is known.")
    elif plan.budget.trials == 0:
        said.append("Times of the default alone: nothing was searched (budget.trials is 0).")
    elif any(p.verdict is Verdict.WITHDRAWN for p in report.profiles):
        said.append("What a verification withdrew is not recommended; 'verify' measures it again.")
    elif not any(p.verdict is Verdict.FASTER for p in report.profiles):
        said.append(
            "Keep the default: no configuration was shown to be "
            f"{text.format_percent(plan.minimum_gain)} faster."
        )
    elif not any(p.name == ALL_SIZES for p in report.profiles) and len(report.profiles) > 1:
        said.append(
            "No single environment helps without risk at some size: set a profile only for "
            "programs whose messages are in its range."
        )
    borders = sorted({(b.below, b.above) for p in report.profiles for b in p.boundaries})
    if borders:
        between = ", ".join(text.format_sizes(*border) for border in borders)
        said.append(f"not measured: {between}; what is best changes there")
    for profile in report.profiles:
        if profile.note:
            sizes = text.format_sizes(profile.bytes_low, profile.bytes_high)
            said.append(text.format_note("" if sizes in profile.note else sizes, profile.note))
    said += _conclusions(report.conclusion, report.likely)
    for profile in report.profiles:
        outside = (p for p in profile.points if p.bytes not in profile.sizes)
        if slower := wording.describe_slower(outside):
            said.append(f"{profile.name} is {slower}.")
    said += [
        f"left out after two failures: {name}={value}" if value else f"left out: {name} unset"
        for name, value in report.set_aside
    ]
    return ["\n".join(said)] if said else []


def _conclusions(conclusion: Conclusion, likely: Sequence[Profile] = ()) -> list[str]:
    """What ablation left out, what one environment costs, and what more runs would tell."""
    said = []
    used = {name for found in conclusion.confirmed for name in found.configuration}
    answers = conclusion.answers
    for ablation in conclusion.ablations:
        if ablation.after and (dropped := wording.describe_dropped(ablation, used)):
            said.append(dropped)
    if answers.one and len(answers.ranges) > 1:
        said.append(
            f"'commtune report' says what {ALL_SIZES} gives up against a profile for each range"
        )
    more = conclusion.more
    # What is likely says itself how many more runs would tell.
    if more and not any(more.bytes in one.sizes for one in likely):
        said.append(wording.describe_further_runs(more))
    said += _spoilt(conclusion.spent.values())
    said += [
        f"did not take effect as set, so it counts for nothing: {found.configuration}: {found.why}"
        for found in conclusion.not_followed
    ]
    return said


def _spoilt(phases: Collection[PhaseSpent]) -> list[str]:
    """Runs that failed, and what befell others from outside."""
    said = []
    if failures := sum((Counter(phase.failures) for phase in phases), Counter[str]()):
        runs = text.format_count(failures.total(), "run")
        default = sum(phase.default_failed for phase in phases)
        counts = wording.format_outcomes(failures)
        said.append(f"{runs} failed ({counts}), {default} of the default; see 'commtune report'")
    if lost := sum(phase.lost for phase in phases):
        runs = text.format_count(lost, "run")
        said.append(f"{runs} lost, for which no configuration is blamed; see 'commtune report'")
    if disturbed := sum(phase.disturbed for phase in phases):
        runs = text.format_count(disturbed, "run")
        said.append(f"background load during {runs}; see 'commtune report'")
    return said


def _next(plan: Plan, report: CampaignResult, again: str, db: str | None) -> str:
    program = flags.called_as()
    if report.oversubscribed:
        return f"Next:\n  {program} doctor"
    there = flags.database_flag(db)
    if plan.budget.trials == 0:
        return f"Next:\n  {program} results {shlex.quote(plan.name)}{there}"
    # What is replayed is no profile for a real machine: it can be looked at, not used.
    faster = [p for p in report.profiles if p.verdict is Verdict.FASTER and not p.simulated]
    size = text.format_size(_worth_asking(plan, faster)).replace(" ", "")
    backend = Backend(plan.workload.backend)
    # Elsewhere the native benchmark answers first.
    of = "" if backend.is_native else f" --backend {backend}"
    if plan.workload.nodes > 1:  # the same database answers for one node, too
        of = f" --nodes {plan.workload.nodes}{of}"
    lines = [f"{program} best --op {plan.workload.operation} --bytes {size}{of}{there}"]
    if faster:
        reference = shlex.quote(f"{plan.name}/{faster[-1].name}")
        lines.append(f"{program} export {reference} --format sh{there}")
        lines.append(f"{program} run --profile {reference}{there} -- COMMAND")
    else:
        lines.append(again)
    if report.likely and not report.likely[0].simulated:
        surest = max(report.likely, key=lambda one: max(p.gain.low for p in one.points_inside))
        reference = shlex.quote(f"{plan.name}/{surest.name}")
        lines.append(f"{program} verify {reference}{there}   (likely, not proven)")
        lines.append(f"{program} export {reference} --format sh --accept likely{there}")
    lines.append(f"{program} report {shlex.quote(plan.name)}{there}")
    return "Next:\n" + "\n".join(f"  {line}" for line in lines)


def _worth_asking(plan: Plan, faster: Sequence[Profile]) -> int:
    """The size with the surest gain, bytes; without one, any but the largest."""
    gains = {
        point.bytes: point.gain.low
        for profile in faster
        for point in profile.points_inside
        if point.verdict is Verdict.FASTER
    }
    if gains:
        return max(gains, key=lambda size: gains[size])
    return plan.workload.sizes[-2:][0]
