"""The confirmation of a campaign in one picture: times, and speedups with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commtune.errors import NoAnswer
from commtune.formatting import format_size
from commtune.model import Interval, Profile, Verdict
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.outcome.profiles import ALL_SIZES
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by colour-blind people, and in grey.
_DEFAULT, _TUNED = "#000000", "#0072B2"


def draw_confirmation(campaign: str, profiles: Sequence[Profile]) -> Figure:
    """The figure: times above, speedups with intervals below, a column for each machine state.

    Raises:
        NoAnswer: no size has enough pairs.
    """
    from matplotlib.figure import Figure

    ranged = [p for p in profiles if p.name != ALL_SIZES]
    shown = [point for profile in ranged for point in displayed_points(profile.points)]
    drawn = {speed: _rows(ranged, speed) for speed in {p.speed for p in shown}}
    # Over all machine states first: that is what the verdict is from.
    speeds = sorted((s for s, rows in drawn.items() if rows), key=lambda s: (s != ALL, s))
    if not speeds:
        raise NoAnswer(
            f"campaign {campaign} has too few pairs at every size to draw anything",
            hint="give it a larger budget for confirmation, and tune again",
        )
    figure = Figure(figsize=(5.2 * len(speeds) + 1.2, 5.6), layout="constrained")
    axes = figure.subplots(
        2, len(speeds), sharex=True, sharey="row", squeeze=False, height_ratios=[3, 2]
    )
    for column, speed in enumerate(speeds):
        rows = drawn[speed]
        _times(axes[0][column], rows, "" if speed == ALL else f"{speed} machine state")
        _gains(axes[1][column], rows)
    highest = max(_height(row["point"].gain) for speed in speeds for row in drawn[speed])
    axes[1][0].set_ylim(0, 1.1 * highest)
    axes[0][0].set_ylabel("median time, us")
    axes[1][0].set_ylabel("speedup (default / tuned)")
    first = ranged[0]
    simulated = " - SIMULATED OR REPLAYED: no real system" if first.simulated else ""
    figure.suptitle(
        f"{campaign}: {first.operation}, {first.ranks} ranks, {first.nodes} node{simulated}"
    )
    return figure


def _height(gain: Interval) -> float:
    """How high the axis must reach for a gain; a wild interval is cut off."""
    return min(gain.high, 2 * gain.ratio)


def _rows(profiles: Sequence[Profile], speed: str) -> list[dict[str, Any]]:
    rows = [
        {"point": point, "use": profile.verdict is Verdict.FASTER}
        for profile in profiles
        for point in profile.points
        if point.speed == speed
        and profile.bytes_low <= point.bytes <= profile.bytes_high
        and point.gain.pairs >= FEWEST_PAIRS
    ]
    return sorted(rows, key=lambda row: row["point"].bytes)


def _times(axes: Axes, rows: list[dict[str, Any]], title: str) -> None:
    sizes = [row["point"].bytes for row in rows]
    axes.loglog(
        sizes,
        [row["point"].default_s * 1e6 for row in rows],
        "o--",
        color=_DEFAULT,
        mfc="white",
        label="default",
    )
    axes.loglog(
        sizes,
        [row["point"].candidate_s * 1e6 for row in rows],
        "s-",
        color=_TUNED,
        ms=4,
        label="best candidate",
    )
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _gains(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        gain = row["point"].gain
        axes.errorbar(
            [row["point"].bytes],
            [gain.ratio],
            yerr=[[gain.ratio - gain.low], [gain.high - gain.ratio]],
            fmt="s",
            ms=5,
            capsize=3,
            color=_TUNED,
            mfc=_TUNED if row["use"] else "white",
        )
    axes.axhline(1.0, color=_DEFAULT, lw=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks([row["point"].bytes for row in rows])
    axes.set_xticklabels(
        [format_size(row["point"].bytes) for row in rows], rotation=45, ha="right"
    )
    axes.minorticks_off()
    axes.set_xlabel("message size (filled: recommended; hollow: keep the default)")
    axes.grid(alpha=0.3)
