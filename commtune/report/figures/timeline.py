"""Draws the course of a campaign: noise and drift of the default, and use of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from commtune import formatting
from commtune.report.figures import style
from commtune.report.record import DefaultRuns
from commtune.report.timeline import PhaseCost

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most sizes for which the default's times are drawn.
_DRAWN_SIZES = 4
#: The most runs of a size that are drawn.
_MOST_DOTS = 600
_MARKS = {"mixed": style.FAINT, **style.SPEED_COLOURS}


def draw_noise(runs: DefaultRuns, time: str) -> style.Picture:
    """Draws times of the default over the campaign, a row for each of a few sizes.

    Args:
        time: what the time of a run is, in words.
    """
    sizes = _drawn_sizes(sorted(set(runs.bytes.tolist())))

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(sizes), 1, sharex=True, squeeze=False)[:, 0]
        unit, factor = _time_unit(float(runs.at_s.max(initial=0.0)))
        for axis, size in zip(axes, sizes, strict=True):
            _course(axis, runs[runs.bytes == size], factor)
            axis.set_title(formatting.format_size(size), loc="left", fontsize=9)
        axes[-1].set_xlabel(f"{unit} since the campaign's first run")
        figure.supylabel(f"{time} of a run of the default", fontsize=10)
        handles = _legend(axes)
        if len(handles) > 1:
            marks, names = list(handles.values()), list(handles)
            figure.legend(marks, names, loc="outside lower right", ncols=4, markerscale=1.6)

    return style.Picture(
        name="noise",
        title="Noise and drift: the default over the campaign",
        alt=f"{time.capitalize()} of {len(set(runs.run.tolist()))} runs of the default over the "
        f"campaign, at {', '.join(formatting.format_size(size) for size in sizes)}.",
        draw=draw,
        height=0.9 + 1.35 * len(sizes),
    )


def draw_time_spent(phases: Sequence[PhaseCost], outside_s: float) -> style.Picture:
    """Draws wall time by phase (good, failed and lost runs) and outside runs, with budgets."""

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots(1, 1)
        rows = [phase.title for phase in phases]
        good = [phase.wall_s - phase.failed_s - phase.lost_s for phase in phases]
        axes.barh(rows, good, color=style.BLUE, height=0.6, label="runs that count")
        failed = [phase.failed_s for phase in phases]
        if any(failed):
            axes.barh(
                rows, failed, left=good, color=style.VERMILION, height=0.6, label="failed runs"
            )
        lost = [phase.lost_s for phase in phases]
        if any(lost):
            left = [phase.wall_s - phase.lost_s for phase in phases]
            axes.barh(rows, lost, left=left, color=style.PURPLE, height=0.6, label="lost runs")
        for place, phase in enumerate(phases):
            if phase.budget_s:
                axes.plot([phase.budget_s] * 2, [place - 0.42, place + 0.42], lw=2,
                          color=style.INK, label="planned" if place == 0 else "")  # fmt: skip
        if outside_s > 0:
            axes.barh(["outside runs"], [outside_s], color=style.ORANGE, height=0.6)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda value, _: formatting.format_wall_time(value))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.grid(axis="x", alpha=0.5)
        axes.set_xlabel("wall time")
        marks, names = axes.get_legend_handles_labels()
        figure.legend(marks, names, loc="outside lower right", ncols=3)

    return style.Picture(
        name="spent",
        title="What the budget was spent on",
        alt="Wall time by phase: "
        + "; ".join(
            f"{p.title} {formatting.format_wall_time(p.wall_s)}, {p.runs} runs" for p in phases
        ),
        draw=draw,
        height=1.3 + 0.42 * (len(phases) + (outside_s > 0)),
    )


def _drawn_sizes(sizes: Sequence[int]) -> Sequence[int]:
    if len(sizes) <= _DRAWN_SIZES:
        return sizes
    step = (len(sizes) - 1) / (_DRAWN_SIZES - 1)
    return [sizes[round(i * step)] for i in range(_DRAWN_SIZES)]


def _course(axes: Axes, runs: DefaultRuns, factor: float) -> None:
    shown = runs[:: 1 + (len(runs) - 1) // _MOST_DOTS]
    for speed, colour in _MARKS.items():
        here = shown[(shown.speed == speed) & ~shown.is_disturbed]
        if len(here):
            axes.plot([], [], "o", ms=2.6, mew=0, color=colour, label=_speed_label(speed))
            x, y = (here.at_s / factor).tolist(), here.time_s.tolist()
            style.draw_dots(axes, x, y, color=colour, alpha=0.75, lw=2.6)
        disturbed = shown[(shown.speed == speed) & shown.is_disturbed]
        if len(disturbed):
            axes.plot(disturbed.at_s / factor, disturbed.time_s, "x", ms=4, color=colour,
                      label=f"{_speed_label(speed)}, other load")  # fmt: skip
    by_speed = [runs.time_s[runs.speed == speed].tolist() for speed in set(runs.speed.tolist())]
    style.duration_axis(axes, style.outlier_limits(by_speed))
    style.pin_outliers(axes, (runs.at_s / factor).tolist(), runs.time_s.tolist())
    axes.grid(alpha=0.5)


def _speed_label(speed: str) -> str:
    return {"all": "run", "mixed": "state changed meanwhile"}.get(speed, f"{speed} state")


def _legend(axes: Iterable[Axes]) -> dict[str, Artist]:
    """Returns legend handles of all rows, by label without duplicates."""
    found: dict[str, Artist] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    return found


def _time_unit(longest_s: float) -> tuple[str, float]:
    if longest_s > 2 * 3600:
        return "hours", 3600.0
    return ("minutes", 60.0) if longest_s > 120 else ("seconds", 1.0)
