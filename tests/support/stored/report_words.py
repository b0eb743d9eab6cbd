"""The words of reports."""

from __future__ import annotations

import re
from html import unescape

from commtune.report.page import Page


def render_words(page: Page, *drawn: str) -> str:
    """The page as HTML; of its figures, which take most of the time, only these are drawn."""
    pictures = page.pictures
    page.pictures = {name: one for name, one in pictures.items() if name in drawn}
    try:
        return page.render()
    finally:
        page.pictures = pictures


def words_in(html: str) -> str:
    """The text of a page, with single blanks and its cells apart."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))).replace(" .", ".")


def words_of(page: Page, *drawn: str) -> str:
    """The text of a page; of its figures, only these are drawn."""
    return words_in(render_words(page, *drawn))
