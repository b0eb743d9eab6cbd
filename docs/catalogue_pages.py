"""Makes a page of each file of the catalogue, whenever MkDocs builds (a hook in mkdocs.yml).

The pages are not stored, so they can't be older than the files. Their names in the navigation are
catalogue/LIBRARY.md.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from commtune.spaces.catalogue.loading import list_libraries, load_catalogue
from commtune.spaces.catalogue.schema import Catalogue, Variable
from commtune.spaces.catalogue.wording import (
    describe_variable,
    summarize_care,
    summarize_meaning,
)
from commtune.spaces.loading import list_presets, load_space

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_SPECIAL = re.compile(r"([\\*`|\[\]])")
_HOLDS = "What holds between them"
_NOT_READ = "Names that it does not read"
_NO_ENTRY = "Also read but not described"
_WORD = re.compile(r"\b[A-Z]\w+\b")
#: A variable's name that is the whole text of an element, such as a link or a cell.
_NAME = re.compile(r"(?<=>)[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+(?=<)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages; MkDocs calls this."""
    from mkdocs.structure.files import File

    for library in list_libraries():
        text = page(load_catalogue(library))
        files.append(File.generated(config, f"catalogue/{library}.md", content=text))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets long names of variables break after an underscore; MkDocs calls this.

    Browsers break them nowhere else than in the middle of a word, and tables get too wide.
    """
    del page, config, files
    return _NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), html)


def page(catalogue: Catalogue) -> str:
    """The page of a library."""
    lines = [
        f"# {catalogue.title}", "", plain(catalogue.summary), "",
        f"{len(catalogue.variables)} variables. "
        f"`commtune spaces explain NAME` says the same of one. [How to read this]"
        f"(../catalogue.md), [how to add to it](../catalogue.md#how-to-add-to-it).", "",
        *_table(_head(catalogue)), "",
        *_glance(catalogue),
    ]  # fmt: skip
    for name, variable in catalogue.variables.items():
        others = catalogue.variables.keys() - {name}
        lines += [f"## {name}", "", _linked(variable.meaning, others), ""]
        rows = [
            *_rows(variable, catalogue),
            ("searched in", ", ".join(_searching().get(name, ()))),
        ]
        lines += [*_table(rows, others), ""]
    lines += _together(catalogue) + _wrong(catalogue) + _others(catalogue)
    return "\n".join(lines)


def _glance(catalogue: Catalogue) -> list[str]:
    """All variables on few screens, and the way to what stands at the end."""
    rows = [
        (name, variable.default or "", summarize_meaning(variable), summarize_care(variable))
        for name, variable in catalogue.variables.items()
    ]
    header = ("variable", "default", "what it does", "mind")
    ways = [
        f"[{title}](#{title.lower().replace(' ', '-')})"
        for title, there in (
            (_HOLDS, catalogue.interactions),
            (_NOT_READ, catalogue.not_variables),
            (_NO_ENTRY, catalogue.others),
        )
        if there
    ]
    said = [
        "Without a default, the library decides. Mind: how much care it needs, and what it is for",
        "where that is not tuning; [the words](../catalogue.md#the-format).",
        *([f"At the end of this page: {', '.join(ways)}."] if ways else []),
    ]
    return ["## At a glance", "", *said, "", *_grid(header, rows, catalogue.variables), ""]


def _head(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    checked = catalogue.checked
    yield "numbers", catalogue.numbers
    yield "settings also from", "; ".join(catalogue.files)
    oldest = f"{checked.oldest} to " if checked.oldest else ""
    yield "checked", f"{oldest}{checked.newest}. {checked.how}"
    for key, prefixes in catalogue.other_prefixes.items():
        yield "also begins with", f"{', '.join(prefixes)}, in the place of {key}"
    for part in catalogue.parts.values():
        yield "part", f"{part.title}{f', {part.newest}' if part.newest else ''}"


def _rows(variable: Variable, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    if variable.part is not None:
        yield "part", catalogue.parts[variable.part].title
    yield from describe_variable(variable, catalogue)


@cache
def _searching() -> Mapping[str, list[str]]:
    """For each variable the shipped spaces that search it, in their largest size or by opt-in."""
    shipped = list_presets()
    found: dict[str, list[str]] = {}
    for name in shipped:
        if name.endswith(("-quick", "-thorough")):
            continue
        space = load_space(f"{name}-thorough" if f"{name}-thorough" in shipped else name)
        for parameter in (*space.parameters, *space.left_out.values()):
            for variable in parameter.variables:
                found.setdefault(variable, []).append(name)
    return found


def _together(catalogue: Catalogue) -> list[str]:
    if not catalogue.interactions:
        return []
    rows = [
        (", ".join(each.variables), each.rule, ", ".join(each.dangers))
        for each in catalogue.interactions.values()
    ]
    header = ("variables", "what holds", "otherwise")
    return [f"## {_HOLDS}", "", *_grid(header, rows, catalogue.variables), ""]


def _wrong(catalogue: Catalogue) -> list[str]:
    if not catalogue.not_variables:
        return []
    rows = [
        (name, wrong.what.meaning, wrong.truth, ", ".join(wrong.use))
        for name, wrong in catalogue.not_variables.items()
    ]
    header = ("name", "what it is", "truth", "right name")
    return [f"## {_NOT_READ}", "", *_grid(header, rows, catalogue.variables), ""]


def _others(catalogue: Catalogue) -> list[str]:
    if not catalogue.others:
        return []
    return [f"## {_NO_ENTRY}", "", f"{plain(', '.join(sorted(catalogue.others)))}.", ""]


def _table(rows: Iterable[tuple[str, str]], names: Container[str] = ()) -> list[str]:
    made = (f"| {key} | {_linked(text, names)} |" for key, text in rows if text)
    return ["| | |", "|---|---|", *made]


def _grid(
    header: tuple[str, ...], rows: Iterable[tuple[str, ...]], names: Container[str] = ()
) -> list[str]:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return [*lines, *(f"| {' | '.join(_linked(cell, names) for cell in row)} |" for row in rows)]


def _linked(text: str, names: Container[str]) -> str:
    """Text in which each of the names leads to its section of the page."""
    return _WORD.sub(
        lambda word: f"[{word[0]}](#{word[0].lower()})" if word[0] in names else word[0],
        plain(text),
    )


def plain(text: str) -> str:
    """Text whose signs mean nothing to Markdown."""
    escaped = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")
