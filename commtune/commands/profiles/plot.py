"""``commtune plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commtune import wiring
from commtune.commands import text
from commtune.commands.options import DbOption
from commtune.db.connection.location import database_url
from commtune.db.storage.store import Store
from commtune.errors import MissingComponent, NoAnswer, UserError, install_command
from commtune.model import Interval, Profile, Verdict
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.outcome.profiles import ALL_SIZES
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMATS = (".svg", ".png", ".pdf")
# Okabe and Ito's palette: told apart by colour-blind people, and in grey.
_DEFAULT, _TUNED = "#000000", "#0072B2"


def run(campaign: str, output: Path, db: str | None) -> None:
    """Draws the confirmation of a campaign: times, and gains with their intervals."""
    if output.suffix not in _FORMATS:
        raise UserError(f"can't draw {output.name}", hint=f"end it in {', '.join(_FORMATS)}")
    profiles = _profiles(campaign, db)
    figure = _draw_plot(campaign, profiles)
    figure.savefig(output)
    print(f"wrote {output}")


def _profiles(campaign: str, db: str | None) -> list[Profile]:
    from commtune.db.queries.profiles import find_profiles, load_profile

    url = database_url(db)
    listed = find_profiles(url, campaign)
    found = [load_profile(url, str(entry.id)).profile for entry in listed]
    if not any(p.points for p in found):
        with wiring.opened_database(db) as opened:
            names = ", ".join(c.name for c in Store(opened).campaigns()) or "none"
        look = f"'commtune report {campaign}' shows what it has; " if listed else ""
        raise NoAnswer(
            f"campaign {campaign} has no confirmed measurements",
            hint=f"{look}campaigns: {names}",
        )
    return found


def _draw_plot(campaign: str, profiles: list[Profile]) -> Figure:
    """The figure: times above, gains with intervals below, a column for each machine speed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingComponent(
            "drawing needs matplotlib", hint=install_command("commtune[plot]")
        ) from error
    ranged = [p for p in profiles if p.name != ALL_SIZES]
    shown = [point for profile in ranged for point in displayed_points(profile.points)]
    drawn = {speed: _rows(ranged, speed) for speed in {p.speed for p in shown}}
    # Over all machine speeds first: that is what the verdict is from.
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
        _times(axes[0][column], rows, "" if speed == ALL else f"{speed} machine speed")
        _gains(axes[1][column], rows)
    highest = max(_height(row["point"].gain) for speed in speeds for row in drawn[speed])
    axes[1][0].set_ylim(0, 1.1 * highest)
    axes[0][0].set_ylabel("median time, us")
    axes[1][0].set_ylabel("gain (default / tuned)")
    first = ranged[0]
    simulated = " - SIMULATED OR REPLAYED: no real system" if first.simulated else ""
    figure.suptitle(
        f"{campaign}: {first.operation}, {first.ranks} ranks, {first.nodes} node{simulated}"
    )
    return figure


def _height(gain: Interval) -> float:
    """How high the axis must reach for a gain; a wild interval is cut off."""
    return min(gain.high, 2 * gain.ratio)


def _rows(profiles: list[Profile], speed: str) -> list[dict[str, Any]]:
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
        [row["point"].tuned_s * 1e6 for row in rows],
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
        [text.format_size(row["point"].bytes) for row in rows], rotation=45, ha="right"
    )
    axes.minorticks_off()
    axes.set_xlabel("message size (filled: recommended; hollow: keep the default)")
    axes.grid(alpha=0.3)


def plot_command(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[Path, typer.Option("--output", "-o", help="SVG, PNG or PDF file")],
    db: DbOption = None,
) -> None:
    """Draw default against tuned times of a campaign's confirmation."""
    run(campaign, output, db)
