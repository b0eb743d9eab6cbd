"""What the variables do: measured by ablation, and as the search saw it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commtune.model.conclusion import Ablation, VariableEffect
from commtune.report.figures import style
from commtune.report.figures.evidence import limit_ratios
from commtune.tuner.statistics.importance import Importance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_VARIABLES = 12
_SERIES = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY)
_LONGEST = 44
#: A spread up to which the axis goes where every time is the same.
_SHORTEST_AXIS = 0.01


def draw_ablation(number: int, found: Ablation) -> style.Picture:
    """A small picture for each variable: the ratio without/with it, by size."""
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
        limit_ratios(list(axes.flat), [e.gain for v in shown for e in v.effects])
        figure.supylabel("time without / time with it", fontsize=10)

    return style.Picture(
        name=f"ablation-{number}",
        title="What each variable brings: above 1 it helps, below 1 it hurts",
        alt="Ratio of times without and with each variable by message size, with intervals: "
        + "; ".join(f"{v.label} {'kept' if v.kept else 'dropped'}" for v in shown),
        draw=draw,
        height=1.0 + 1.65 * rows,
    )


def draw_importance(found: Mapping[str, Sequence[Importance]]) -> style.Picture:
    """Spread of times between values, a row for each variable, a colour for each range."""
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
    """Full colours, whatever the bars that come first look like, and what the ticks mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(color=_SERIES[place], label=f"{label} sizes") for place, label in enumerate(found)
    ]
    tick = Line2D([], [], color=style.INK, lw=0, marker="|", ms=9, mew=1.6, label="by noise alone")
    figure.legend(handles=[*handles, tick], loc="outside lower right", ncols=4)


def _reach(found: Mapping[str, Sequence[Importance]]) -> float:
    """How far bars are drawn: what noise alone would show may be far outside."""
    items = [item for group in found.values() for item in group]
    telling = [max(item.spread, item.noise) for item in items if item.stands_out]
    return max(_SHORTEST_AXIS, *(telling or [item.spread for item in items]))


def rank_variables(found: Mapping[str, Sequence[Importance]]) -> list[str]:
    """Variables by how far they stand out of the noise in any range."""
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
    """The end of a long name tells it from its neighbours."""
    return label if len(label) <= _LONGEST else f"…{label[1 - _LONGEST :]}"
