"""Writes and renders reports of stored campaigns."""

from __future__ import annotations

import re
from pathlib import Path

from commtune.app.profiles.plotting import choose_campaign
from commtune.db.connection.engine import open_readable
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.paths import exists, is_folder
from commtune.report.page import Page, write_report
from commtune.report.record import ReportedCampaign, read_record

_PAGE = "report.html"
#: Suffixes of unsupported formats, which are not mistaken for names of folders.
_OTHER_KINDS = (".pdf", ".png", ".svg", ".md", ".txt", ".json")
#: The most characters of a campaign's name in a file's name.
_LONGEST = 100


def write_campaign_report(
    campaign: str | None,
    output: Path | None = None,
    png: Path | None = None,
    db: str | None = None,
) -> list[Path]:
    """Writes a campaign's report, and returns the files, the page first.

    Args:
        campaign: its name; ``None`` for the only one in the database.
        output: the page (``.html``), or a folder for the page and the figures; ``None`` for a
            page in the current folder, named after the campaign.
        png: a folder for the figures.

    Raises:
        UserError: the format of the file is not supported, or its path is wrong.
        EnvironmentFault: the file can't be written.
        UnknownName, NoAnswer: there is no such campaign.
    """
    campaign = choose_campaign(campaign, db)
    page, pictures = _places(output or Path(f"{_file_name(campaign)}.html"), png)
    return write_report(_read_campaign(campaign, db), page, pictures)


def render_campaign_report(campaign: str, db: str | None = None) -> str:
    """Returns a campaign's report as a self-contained HTML page.

    Raises:
        UnknownName, NoAnswer: there is no such campaign.
    """
    return Page(_read_campaign(campaign, db)).render()


def _read_campaign(campaign: str, db: str | None) -> ReportedCampaign:
    described = describe_campaign(db, campaign)
    with open_readable(db) as opened:
        return read_record(Store(opened), db, described)


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
    """Returns a file name for a campaign, whose name may have any characters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:_LONGEST] or "report"
