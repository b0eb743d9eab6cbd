"""Reports and pictures of stored campaigns, as files."""

from __future__ import annotations

import re
from pathlib import Path

from commtune.app.profiles.plotting import choose_campaign
from commtune.db.connection.location import database_url
from commtune.db.connection.opening import readable_database
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.paths import exists, is_folder
from commtune.report.page import Page, write_report
from commtune.report.record import CampaignRecord, read_record

_PAGE = "report.html"
#: What somebody asks for who takes the output for a file of that kind.
_OTHER_KINDS = (".pdf", ".png", ".svg", ".md", ".txt", ".json")
#: Letters of a file's name that are taken from a campaign's.
_LONGEST = 100


def write_campaign_report(
    campaign: str | None,
    output: Path | None = None,
    png: Path | None = None,
    db: str | None = None,
) -> list[Path]:
    """Writes a campaign's report, and returns the files, the page first.

    Args:
        campaign: its name; ``None`` for the only one there is.
        output: the page (``.html``), or a folder for the page and the pictures; ``None`` for a
            page in the current folder, called as the campaign.
        png: a folder for the pictures.

    Raises:
        UserError: reports are no files of the kind that is asked for, or can't be written there.
        UnknownName, NoAnswer: there is no such campaign.
    """
    campaign = choose_campaign(campaign, db)
    page, pictures = _places(output or Path(f"{_file_name(campaign)}.html"), png)
    return write_report(_read_campaign(campaign, db), page, pictures)


def render_campaign_report(campaign: str, db: str | None = None) -> str:
    """A campaign's report as HTML that needs nothing else; writes no file.

    Raises:
        UnknownName, NoAnswer: there is no such campaign.
    """
    return Page(_read_campaign(campaign, db)).render()


def _read_campaign(campaign: str, db: str | None) -> CampaignRecord:
    url = database_url(db)
    described = describe_campaign(url, campaign)
    with readable_database(db) as opened:
        return read_record(Store(opened), url, described)


def _places(output: Path, png: Path | None) -> tuple[Path, Path | None]:
    if output.suffix.lower() in (".html", ".htm"):
        return output, png
    is_other = output.suffix.lower() in _OTHER_KINDS or exists(output)
    if is_other and not is_folder(output):
        raise UserError(
            f"can't write a report as {output}",
            hint="end it in .html (browsers print that as PDF), or name a folder: pictures go "
            "there as PNG",
        )
    return output / _PAGE, png or output


def _file_name(name: str) -> str:
    """A campaign's name as that of a file: it may hold anything."""
    return re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:_LONGEST] or "report"
