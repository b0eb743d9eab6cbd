"""``commtune report``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from commtune import wiring
from commtune.commands.options import DbOption
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.report.record import read_record
from commtune.report.writing import write_report

_PAGE = "report.html"
#: What somebody asks for who takes the output for a file of that kind.
_OTHER_KINDS = (".pdf", ".png", ".svg", ".md", ".txt", ".json")
#: Letters of a file's name that are taken from a campaign's.
_LONGEST = 100


def run(campaign: str, output: Path | None, png: Path | None, db: str | None) -> None:
    """Writes a campaign's report and says where it is.

    Args:
        output: the page (``.html``), or a folder for the page and the pictures; ``None`` for a
            page in the current folder, called as the campaign.
        png: a folder for the pictures.

    Raises:
        UserError: reports are no files of the kind that is asked for.
    """
    url = database_url(db)
    described = describe_campaign(url, campaign)
    page, pictures = _places(output or Path(f"{_plain(campaign)}.html"), png)
    with wiring.opened_database(db) as opened:
        record = read_record(Store(opened), url, described)
    for file in write_report(record, page, pictures):
        print(f"wrote {file}")


def _places(output: Path, png: Path | None) -> tuple[Path, Path | None]:
    if output.suffix.lower() in (".html", ".htm"):
        return output, png
    if output.suffix.lower() in _OTHER_KINDS and not output.is_dir():
        raise UserError(
            f"can't write a report as {output}",
            hint="end it in .html (browsers print that as PDF), or name a folder: pictures go "
            "there as PNG",
        )
    return output / _PAGE, png or output


def _plain(name: str) -> str:
    """A campaign's name as that of a file: it may hold anything."""
    return re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:_LONGEST] or "report"


def report_command(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="HTML file, or a folder for it and pictures"),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="folder for the pictures")] = None,
    db: DbOption = None,
) -> None:
    """Write a campaign's answer, evidence and method as one page, and its pictures."""
    run(campaign, output, png, db)
