"""``commtune spaces``."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from commtune.campaign.file import load_campaign
from commtune.commands import text
from commtune.commands.options import JsonOption
from commtune.documents.nearest import quote_value, suggest
from commtune.errors import CommtuneError, SpaceError, UnknownName
from commtune.spaces import (
    Parameter,
    Space,
    condition_text,
    list_presets,
    load_document,
    load_space,
)
from commtune.spaces.parameter import Kind, Restricted

_WIDTH = 96
_MANY = 10**12


def show_spaces(library: str | None, *, json_output: bool) -> None:
    """Prints the presets, all of them or those for a library.

    Raises:
        UnknownName: none is for that library.
    """
    spaces = [load_space(name) for name in list_presets()]
    if library is not None:
        known = sorted({space.library for space in spaces})
        if library not in known:
            message = f"no shipped space is for a library {quote_value(library)}"
            raise UnknownName(message, hint=suggest(library, known))
        spaces = [space for space in spaces if space.library == library]
    if json_output:
        print(json.dumps([_brief(space) for space in spaces], indent=2))
        return
    rows = [
        (s.name, s.library, s.versions, str(len(s.parameters)), _counted(s), s.summary)
        for s in spaces
    ]
    header = ("space", "library", "versions", "variables", "configurations", "for")
    print(text.format_table(header, rows, right="variables,configurations"))
    print("\nThe variables of one, with their values: commtune spaces show NAME")


def _counted(space: Space) -> str:
    """How many configurations there are; of very many, only about."""
    number = space.count()
    return f"{number:,}" if number < _MANY else f"{number:.1e}"


def show_space(name: str, *, json_output: bool) -> None:
    """Prints a space, by preset name or path."""
    space = _load(name)
    if json_output:
        parameters = [_plain(parameter) for parameter in space.parameters]
        print(json.dumps({**_brief(space), "parameters": parameters}, indent=2))
        return
    print(f"{space.name} {space.version}: {space.summary}")
    print(f"for {space.library} {space.versions}; {_counted(space)} configurations")
    if sizes := _sizes(name):
        print(f"in other sizes: {', '.join(sizes)}")
    for name_, value in space.pinned.items():
        print(f"\n{name_}={value}\n    pinned: set in every run")
    for parameter in space.parameters:
        print("\n" + _described(parameter))
    for parameter in space.left_out.values():
        print(f"\n{_described(parameter)}\n    left out without opt_in: [{parameter.name}]")


def _sizes(name: str) -> list[str]:
    """The other sizes in which a shipped space comes."""
    family = name.removesuffix("-quick").removesuffix("-thorough")
    sizes = [family, f"{family}-quick", f"{family}-thorough"]
    return [size for size in sizes if size != name and size in list_presets()]


def _validate_spaces(files: list[Path], *, json_output: bool) -> None:
    """Checks files; exits with 2 if one is wrong."""
    results = [(file, _problem(file)) for file in files]
    if json_output:
        print(json.dumps([_result(file, error) for file, error in results], indent=2))
    else:
        for file, error in results:
            if error is None:
                print(f"{file}: ok, {_space_of(file).count():,} configurations")
            else:
                hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
                print(f"{error.message}{hint}", file=sys.stderr)
    if any(error for _, error in results):
        sys.exit(2)


def _space_of(file: Path) -> Space:
    """The space in a file, or the one that a campaign file makes of another."""
    if _is_campaign(file):
        return load_campaign(file).plan.space
    return load_space(file)


def _is_campaign(file: Path) -> bool:
    data = load_document(file, SpaceError).data
    return isinstance(data, dict) and "campaign" in data and "parameters" not in data


def _result(file: Path, error: CommtuneError | None) -> dict[str, Any]:
    said = {"message": error.message, "hint": error.hint} if error else {}
    return {"file": str(file), "ok": error is None, **said}


def _load(name: str) -> Space:
    return load_space(Path(name) if "/" in name or name.endswith((".yaml", ".yml")) else name)


def _problem(file: Path) -> CommtuneError | None:
    try:
        _space_of(file)
    except CommtuneError as error:
        return error
    return None


def _brief(space: Space) -> dict[str, Any]:
    return {
        "name": space.name,
        "version": space.version,
        "library": space.library,
        "versions": space.versions,
        "summary": space.summary,
        "configurations": space.count(),
        "pinned": dict(space.pinned),
        "variables": list(space.variables),
    }


def _plain(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "kind": str(parameter.kind),
        "values": list(parameter.values),
        "variables": list(parameter.variables),
        "default": parameter.default,
        "restricted": [left_out.value for left_out in parameter.restricted],
        "condition": condition_text(parameter),
        "risks": [str(risk) for risk in parameter.risks],
        "source": parameter.source,
        "note": parameter.note,
    }


def _described(parameter: Parameter) -> str:
    lines = [f"{parameter.name} ({parameter.kind})", *map(_wrapped, _values(parameter))]
    if parameter.default:
        lines.append(_wrapped(f"unset means: {parameter.default}"))
    if condition := condition_text(parameter):
        lines.append(_wrapped(f"only when {condition}"))
    if parameter.risks:
        lines.append(_wrapped(f"danger: {', '.join(parameter.risks)}"))
    for left_out in parameter.restricted:
        setting = f"{parameter.name}={left_out.value}"
        lines.append(_wrapped(f"left out without opt_in: [{setting!r}]: {_why(left_out)}"))
    if parameter.note:
        lines.append(_wrapped(parameter.note))
    if parameter.source:
        lines.append(_wrapped(f"source: {parameter.source}"))
    return "\n".join(lines)


def _values(parameter: Parameter) -> list[str]:
    """The values in a row; of a group a line each, with what it sets."""
    if parameter.kind is not Kind.GROUP:
        return [", ".join("unset" if value is None else value for value in parameter.values)]
    return [
        "unset" if value is None else f"{value}: {_settings(parameter.environment(value))}"
        for value in parameter.values
    ]


def _settings(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in environment.items())


def _why(left_out: Restricted) -> str:
    risks = ", ".join(left_out.risks)
    return f"{risks}; {left_out.why}" if left_out.why else risks


def _wrapped(line: str) -> str:
    return textwrap.fill(
        " ".join(line.split()), _WIDTH, initial_indent="    ", subsequent_indent="        ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def spaces_list_command(
    library: Annotated[str | None, typer.Argument(help="only those for this library")] = None,
    json_output: JsonOption = False,
) -> None:
    """The spaces that come with commtune."""
    show_spaces(library, json_output=json_output)


def spaces_show_command(name: str, json_output: JsonOption = False) -> None:
    """Variables of a space, with values, conditions, dangers and sources."""
    show_space(name, json_output=json_output)


def spaces_validate_command(files: list[Path], json_output: JsonOption = False) -> None:
    """Check space files."""
    _validate_spaces(files, json_output=json_output)
