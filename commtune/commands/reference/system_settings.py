"""``commtune systems reference-settings``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from commtune.commands.options import JsonOption, print_json
from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UnknownName
from commtune.formatting import format_table, wrap_text
from commtune.systems.loading import list_systems
from commtune.systems.reference_settings import (
    REFERENCE,
    ReferenceSettings,
    all_reference_settings,
)

_SEEN = {
    "repository": "every value read in the repository",
    "excerpt": "read in an excerpt",
    "notes": "from notes only: read it again before you quote it",
}


def _of(asked: str) -> list[ReferenceSettings]:
    """The sets for a system, or the one of that name."""
    name, known = asked.removeprefix(REFERENCE), all_reference_settings()
    if name in known:
        return [known[name]]
    found = [one for one in known.values() if asked in one.entry.systems]
    if not found and asked not in list_systems():
        systems = {*list_systems(), *(of for one in known.values() for of in one.entry.systems)}
        raise UnknownName(
            f"no system and no reference settings are called {quote_value(asked)}",
            hint=suggest_nearest(name, [*sorted(systems), *known]),
        )
    return found


def _table(found: list[ReferenceSettings]) -> str:
    rows = [
        (
            one.name,
            ", ".join(one.entry.systems) or one.entry.machine,
            ", ".join(one.entry.libraries),
            str(one.entry.kind),
            str(len(one.settings)),
            "no" if one.entry.unfit else "yes",
        )
        for one in found
    ]
    header = ("reference settings", "for", "library", "kind", "variables", "fit to try")
    return format_table(header, rows, right="variables")


def _lines(one: ReferenceSettings) -> Iterator[str]:
    found = one.entry
    yield f"{one.name}: {found.summary}"
    yield wrap_text(f"{found.stack}; {found.kind}" + (f", {found.dated}" if found.dated else ""))
    machine = ", ".join(found.systems) or found.machine
    yield wrap_text(f"on {machine}, for {', '.join(found.libraries)}")
    if found.purpose:
        yield wrap_text(f"for: {found.purpose}")
    if found.unfit:
        yield wrap_text(f"can't be tried as it stands: {found.unfit}")
    if found.on_top_of:
        yield f"    with what {found.on_top_of} sets"
    for name, value in one.settings.items():
        yield f"      {name}={value}"
    for name, what in found.fill_in.items():
        yield wrap_text(f"{name} is yours to set: {what}")
    if found.launcher:
        yield wrap_text(f"launch: {found.launcher}")
    for name, reader in one.elsewhere.items():
        yield wrap_text(f"{name} is read by {reader}")
    if found.note:
        yield wrap_text(found.note)
    parts = "; put together from several places of it" if found.assembled else ""
    yield wrap_text(f"from: {one.source} ({_SEEN[found.evidence]}{parts})")


def _plain(one: ReferenceSettings) -> dict[str, Any]:
    return {
        "name": one.name,
        "site": one.site,
        **one.entry.model_dump(mode="json"),
        "source": one.source,
        "settings": dict(one.settings),
        "elsewhere": dict(one.elsewhere),
        "fit": not one.entry.unfit,
    }


def systems_reference_settings_command(
    asked: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYSTEM or NAME]",
            help="a system, for the sets that fit it; or one set, in full",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List variables that sites, vendors and studies set or recommend."""
    found = _of(asked) if asked else list(all_reference_settings().values())
    if json_output:
        print_json([_plain(one) for one in found])
    elif not found:
        print(f"no reference settings are known for {asked}")
    elif asked:
        print("\n\n".join("\n".join(_lines(one)) for one in found))
    else:
        print(_table(found))
        print(
            "\nWhat each sets, and why some are not fit to try: "
            "commtune systems reference-settings SYSTEM, or NAME\n"
            "Against the default, on a machine of its kind: "
            f"commtune compare default {REFERENCE}NAME"
        )
