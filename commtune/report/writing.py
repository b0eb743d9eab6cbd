"""Puts a report into files."""

from __future__ import annotations

from pathlib import Path

from commtune.errors import UserError
from commtune.report.figures.style import write_png
from commtune.report.page import compose_page, render_page
from commtune.report.record import CampaignRecord


def write_report(record: CampaignRecord, page: Path, png: Path | None) -> list[Path]:
    """Writes the page, and the pictures where a folder for them is given.

    Returns:
        What was written, the page first.

    Raises:
        UserError: a file can't be written.
    """
    composed = compose_page(record)
    _make_folder(page.parent)
    try:
        page.write_text(render_page(composed), encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write {page}: {error.strerror}") from error
    written = [page]
    if png is not None:
        _make_folder(png)
        for name, picture in composed.pictures.items():
            file = png / f"{name}.png"
            write_png(picture, file, heading=record.campaign.name, banner=composed.banner)
            written.append(file)
    return written


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"can't make the folder {folder}: {error.strerror}") from error
