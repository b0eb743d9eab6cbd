"""The page: everything that its template shows, and the template."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import jinja2
from markupsafe import Markup

from commtune import __version__, formatting
from commtune.model import Configuration, Interval, Outcome, Phase, Verdict
from commtune.report import course, method
from commtune.report.boundaries import BoundarySide, RangeBoundary, find_boundaries
from commtune.report.figures import course as course_figures
from commtune.report.figures import evidence, variables
from commtune.report.figures.style import Picture, render_svg
from commtune.report.nominal import busbw_of, limit_words, nominal_of
from commtune.report.points import SizePoint, size_points
from commtune.report.recommendations import HOPELESS, AnswerCard, answer_cards
from commtune.report.record import CampaignRecord
from commtune.report.replicated_findings import (
    CampaignSubject,
    replicate_findings,
    replication_lines,
)
from commtune.report.run_costs import RunPart, run_parts
from commtune.report.scheduled import Scheduled, scheduler_share
from commtune.report.steps import OperationStep, operation_steps
from commtune.systems.findings import DESCRIBED
from commtune.systems.nominal.collectives import Nominal
from commtune.tuner.search.scores import split_ranges
from commtune.tuner.statistics.evidence import Cell, default_times, log_gains
from commtune.tuner.statistics.importance import Importance, variable_importance
from commtune.tuner.statistics.machine_states import ALL

#: Blocks whose pairs are listed one by one.
_MOST_BLOCKS = 60
#: From here on the number of pairs that would decide something is not worth its digits.
_MANY_PAIRS = 2000
#: Where other values were tried, a configuration may gain more than the one that it began as.
_MORE_THAN_ALL = 1.05


@dataclass(frozen=True)
class Page:
    """What the template shows; pictures by name, absent ones have nothing to show.

    Attributes:
        importance: by range of sizes.
        blocks: numbers of the blocks whose pairs are listed; ``more_blocks`` are not.
        nominal: what the links could carry; without a number where nothing is known of them.
        busbw: bus bandwidth at a point from a time; ``None`` where no run was good.
        steps: of the operation, each by itself.
        found: what it says of what papers found on its system, heading first.
        run_parts: what a run costs, part by part; empty where no run tells it.
    """

    record: CampaignRecord
    banner: str
    cards: tuple[AnswerCard, ...]
    points: tuple[SizePoint, ...]
    importance: Mapping[str, Sequence[Importance]]
    costs: tuple[course.PhaseCost, ...]
    outside_s: float
    failures: tuple[course.Failure, ...]
    losses: tuple[course.Failure, ...]
    scheduled: Scheduled | None
    noise: tuple[Any, ...]
    method: list[str]
    missing: list[str]
    borders: tuple[RangeBoundary, ...]
    blocks: tuple[int, ...]
    more_blocks: int
    nominal: Nominal
    busbw: Callable[[SizePoint, float], float] | None
    pictures: Mapping[str, Picture]
    steps: tuple[OperationStep, ...] = ()
    found: tuple[str, ...] = ()
    run_parts: tuple[RunPart, ...] = ()

    def share(self, point: SizePoint, seconds: float) -> float | None:
        """The share of the nominal bandwidth that a time comes to."""
        return self.nominal.share(self.busbw(point, seconds)) if self.busbw else None

    @property
    def detectable(self) -> dict[int, float]:
        """The gain that would have been found, by size, where there are enough pairs."""
        judged = {p.bytes for p in self.points if p.is_judged}
        return {s: g for s, g in self.record.conclusion.detectable.items() if s in judged}

    @property
    def undetectable(self) -> list[int]:
        """Sizes with enough pairs at which any gain may be hidden."""
        return sorted({p.bytes for p in self.points if p.is_judged} - self.detectable.keys())

    @property
    def columns(self) -> tuple[SizePoint, ...]:
        """The sizes and speeds whose pairs are listed block by block."""
        speeds = {p.evidence.speed for p in self.points} - {ALL}
        return tuple(p for p in self.points if p.evidence.speed != ALL or not speeds)


def compose_page(record: CampaignRecord) -> Page:
    """Works out all that the page says."""
    points = size_points(record)
    runs = course.default_runs(record)
    found = _importance(record)
    phases, outside = course.phase_costs(record), course.outside_s(record)
    blocks = tuple(sorted({pair.block for p in points for pair in p.pairs}))
    page = Page(
        record=record,
        banner=_picture_banner(record),
        cards=answer_cards(record, points),
        points=points,
        importance=found,
        costs=phases,
        outside_s=outside,
        failures=course.list_failures(record),
        losses=course.list_losses(record),
        scheduled=scheduler_share(record),
        noise=course.default_noise(record, runs),
        method=method.method_paragraphs(record),
        missing=method.missing_parts(record),
        borders=find_boundaries(record.profiles),
        blocks=blocks[:_MOST_BLOCKS],
        more_blocks=max(0, len(blocks) - _MOST_BLOCKS),
        nominal=nominal_of(record),
        busbw=busbw_of(record),
        pictures={},
        steps=operation_steps(record, points),
        found=_found(record),
        run_parts=run_parts(record.run_costs),
    )
    return _with_pictures(page, runs)


def _found(record: CampaignRecord) -> tuple[str, ...]:
    system = str(record.campaign.settings.get(DESCRIBED) or "")
    if not system or record.beside or record.emulated:
        return ()
    library = str(record.campaign.space.get("library") or "")
    nodes = int(record.workload.get("nodes") or 1)
    asked = CampaignSubject(system, library, record.operation, nodes)
    seen = replicate_findings(asked, record.conclusion, record.campaign.space.get("pinned"))
    replayed = "replayed" if record.conclusion.replayed else "simulated"
    return tuple(replication_lines(seen, system, replayed if record.is_unreal else ""))


def _picture_banner(record: CampaignRecord) -> str:
    """What every picture says of a campaign that measured nothing here; else nothing."""
    if not record.is_unreal:
        return ""
    if record.conclusion.replayed:
        return f"REPLAYED from the recorded grid {record.conclusion.replayed}"
    return "SIMULATED: says nothing about a real system"


def _with_pictures(page: Page, runs: Sequence[course.DefaultRun]) -> Page:
    from dataclasses import replace

    return replace(page, pictures={p.name: p for p in _pictures(page, runs)})


def _pictures(page: Page, runs: Sequence[course.DefaultRun]) -> list[Picture]:
    found = []
    if any(p.is_judged for p in page.points):
        found.append(evidence.draw_speedups(page.points, _minimum_gain(page.record)))
        if page.nominal.bytes_per_s and page.busbw:
            found.append(evidence.draw_bandwidth(page.points, page.busbw, page.nominal))
    if any(p.pairs and p.is_judged for p in page.points):
        found.append(evidence.draw_pairs(page.points))
    found += [
        variables.draw_ablation(number, ablation)
        for number, ablation in enumerate(page.record.conclusion.ablations, 1)
        if any(variable.effects for variable in ablation.variables)
    ]
    if any(page.importance.values()):
        found.append(variables.draw_importance(page.importance))
    if runs:
        found.append(course_figures.draw_noise(course.drawn_sizes(runs), runs))
    if page.costs:
        found.append(course_figures.draw_time_spent(page.costs, page.outside_s))
    return found


def _minimum_gain(record: CampaignRecord) -> float:
    return record.profiles[0].minimum_gain


def _importance(record: CampaignRecord) -> dict[str, list[Importance]]:
    """Importance of the variables in the search, by range of sizes."""
    runs = [r for r in record.runs if r.phase is Phase.SEARCH and r.outcome is Outcome.OK]
    reference = default_times(runs, record.speeds)
    gains = [(run.configuration, log_gains(run, record.speeds, reference)) for run in runs]
    found = {}
    for part in split_ranges(sorted({size for size, _ in reference})):
        tried, logs = _log_times(gains, part.sizes)
        names = {name for configuration in tried for name in configuration}
        assignments = [{name: c.get(name) for name in names} for c in tried]
        found[part.label] = variable_importance(assignments, logs)
    return {label: items for label, items in found.items() if items}


def _log_times(
    gains: Sequence[tuple[Configuration, Mapping[Cell, float]]], sizes: Sequence[int]
) -> tuple[list[Configuration], list[float]]:
    """Mean log time of each configuration, against the default: repeats are no new evidence."""
    found: defaultdict[Configuration, list[float]] = defaultdict(list)
    for configuration, cells in gains:
        found[configuration] += [-gain for (size, _), gain in cells.items() if size in sizes]
    means = {c: math.fsum(logs) / len(logs) for c, logs in found.items() if logs}
    return list(means), list(means.values())


def render_page(page: Page) -> str:
    """The page as HTML that needs nothing else."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("commtune.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "size": formatting.format_size, "duration": formatting.format_duration,
        "wall": formatting.format_wall_time,
        "percent": formatting.format_percent, "node_hours": formatting.format_node_hours,
        "gain": _gain, "ratio": _ratio,
        "kept": _kept,
        "time": _time, "verdict": _verdict, "grouped": _grouped, "limit": limit_words,
    }  # fmt: skip
    template = environment.get_template("report.html")
    drawn = {
        name: Markup(render_svg(picture, page.banner)) for name, picture in page.pictures.items()
    }
    return template.render(
        page=page,
        record=page.record,
        conclusion=page.record.conclusion,
        campaign=page.record.campaign,
        svg=drawn,
        version=__version__,
        now=datetime.now(UTC).timestamp(),
        ranked=variables.rank_variables(page.importance),
        ratios={
            (p.bytes, p.evidence.speed): {pair.block: pair.ratio for pair in p.pairs}
            for p in page.points
        },
        default=Configuration(),
        each_by_itself=formatting.each_by_itself(method.level_of(page.record)),
    )


def _kept(share: float) -> str:
    """Which share of the gain a smaller configuration keeps."""
    if share > _MORE_THAN_ALL:
        return "more than the whole speedup"
    return f"{formatting.format_percent(share)} of the speedup kept"


def _gain(gain: Interval) -> str:
    """An interval for a narrow column."""
    if gain.pairs < 2:
        return "–"
    return _ratio(gain)


def _ratio(found: Interval | BoundarySide) -> str:
    if formatting.is_too_noisy(found.low, found.high):
        return "too noisy"
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _grouped(shares: Mapping[int, float]) -> list[tuple[str, str, float]]:
    """Neighbouring sizes that say the same, as one: sizes, the share as text, the share."""
    said = ((size, _capped(share), share) for size, share in sorted(shares.items()))
    found = []
    for percent, group in groupby(said, key=lambda item: item[1]):
        members = list(group)
        low, high = members[0][0], members[-1][0]
        sizes = (
            formatting.format_size(low)
            if low == high
            else f"{formatting.format_size(low)} to {formatting.format_size(high)}"
        )
        found.append((sizes, percent, members[0][2]))
    return found


def _capped(share: float) -> str:
    return (
        formatting.format_percent(share)
        if share < HOPELESS
        else f"over {formatting.format_percent(HOPELESS)}"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _verdict(point: SizePoint) -> str:
    if not point.is_judged:
        return "too few pairs"
    if point.evidence.verdict is Verdict.FASTER:
        return "faster"
    if point.evidence.verdict is Verdict.DEFAULT:
        return "not worth it"
    if point.more_pairs > _MANY_PAIRS:
        return "inconclusive: thousands more pairs"
    if point.more_pairs:
        return f"inconclusive: about {point.more_pairs} more pairs"
    return "inconclusive"
