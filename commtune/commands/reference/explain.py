"""``commtune spaces explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from commtune.commands.options import JsonOption, print_json
from commtune.documents.nearest import quote_value
from commtune.errors import UnknownName
from commtune.formatting import format_count, format_table, wrap_text
from commtune.spaces.catalogue import loading, wording
from commtune.spaces.catalogue.schema import Interaction
from commtune.spaces.loading import list_presets, load_space, preset_text, split_preset
from commtune.spaces.space import Space

_HEADER = ("variable", "library", "default", "mind", "what it does")
_LONGEST = 24  # letters of a default that a table shows
_INDENT = 14  # of what stands beside a label


def _unknown(name: str) -> UnknownName:
    near = loading.nearest_names(name)
    hint = (
        f"nearest: {', '.join(near)}"
        if near
        else "name an environment variable, several ('UCX_*RNDV*'), or a library: "
        + ", ".join(loading.list_libraries())
    )
    return UnknownName(f"the catalogue knows no variable {quote_value(name)}", hint=hint)


def _known(entry: loading.KnownVariable, asked: str) -> str:
    variable, catalogue = entry.variable, entry.catalogue
    title = catalogue.title
    if variable.part is not None:
        title += f": {catalogue.parts[variable.part].title}"
    lines = [f"{entry.name} ({title})"]
    if asked != entry.name:
        lines.append(_paragraph(f"{asked} is another name for it."))
    lines.append(_paragraph(variable.meaning))
    for label, text in wording.describe_variable(variable, catalogue):
        lines.append(_row(label, text))
    for key, interaction in entry.interactions.items():
        lines.append(_row("with others", _interaction(key, interaction, entry.name)))
    return "\n".join(lines)


def _interaction(key: str, interaction: Interaction, name: str) -> str:
    others = [other for other in interaction.variables if other not in (name, "*")]
    also = f"{', '.join(others)}: " if others else ""
    dangers = f" ({', '.join(interaction.dangers)})" if interaction.dangers else ""
    return f"{also}{interaction.rule}{dangers}" or key


def _not_read(entry: loading.NotRead, name: str) -> str:
    lines = [f"{name} is not a variable of {entry.catalogue.title}: {entry.entry.what.meaning}"]
    lines.append(_paragraph(entry.entry.truth))
    if entry.entry.use:
        lines.append(_row("right name", ", ".join(entry.entry.use)))
    return "\n".join(lines)


def _searched(name: str) -> Iterator[tuple[Space, str]]:
    """Shipped spaces that set a variable, with how they do; one of each that comes in sizes."""
    shipped = list_presets()
    for preset in shipped:
        if split_preset(preset)[0] != preset:
            continue  # a size of another one
        if name in preset_text(preset):
            sizes = [s for s in (preset, f"{preset}-thorough") if s in shipped]
            found = ([*_in_space(load_space(size), name)] for size in sizes)
            yield from next(filter(None, found), [])


def _in_space(space: Space, name: str) -> Iterator[tuple[Space, str]]:
    if name in space.pinned:
        yield space, f"pinned to {space.pinned[name]}"
    for parameter in space.parameters:
        if name in parameter.variables:
            values = wording.list_values("unset" if v is None else v for v in parameter.values)
            yield space, values if parameter.name == name else f"by {parameter.name}: {values}"
    for parameter in space.left_out.values():
        if name in parameter.variables:
            yield space, f"only with opt_in: [{parameter.name}]"


def _spaces(searched: Iterable[tuple[Space, str]]) -> str:
    names: dict[str, list[str]] = {}
    for space, how in searched:
        names.setdefault(how, []).append(space.name)
    return "; ".join(f"{', '.join(spaces)} ({how})" for how, spaces in names.items())


def _row(label: str, text: str) -> str:
    return wrap_text(text, first=f"  {label:<{_INDENT - 2}}", indent=" " * _INDENT)


def _paragraph(text: str) -> str:
    return wrap_text(text, first="  ", indent="  ")


def _plain(answer: loading.LookupResult, searched: Iterable[tuple[Space, str]]) -> dict[str, Any]:
    return {
        "name": answer.name,
        "known": [_entry(entry) for entry in answer.known],
        "not_read": [
            {"library": e.catalogue.library, **e.entry.model_dump(mode="json")}
            for e in answer.not_read
        ],
        "undescribed": [file.library for file in answer.undescribed],
        "elsewhere": [
            {"library": file.library, "name": key, **interaction.model_dump(mode="json")}
            for file, key, interaction in answer.elsewhere
        ],
        "searched": [{"space": space.name, "how": how} for space, how in searched],
    }


def _entry(entry: loading.KnownVariable) -> dict[str, Any]:
    return {
        "library": entry.catalogue.library,
        "name": entry.name,
        **entry.variable.model_dump(mode="json"),
        "checked": entry.catalogue.checked.model_dump(mode="json"),
        "interactions": {
            key: interaction.model_dump(mode="json")
            for key, interaction in entry.interactions.items()
        },
    }


def _find_described(asked: str) -> list[loading.KnownVariable]:
    """The described variables that a library's name or a pattern with ``*`` means."""
    if "*" in asked:
        return [entry for entry in _all() if fnmatchcase(entry.name.upper(), asked.upper())]
    wanted = _letters(asked)
    return [
        entry
        for entry in _all()
        if wanted in (_letters(entry.catalogue.library), _letters(entry.catalogue.title))
    ]


def _list_variables(found: list[loading.KnownVariable], *, json_output: bool) -> None:
    if json_output:
        print_json([_brief(entry) for entry in found])
        return
    titles = list(dict.fromkeys(entry.catalogue.title for entry in found))
    rows = [_brief_row(entry) for entry in found]
    columns = [i for i, name in enumerate(_HEADER) if name != "library" or len(titles) > 1]
    header, *shown = [tuple(row[i] for i in columns) for row in (_HEADER, *rows)]
    print(format_table(header, shown))
    count = format_count(len(found), "variable")
    print(f"\n{count} of {', '.join(titles)}; details of one: spaces explain NAME")


def _all() -> Iterator[loading.KnownVariable]:
    for library in loading.list_libraries():
        file = loading.load_catalogue(library)
        for name, variable in file.variables.items():
            yield loading.KnownVariable(file, name, variable)


def _letters(name: str) -> str:
    return name.casefold().replace(" ", "").replace("-", "").replace("_", "")


def _brief_row(entry: loading.KnownVariable) -> tuple[str, ...]:
    default = entry.variable.default or ""
    shown = default if len(default) <= _LONGEST else f"{default[: _LONGEST - 3]}..."
    variable = entry.variable
    return (
        entry.name,
        entry.catalogue.library,
        shown,
        wording.summarize_care(variable),
        wording.summarize_meaning(variable),
    )


def _brief(entry: loading.KnownVariable) -> dict[str, object]:
    variable = entry.variable
    return {
        "name": entry.name,
        "library": entry.catalogue.library,
        "type": str(variable.type),
        "default": variable.default,
        "level": str(variable.level),
        "role": str(variable.role),
        "meaning": variable.meaning,
    }


def spaces_explain_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="VARIABLE",
            help="a name (NCCL_PROTO), a pattern ('UCX_*RNDV*') or a library (ucx)",
        ),
    ],
    json_output: JsonOption = False,
) -> None:
    """Explain a variable: what it does, values, default, versions, risks."""
    # A line of a script, `export NAME=VALUE`, is taken as well.
    name = name.strip().removeprefix("export ").partition("=")[0].strip()
    answer = loading.look_up(name)
    names = dict.fromkeys([name, *(entry.name for entry in answer.known)])
    searched = [found for spelled in names for found in _searched(spelled)]
    if not answer and not searched:
        several = _find_described(name)
        if not several:
            raise _unknown(name)
        _list_variables(several, json_output=json_output)
        return
    if json_output:
        print_json(_plain(answer, searched))
        return
    parts = [_known(entry, name) for entry in answer.known]
    parts += [_not_read(entry, name) for entry in answer.not_read]
    parts += [
        f"{name} ({file.title})\n  {file.title} reads it, but the catalogue does not describe it."
        for file in answer.undescribed
    ]
    parts += [
        f"{file.title} says of {name}\n" + _paragraph(interaction.rule)
        for file, _, interaction in answer.elsewhere
    ]
    if answer.known or searched:
        parts.append(_row("searched in", _spaces(searched) or "no shipped space"))
    print("\n\n".join(parts))
