"""Draws what ``mechanisms.py`` measured: latency on the left, goodput on the right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from gpu_launches import size_words
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from mechanism_checks import LARGEST_SMALL, Times

#: Okabe and Ito's colours, and a mark for each, so that neither is needed to tell lines apart.
_STYLES = {
    "xccl": ("#0072b2", "o", "NCCL (xccl)"),
    "mpi-device": ("#d55e00", "s", "GPU-aware MPI"),
    "mpi-staged": ("#009e73", "^", "MPI, staged"),
    "ipc-put": ("#cc79a7", "D", "IPC put"),
    "ipc-get": ("#e69f00", "v", "IPC get"),
    "mpi-host": ("#6a6d75", "x", "MPI, host memory"),
}
_INK = "#1a1b1e"
#: Least distance of two labels, as a share of the axis.
_APART = 0.075


def draw(times: Times, nominal: float | None, title: str, path: Path) -> None:
    """Writes the SVG: a row for each operation.

    Args:
        times: seconds by operation, backend and size.
        nominal: bytes per second of a pair, one way.
    """
    mpl.rcParams.update({"svg.hashsalt": "commtune", "font.size": 9.5, "axes.axisbelow": True})
    rows = len(times)
    figure = Figure(figsize=(11.5, 3.5 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    for (operation, backends), (left, right) in zip(times.items(), axes, strict=True):
        _latency(left, operation, backends)
        _goodput(right, operation, backends, nominal)
    figure.suptitle(title, fontsize=9, color=_INK, x=0.01, ha="left")
    figure.savefig(path, format="svg", metadata={"Date": None})


def _latency(axes: Axes, operation: str, backends: Mapping[str, Mapping[int, float]]) -> None:
    lines = {
        name: {size: seconds * 1e6 for size, seconds in found.items() if size <= LARGEST_SMALL}
        for name, found in backends.items()
    }
    axes.set_yscale("log")
    axes.set_title(f"{operation}: time, µs", loc="left", fontsize=10)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _lines(axes, lines)


def _goodput(
    axes: Axes,
    operation: str,
    backends: Mapping[str, Mapping[int, float]],
    nominal: float | None,
) -> None:
    lines = {
        name: {size: size / seconds / 1e9 for size, seconds in found.items() if size >= 2**15}
        for name, found in backends.items()
    }
    axes.set_title(f"{operation}: goodput (size / time), GB/s", loc="left", fontsize=10)
    if nominal is not None and operation in ("ping-pong", "bidirectional"):
        axes.axhline(nominal / 1e9, color=_INK, linewidth=1, linestyle=(0, (5, 3)))
        note = f"nominal {nominal / 1e9:.0f} GB/s"
        axes.annotate(
            note, (0.01, nominal / 1e9), (0, -3), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="top", fontsize=9,
        )  # fmt: skip
    _lines(axes, lines, bottom=0.0)


def _lines(
    axes: Axes, lines: Mapping[str, Mapping[int, float]], bottom: float | None = None
) -> None:
    axes.set_xscale("log", base=2)
    sizes = sorted({size for found in lines.values() for size in found})
    for name, found in lines.items():
        colour, mark, _ = _STYLES[name]
        xs = sorted(found)
        axes.plot(xs, [found[x] for x in xs], color=colour, marker=mark, markersize=4.5, lw=1.6)
    axes.set_ylim(bottom=bottom)
    axes.set_xticks(sizes[:: max(1, math.ceil(len(sizes) / 6))])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_words(int(value))))
    axes.grid(color="#d9dbe0", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    _labels(axes, {name: found[max(found)] for name, found in lines.items() if found})


def _labels(axes: Axes, ends: Mapping[str, float]) -> None:
    """Names at the right, each at the height of its line's end or as near as there is room."""
    low, high = axes.get_ylim()
    is_log = axes.get_yscale() == "log"

    def share(value: float) -> float:
        if is_log:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    wanted = sorted((share(value), name) for name, value in ends.items())
    for place, (_, name) in zip(_spread([at for at, _ in wanted]), wanted, strict=True):
        colour, mark, words = _STYLES[name]
        axes.plot(1.025, place, marker=mark, color=colour, markersize=4.5,
                  transform=axes.transAxes, clip_on=False)  # fmt: skip
        axes.text(1.045, place, words, transform=axes.transAxes, va="center", fontsize=9)


def _spread(wanted: list[float]) -> list[float]:
    """Heights in rising order, moved apart as far as they have to be."""
    placed: list[float] = []
    for at in wanted:
        placed.append(max(at, placed[-1] + _APART) if placed else at)
    over = max(0.0, placed[-1] - 1.0) if placed else 0.0
    for i in range(len(placed) - 1, -1, -1):
        if over <= 0:
            break
        ceiling = placed[i + 1] - _APART if i + 1 < len(placed) else 1.0
        placed[i] = min(placed[i], ceiling)
    return placed
