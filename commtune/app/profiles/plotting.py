"""Plots the confirmation of a stored campaign into a file."""

from __future__ import annotations

from pathlib import Path

from commtune.db.connection.reader import open_for_reading
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import campaign_names, load_profiles
from commtune.errors import NoAnswer, UserError
from commtune.formatting import describe_run_time, format_ranks
from commtune.model.profile import ALL_SIZES
from commtune.report.figures.evidence import draw_speedups
from commtune.report.points import SizePoint
from commtune.tuner.outcome.displayed_points import displayed_points

#: The most names that a hint lists.
_SHOWN = 6
_PLOT_FORMATS = (".svg", ".png", ".pdf")


def write_plot(campaign: str | None, output: Path, db: str | None = None) -> None:
    """Plots the confirmation of a campaign: times, and speedups with their intervals.

    Args:
        campaign: its name; ``None`` for the only one in the database.
        output: a file that ends in .svg, .png or .pdf.

    Raises:
        UserError: the file has another suffix, or its path is wrong.
        EnvironmentFault: the file can't be written.
        NoAnswer: nothing was confirmed, or no size has enough pairs.
    """
    if output.suffix not in _PLOT_FORMATS:
        raise UserError(f"can't draw {output.name}", hint=f"end it in {', '.join(_PLOT_FORMATS)}")
    campaign = choose_campaign(campaign, db)
    found = load_profiles(db, campaign, with_details=False)
    if not any(profile.points for profile in found):
        describe_campaign(db, campaign)  # raises UnknownName if there is no such campaign
        raise NoAnswer(
            f"campaign {campaign} has no confirmed measurements",
            hint=f"'commtune report {campaign}' shows what it has",
        )
    shown = [
        SizePoint(point, profile, None, ())
        for profile in found
        if profile.name != ALL_SIZES
        for point in displayed_points(profile.points_inside)
    ]
    judged = sorted((p for p in shown if p.is_judged), key=lambda p: p.bytes)
    if not judged:
        raise NoAnswer(
            f"campaign {campaign} has too few pairs at every size to draw anything",
            hint="give it a larger budget for confirmation, and tune again",
        )
    first = judged[0].profile
    where = format_ranks(first.ranks, first.nodes)
    banner = "SIMULATED OR REPLAYED: no real system" if first.simulated else ""
    time = describe_run_time(first.conditions.estimand)
    picture = draw_speedups(judged, first.minimum_gain, time)
    picture.write(output, heading=f"{campaign}: {first.operation}, {where}", banner=banner)


def choose_campaign(named: str | None, db: str | None) -> str:
    """Returns the campaign of this name, or the only one in the database.

    Raises:
        NoAnswer, UserError: no name is given, and there is no campaign, or several.
    """
    if named is not None:
        return named
    with open_for_reading(db) as rows:
        names = campaign_names(rows)
    if not names:
        raise NoAnswer("there is no campaign yet", hint="commtune tune runs one")
    if len(names) > 1:
        shown = ", ".join(names[:_SHOWN])
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise UserError(f"there are {len(names)} campaigns", hint=f"name one: {shown}{more}")
    return names[0]
