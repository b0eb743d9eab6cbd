"""Renders the page of a report from its template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from commtune import __version__, formatting, wording
from commtune.db.settings import DESCRIBED, learned_configurations
from commtune.documents.files import replaced_file, writing_file
from commtune.documents.quantities import format_bandwidth
from commtune.model import FEW_PAIRS
from commtune.report import points, recommendations, timeline
from commtune.report.earlier_campaigns import describe_learned
from commtune.report.figures import evidence
from commtune.report.figures import timeline as course_figures
from commtune.report.figures.style import Picture
from commtune.report.points import SizePoint
from commtune.report.record import DefaultRuns, ReportedCampaign
from commtune.systems.nominal.collectives import Nominal
from commtune.tuner.outcome.detectability import UNINFORMATIVE_GAIN
from commtune.tuner.statistics.importance import Importance, TriedValues, variable_importance
from commtune.tuner.statistics.machine_states import ALL

#: The most blocks whose pairs are listed one by one.
_MOST_BLOCKS = 60
#: From this number on, the number of further pairs needed isn't shown exactly.
_MANY_PAIRS = 2000
#: Half-open ranges of sizes (bytes) for the importance of variables. Protocols and algorithms
#: commonly change at their borders.
_IMPORTANCE_RANGES = {
    "small": (0, 16 * 1024),
    "middle": (16 * 1024, 512 * 1024),
    "large": (512 * 1024, 2**63),
}


class Page:
    """The data that the template shows.

    Attributes:
        importance: importance of variables, by range of sizes.
        blocks: numbers of the blocks whose pairs are listed; ``more_blocks`` counts the rest.
        nominal: nominal bandwidth of the links; without a number if it is unknown.
        busbw: computes bus bandwidth from a point and a time; ``None`` without a good run.
        steps: steps of the operation that were measured separately.
        found: lines on published findings for its system, heading first.
        learned: the outcome of configurations that earlier campaigns proposed.
        run_parts: the cost of a run by part; empty if no run reports it.
        pictures: figures by name; without those that have nothing to show.
    """

    def __init__(self, record: ReportedCampaign) -> None:
        runs = record.times.of_default(record.operation)
        self.record = record
        estimand = record.campaign.estimand
        self.times = formatting.describe_estimand(estimand).capitalize()
        self._run_time = formatting.describe_run_time(estimand)
        self.banner = _picture_banner(record)
        self.points = points.size_points(record)
        self.cards = recommendations.answer_cards(record, self.points)
        self.importance = _importance(record)
        self.costs = timeline.phase_costs(record)
        self.outside_s = timeline.outside_s(record)
        ended = timeline.group_by_cause(record)
        self.failures = [cause for cause in ended if cause.outcome.is_failure]
        self.losses = [cause for cause in ended if cause.outcome.is_lost]
        self.scheduled = timeline.scheduler_share(record)
        self.noise = timeline.default_noise(record, runs)
        self.run_parts = timeline.run_parts(record.run_costs)
        self.method = recommendations.method_paragraphs(record)
        self.missing = recommendations.missing_parts(record)
        self.borders = recommendations.find_boundaries(record.profiles)
        blocks = tuple(sorted({pair.block for p in self.points for pair in p.pairs}))
        self.blocks, self.more_blocks = blocks[:_MOST_BLOCKS], max(0, len(blocks) - _MOST_BLOCKS)
        self.nominal = points.nominal_of(record)
        self.busbw = points.busbw_of(record)
        self.steps = points.operation_steps(record, self.points)
        self.found = _found(record)
        learned = learned_configurations(record.campaign.settings)
        self.learned = describe_learned(learned, record.profiles) if record.profiles else ""
        self.pictures = {picture.name: picture for picture in self._draw(runs)}

    def share(self, point: SizePoint, seconds: float) -> float | None:
        """Returns the bandwidth at a time (seconds) as a share of the nominal one."""
        return self.nominal.share(self.busbw(point, seconds)) if self.busbw else None

    @property
    def detectable(self) -> dict[int, float]:
        """The minimum detectable effect by size, for sizes with pairs that tell the noise."""
        return {s: g for s, g in self.record.conclusion.detectable.items() if s in self._telling}

    @property
    def undetectable(self) -> list[int]:
        """Sizes at which the noise is known, and no gain would have been detected."""
        return sorted(self._telling - self.detectable.keys())

    @property
    def _telling(self) -> set[int]:
        return {p.bytes for p in self.points if p.evidence.gain.pairs >= FEW_PAIRS}

    @property
    def columns(self) -> tuple[SizePoint, ...]:
        """The sizes and machine states whose pairs are listed by block."""
        speeds = {p.evidence.speed for p in self.points} - {ALL}
        return tuple(p for p in self.points if p.evidence.speed != ALL or not speeds)

    def _draw(self, runs: DefaultRuns) -> Iterator[Picture]:
        if any(p.is_judged for p in self.points):
            least = self.record.profiles[0].minimum_gain
            yield evidence.draw_speedups(self.points, least, self._run_time)
            if self.nominal.bytes_per_s and self.busbw:
                yield evidence.draw_bandwidth(self.points, self.busbw, self.nominal)
        if any(p.pairs and p.is_judged for p in self.points):
            yield evidence.draw_pairs(self.points)
        for number, ablation in enumerate(self.record.conclusion.ablations, 1):
            if any(variable.effects for variable in ablation.variables):
                yield evidence.draw_ablation(number, ablation)
        if any(self.importance.values()):
            yield evidence.draw_importance(self.importance)
        if len(runs):
            yield course_figures.draw_noise(runs, self._run_time)
        if self.costs:
            yield course_figures.draw_time_spent(self.costs, self.outside_s)

    def render(self) -> str:
        """Returns the page as self-contained HTML."""
        templates = templates_in(jinja2.PackageLoader("commtune.report"))
        return templates.get_template("report.html").render(
            page=self,
            record=self.record,
            conclusion=self.record.conclusion,
            campaign=self.record.campaign,
            svg={name: Markup(one.svg(self.banner)) for name, one in self.pictures.items()},
            version=__version__,
            now=datetime.now(UTC).timestamp(),
            ranked=evidence.rank_variables(self.importance),
            ratios={
                (p.bytes, p.evidence.speed): {pair.block: pair.ratio for pair in p.pairs}
                for p in self.points
            },
            interval=wording.format_simultaneous(self.record.held_against("level")),
            each_by_itself=formatting.each_by_itself(self.record.held_against("level")),
        )


def write_report(record: ReportedCampaign, page: Path, png: Path | None) -> list[Path]:
    """Writes the page, and the figures if a folder for them is given.

    Returns:
        The files that were written, the page first.

    Raises:
        UserError, EnvironmentFault: a file can't be written.
    """
    composed = Page(record)
    _make_folder(page.parent)
    with replaced_file(page) as part:
        # Facts of a machine are stored as they were found, perhaps with bytes that are no text.
        part.write_text(composed.render(), encoding="utf-8", errors="replace")
    written = [page]
    if png is not None:
        _make_folder(png)
        for name, picture in composed.pictures.items():
            file = png / f"{name}.png"
            picture.write(file, heading=record.campaign.name, banner=composed.banner)
            written.append(file)
    return written


def _make_folder(folder: Path) -> None:
    with writing_file(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _found(record: ReportedCampaign) -> tuple[str, ...]:
    system = str(record.campaign.settings.get(DESCRIBED) or "")
    if not system or record.beside or record.emulated:
        return ()
    # Imported here, since there are no findings for most systems.
    from commtune.report.replicated_findings import replicate_findings, replication_lines

    seen = replicate_findings(
        record.conclusion,
        system=system,
        library=str(record.campaign.space.get("library") or ""),
        operation=record.operation,
        nodes=int(record.workload.get("nodes") or 1),
        pinned=record.campaign.space.get("pinned"),
    )
    replayed = "replayed" if record.conclusion.replayed else "simulated"
    return tuple(replication_lines(seen, system, replayed if record.is_unreal else ""))


def _picture_banner(record: ReportedCampaign) -> str:
    """Returns a banner for figures of a campaign that measured nothing here; else empty."""
    if not record.is_unreal:
        site = record.campaign.site
        return f"MEASURED AT {site}, and not here" if site else ""
    if record.conclusion.replayed:
        return f"REPLAYED from the recorded grid {record.conclusion.replayed}"
    return "SIMULATED: says nothing about a real system"


def _importance(record: ReportedCampaign) -> dict[str, list[Importance]]:
    """Computes the importance of variables in the search, by range of sizes."""
    tried = TriedValues(record.times.tried)
    found = {
        label: variable_importance(tried, record.times.search_logs(low, high))
        for label, (low, high) in _IMPORTANCE_RANGES.items()
    }
    return {label: items for label, items in found.items() if items}


def _grouped(shares: Mapping[int, float]) -> list[tuple[str, str, float]]:
    """Merges neighbouring sizes with the same text: sizes, the share as text, the share."""
    said = ((size, _capped(share), share) for size, share in sorted(shares.items()))
    found = []
    for percent, group in groupby(said, key=lambda item: item[1]):
        members = list(group)
        sizes = formatting.format_sizes(members[0][0], members[-1][0])
        found.append((sizes, percent, members[0][2]))
    return found


def _capped(share: float) -> str:
    said = formatting.format_percent(min(share, UNINFORMATIVE_GAIN))
    return said if share < UNINFORMATIVE_GAIN else f"over {said}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _verdict(point: SizePoint) -> str:
    if not point.is_judged:
        return "too few pairs"
    found = wording.describe_finding(point.evidence)
    if found != wording.INCONCLUSIVE:
        return found
    if point.more_pairs > _MANY_PAIRS:
        return "inconclusive: thousands more pairs"
    if point.more_pairs:
        return f"inconclusive: about {point.more_pairs} more pairs"
    return "inconclusive: how many more pairs is unknown"


def _fact(value: Any) -> str:
    """Formats a fact about a machine: a list with commas, a dash for nothing."""
    values = value if isinstance(value, list) else [value]
    # Network adapters of unknown speed are stored with the word None at the end.
    said = ", ".join(str(one).removesuffix("None").strip() for one in values)
    return said or "–"


def _limit(nominal: Nominal) -> str:
    """Describes the upper limit of the bandwidth; empty if it is the nominal bandwidth."""
    if nominal.limit is None:
        return ""
    return f"{format_bandwidth(nominal.limit)}: {nominal.limit_why}"


#: Jinja filters that the templates of the page need.
_FILTERS: Mapping[str, Callable[..., Any]] = {
    "size": formatting.format_size, "duration": formatting.format_duration,
    "wall": formatting.format_wall_time,
    "percent": formatting.format_percent, "node_hours": formatting.format_node_hours,
    "speedup": formatting.format_speedup, "ratio": formatting.format_ratio, "fact": _fact,
    "dropped": wording.describe_dropped, "kept": wording.format_kept,
    "further_runs": wording.describe_further_runs, "tail": wording.tail_cells,
    "cells": wording.point_cells, "time": _time,
    "verdict": _verdict, "grouped": _grouped, "limit": _limit,
}  # fmt: skip


def templates_in(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """Returns an environment of HTML templates, with the filters of reports."""
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        optimized=False,  # a page is rendered once: to fold constants takes longer than it saves
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    return environment
