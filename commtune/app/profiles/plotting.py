"""The picture of a stored confirmation, as a file."""

from __future__ import annotations

from pathlib import Path

from commtune.db.connection.location import database_url
from commtune.db.connection.reader import open_for_reading
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import campaign_names, load_profiles
from commtune.errors import NoAnswer, UserError
from commtune.report.confirmation import write_confirmation

#: Names that a hint lists: more would hide the sentence.
_SHOWN = 6
_PLOT_FORMATS = (".svg", ".png", ".pdf")


def write_plot(campaign: str | None, output: Path, db: str | None = None) -> None:
    """Draws the confirmation of a campaign: times, and speedups with their intervals.

    Args:
        campaign: its name; ``None`` for the only one there is.
        output: a file that ends in .svg, .png or .pdf.

    Raises:
        UserError: no picture is a file of that kind.
        NoAnswer: nothing was confirmed.
    """
    if output.suffix not in _PLOT_FORMATS:
        raise UserError(f"can't draw {output.name}", hint=f"end it in {', '.join(_PLOT_FORMATS)}")
    campaign, url = choose_campaign(campaign, db), database_url(db)
    found = load_profiles(url, campaign)
    if not any(profile.points for profile in found):
        describe_campaign(url, campaign)  # names those there are, if there is no such campaign
        raise NoAnswer(
            f"campaign {campaign} has no confirmed measurements",
            hint=f"'commtune report {campaign}' shows what it has",
        )
    write_confirmation(campaign, found, output)


def choose_campaign(named: str | None, db: str | None) -> str:
    """The campaign that is named, or the only one there is."""
    if named is not None:
        return named
    with open_for_reading(database_url(db)) as rows:
        names = campaign_names(rows)
    if not names:
        raise NoAnswer("there is no campaign yet", hint="commtune tune runs one")
    if len(names) > 1:
        shown = ", ".join(names[:_SHOWN])
        more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise UserError(f"there are {len(names)} campaigns", hint=f"name one: {shown}{more}")
    return names[0]
