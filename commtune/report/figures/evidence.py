"""Draws figures of the evidence: speedups by size, pairs of runs, effects of variables."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commtune import formatting
from commtune.model import Interval
from commtune.model.conclusion import Ablation
from commtune.model.effects import VariableEffect
from commtune.report.figures import style
from commtune.report.points import SizePoint
from commtune.systems.nominal.collectives import Nominal
from commtune.tuner.statistics.importance import Importance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Points = Sequence[SizePoint]
#: The most dots of a size; with more, a cloud looks the same.
_MOST_DOTS = 150
#: Half the width of a cloud of dots, in factors of two.
_CLOUD = 0.16
#: Distance of the interval from the cloud's centre, in factors of two.
_BESIDE = 0.34


def draw_speedups(points: _Points, minimum_gain: float, time: str) -> style.Picture:
    """Draws times, and below them ratios with intervals; a column for each machine state.

    Args:
        time: what the time of a run is, in words.
    """
    sound = [p for p in points if p.is_judged]
    panels = _panels(sound)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(
            2, len(panels), sharex=True, sharey="row", squeeze=False, height_ratios=[5, 4]
        )
        sizes = sorted({p.bytes for p in sound})
        for column, (title, here) in enumerate(panels.items()):
            _times(axes[0][column], here, title)
            _ratios(axes[1][column], here, minimum_gain)
            style.size_axis(axes[0][column], sizes, label="")
            style.size_axis(axes[1][column], sizes)
        axes[0][0].set_ylabel(f"{time} of a run")
        axes[1][0].set_ylabel("default time / candidate's")
        _limit_ratios(axes[1], [p.evidence.gain for p in sound])
        axes[1][-1].annotate(
            f"+{formatting.format_percent(minimum_gain)}",
            (1, 1 + minimum_gain), va="center", fontsize=8,
            xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
            color=style.VERMILION,
        )  # fmt: skip

    return style.Picture(
        name="gains",
        title="Default against the best candidate, by message size",
        alt=_alt(sound),
        draw=draw,
        width=8.6 if len(panels) < 3 else 11.5,
        height=5.6,
    )


def draw_pairs(points: _Points) -> style.Picture:
    """Draws every pair of runs as a dot, with their confidence interval."""
    sound = [p for p in points if p.pairs and p.is_judged]
    panels = _panels(sound)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        sizes = sorted({p.bytes for p in sound})
        for axis, (title, here) in zip(axes, panels.items(), strict=True):
            _clouds(axis, here)
            style.size_axis(axis, sizes)
            axis.set_title(title)
        axes[0].set_ylabel("default time / candidate's, per pair")
        _limit_clouds(axes, sound)
        for axis, here in zip(axes, panels.values(), strict=True):
            x = [p.bytes for p in here for _ in p.pairs]
            style.pin_outliers(axis, x, [pair.ratio for p in here for pair in p.pairs])

    pairs = sum(len(p.pairs) for p in sound)
    return style.Picture(
        name="runs",
        title="The runs behind each size: one dot is one pair of a block",
        alt=f"{pairs} pairs of runs as dots over the message size, with the intervals of the "
        "speedups; the table below has the numbers.",
        draw=draw,
        width=8.6 if len(panels) < 3 else 11.5,
        height=3.9,
    )


def draw_bandwidth(points: _Points, busbw: Callable[[SizePoint, float], float], nominal: Nominal
              ) -> style.Picture:  # fmt: skip
    """Draws the bus bandwidth of default and candidate by size, with the nominal bandwidth.

    Args:
        busbw: returns bytes per second at a point, given a time in seconds.
        nominal: the nominal bandwidth, which must be known.
    """
    sound = [p for p in points if p.is_judged]
    panels = _panels(sound)
    line = nominal.bytes_per_s or 0.0

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (title, here) in zip(axes, panels.items(), strict=True):
            x = [p.bytes for p in here]
            default = [busbw(p, p.evidence.default_s) / 1e9 for p in here]
            tuned = [busbw(p, p.evidence.candidate_s) / 1e9 for p in here]
            axis.plot(x, default, "o--", color=style.INK, mfc=style.PAPER, label="default")
            axis.plot(x, tuned, "s-", color=style.BLUE, ms=5, label="best candidate")
            axis.axhline(line / 1e9, color=style.GREEN, lw=1.2, label="nominal")
            axis.set_ylim(0)
            axis.set_title(title)
            style.size_axis(axis, sorted(set(x)))
        axes[0].legend()
        axes[0].set_ylabel("bus bandwidth, GB/s")

    return style.Picture(
        name="bandwidth",
        title="Bus bandwidth against the nominal one",
        alt="Bus bandwidth of the default and the best candidate over the message size, "
        f"with a line at the nominal {line / 1e9:.3g} GB/s.",
        draw=draw,
        height=3.4,
    )


def _ratio_axis(axes: Axes) -> None:
    """Makes the vertical axis logarithmic for ratios, so that 2 and 1/2 are symmetric."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.set_yscale("log", base=2)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(FixedLocator(_ticks(low, high)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}×"))
    axes.minorticks_off()
    axes.axhline(1.0, color=style.INK, lw=0.9)


def _ticks(low: float, high: float) -> list[float]:
    """Chooses round ratios as ticks, not too close, in the order of ``_TICKS``."""
    apart = math.log(high / low) / 8
    chosen: list[float] = []
    for tick in _TICKS:
        near = any(abs(math.log(tick / other)) < apart for other in chosen)
        if low <= tick <= high and not near:
            chosen.append(tick)
    return sorted(chosen)


#: Ratios for ticks, the roundest first.
_TICKS = (1, 2, 0.5, 4, 0.25, 8, 0.125, 16, 1.5, 1.2, 0.8, 1.1, 0.9, 3, 0.33, 6, 1.3, 1.4, 1.6,
          1.8, 0.7, 0.6, 2.5, 0.4, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99)  # fmt: skip


def _panels(points: _Points) -> dict[str, list[SizePoint]]:
    """Groups points by machine state; the keys are titles of panels."""
    found: defaultdict[str, list[SizePoint]] = defaultdict(list)
    for point in sorted(points, key=lambda p: p.state_rank):
        found[point.evidence.speed].append(point)
    titles = {"all": "all machine states together" if len(found) > 1 else ""}
    return {titles.get(name, f"{name} machine state"): here for name, here in found.items()}


def _alt(points: _Points) -> str:
    used = [p for p in points if p.is_recommended]
    if not used:
        return "Times and speedups by message size; the default is recommended at every size."
    best = max(used, key=lambda p: p.evidence.gain.ratio)
    return (
        "Times of the default and of the best candidate over the message size, and their ratio "
        f"with its interval; the largest confirmed ratio is {best.evidence.gain.ratio:.2f}. "
        "The table below has the numbers."
    )


def _times(axes: Axes, points: _Points, title: str) -> None:
    x = [p.bytes for p in points]
    axes.plot(x, [p.evidence.default_s for p in points], "o--", color=style.INK, mfc=style.PAPER,
              label="default")  # fmt: skip
    axes.plot(x, [p.evidence.candidate_s for p in points], "-", color=style.BLUE, lw=1.2)
    faces = (
        (True, style.BLUE, "recommended"),
        (False, style.PAPER, "best candidate, not recommended"),
    )
    for used, face, label in faces:
        here = [p for p in points if p.is_recommended is used]
        if here:
            axes.plot([p.bytes for p in here], [p.evidence.candidate_s for p in here], "s",
                      color=style.BLUE, mfc=face, ms=5, label=label)  # fmt: skip
    style.duration_axis(axes)
    axes.set_title(title)
    axes.legend(loc="upper left")


def _ratios(axes: Axes, points: _Points, minimum_gain: float) -> None:
    for used, face in ((True, style.BLUE), (False, style.PAPER)):
        here = [p for p in points if p.is_recommended is used]
        if here:
            _intervals(axes, [p.bytes for p in here], here, fmt="s", ms=5, color=style.BLUE,
                       mfc=face)  # fmt: skip
    axes.axhline(1 + minimum_gain, color=style.VERMILION, lw=1, ls=":")


def _intervals(axes: Axes, x: Sequence[float], points: _Points, **look: Any) -> None:
    gains = [p.evidence.gain for p in points]
    ends = [[g.ratio - g.low for g in gains], [g.high - g.ratio for g in gains]]
    axes.errorbar(x, [g.ratio for g in gains], yerr=ends, capsize=3, **look)


def _limit_ratios(axes: Sequence[Axes], gains: Sequence[Interval]) -> None:
    """Sets limits of ratio axes; very wide intervals are cut off, not to flatten the others."""
    low = min([1.0, *(max(g.low, g.ratio / 1.5) for g in gains)])
    high = max([1.0, *(min(g.high, g.ratio * 1.5) for g in gains)])
    for axis in axes:
        axis.set_ylim(low / 1.04, high * 1.06)
        _ratio_axis(axis)


def _clouds(axes: Axes, points: _Points) -> None:
    for point in points:
        ratios = [pair.ratio for pair in point.pairs]
        every = 1 + (len(ratios) - 1) // _MOST_DOTS
        shown = ratios[::every]
        # Spread evenly between -1 and 1 by the golden ratio, so that no rows are visible.
        spread = [2 * (i * 0.6180339887 % 1) - 1 for i in range(len(shown))]
        x = [point.bytes * 2 ** (_CLOUD * one) for one in spread]
        colour = style.BLUE if point.is_recommended else style.PURPLE
        style.draw_dots(axes, x, shown, color=colour, lw=3.2, alpha=0.6)
    beside = [point.bytes * 2**_BESIDE for point in points]
    _intervals(axes, beside, points, fmt="_", ms=7, color=style.INK, lw=1.4, zorder=3)


def _limit_clouds(axes: Sequence[Axes], points: _Points) -> None:
    """Sets limits to show all dots but far outliers, and all intervals but very wide ones."""
    low, high = style.outlier_limits([pair.ratio for pair in p.pairs] for p in points)
    low = min([0.98, low, *(max(p.evidence.gain.low, low / 1.2) for p in points)])
    high = max([1.02, high, *(min(p.evidence.gain.high, high * 1.2) for p in points)])
    for axis in axes:
        axis.set_ylim(low / 1.03, high * 1.03)
        _ratio_axis(axis)


_MOST_VARIABLES = 12
_SERIES = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY)
_LONGEST = 44
#: The least length of the axis, in case all times are equal.
_SHORTEST_AXIS = 0.01


def draw_ablation(number: int, found: Ablation) -> style.Picture:
    """Draws a panel for each variable: the ratio of times without and with it, by size."""
    shown = [v for v in found.variables if v.effects][:_MOST_VARIABLES]
    columns = 1 if len(shown) == 1 else 2
    rows = math.ceil(len(shown) / columns)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        sizes = sorted({effect.bytes for variable in shown for effect in variable.effects})
        for place, axis in enumerate(axes.flat):
            if place < len(shown):
                _variable(axis, shown[place], sizes, last=place >= len(shown) - columns)
            else:
                axis.set_visible(False)
            if place >= len(shown) - columns:
                axis.tick_params(labelbottom=True)
        _limit_ratios(list(axes.flat), [e.gain for v in shown for e in v.effects])
        figure.supylabel("time without / time with it", fontsize=10)

    return style.Picture(
        name=f"ablation-{number}",
        title="What each variable contributes: above 1 it helps, below 1 it hurts",
        alt="Ratio of times without and with each variable by message size, with intervals: "
        + "; ".join(f"{v.label} {'kept' if v.kept else 'dropped'}" for v in shown),
        draw=draw,
        height=1.0 + 1.65 * rows,
    )


def draw_importance(found: Mapping[str, Sequence[Importance]]) -> style.Picture:
    """Draws the spread of times between values: a row per variable, a colour per size range."""
    names = rank_variables(found)[:_MOST_VARIABLES]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 1)
        step = 0.8 / len(found)
        for place, (label, items) in enumerate(found.items()):
            by_name = {item.name: item for item in items}
            offset = (place - (len(found) - 1) / 2) * step
            _bars(axes, names, by_name, offset, 0.8 * step, _SERIES[place], label)
        axes.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=8.5)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel("time under its slowest value, over that under its fastest")
        axes.xaxis.set_major_formatter(lambda value, _: f"+{value:.0%}")
        axes.grid(axis="x", alpha=0.5)
        axes.set_xlim(0, 1.08 * _reach(found))
        _legend(figure, found)

    return style.Picture(
        name="importance",
        title="How much each variable moved the search's times (descriptive, not evidence)",
        alt="Bars of the spread of times between values of each variable by range of sizes, with "
        "what noise alone would give; the table below has the numbers.",
        draw=draw,
        height=1.5 + (0.2 + 0.16 * len(found)) * len(names),
    )


def _legend(figure: Figure, found: Mapping[str, Sequence[Importance]]) -> None:
    """Draws the legend, with full colours even if the first bars are faint, and the ticks."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(color=_SERIES[place], label=f"{label} sizes") for place, label in enumerate(found)
    ]
    tick = Line2D([], [], color=style.INK, lw=0, marker="|", ms=9, mew=1.6, label="by noise alone")
    figure.legend(handles=[*handles, tick], loc="outside lower right", ncols=4)


def _reach(found: Mapping[str, Sequence[Importance]]) -> float:
    """Returns the length of the axis; the spread by noise alone may be far beyond it."""
    items = [item for group in found.values() for item in group]
    telling = [max(item.spread, item.noise) for item in items if item.stands_out]
    return max(_SHORTEST_AXIS, *(telling or [item.spread for item in items]))


def rank_variables(found: Mapping[str, Sequence[Importance]]) -> list[str]:
    """Sorts variables by how far they exceed the noise in any size range."""
    best: dict[str, float] = {}
    for items in found.values():
        for item in items:
            best[item.name] = max(best.get(item.name, -math.inf), item.spread - item.noise)
    return sorted(best, key=lambda name: (-best[name], name))


def _variable(axes: Axes, variable: VariableEffect, sizes: Sequence[int], *, last: bool) -> None:
    for speed in dict.fromkeys(effect.speed for effect in variable.effects):
        here = [effect for effect in variable.effects if effect.speed == speed]
        ratios = [effect.gain.ratio for effect in here]
        axes.errorbar(
            [effect.bytes for effect in here],
            ratios,
            yerr=[
                [e.gain.ratio - max(e.gain.low, e.gain.ratio / 9) for e in here],
                [min(e.gain.high, 9 * e.gain.ratio) - e.gain.ratio for e in here],
            ],
            fmt="o", ms=4, capsize=2, lw=1.1, color=style.SPEED_COLOURS.get(speed, style.INK),
            mfc=style.SPEED_COLOURS.get(speed, style.INK) if variable.kept else style.PAPER,
            label="" if speed == "all" else speed,
        )  # fmt: skip
    state = "kept" if variable.kept else "dropped"
    axes.set_title(f"{_short(variable.label)} ({state})", fontsize=8.5)
    style.size_axis(axes, sizes, label="message size" if last else "")
    if any(effect.speed != "all" for effect in variable.effects):
        axes.legend(fontsize=7.5, ncols=3, loc="upper left")


def _bars(
    axes: Axes,
    names: Sequence[str],
    found: Mapping[str, Importance],
    offset: float,
    height: float,
    colour: str,
    label: str,
) -> None:
    places = [place + offset for place, name in enumerate(names) if name in found]
    items = [found[name] for name in names if name in found]
    bars = axes.barh(places, [item.spread for item in items], height, color=colour, label=label)
    for bar, item in zip(bars, items, strict=True):
        bar.set_alpha(1 if item.stands_out else 0.35)
    axes.vlines([item.noise for item in items], [place - height / 2 for place in places],
                [place + height / 2 for place in places], color=style.INK, lw=1.6)  # fmt: skip


def _short(label: str) -> str:
    """Shortens a long name to its end, which differs from similar names."""
    return label if len(label) <= _LONGEST else f"…{label[1 - _LONGEST :]}"
