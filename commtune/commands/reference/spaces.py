"""``commtune spaces show`` and ``validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from commtune.commands.options import JsonOption, print_json
from commtune.commands.reference.validation import validate_files
from commtune.documents.yaml_document import load_document
from commtune.errors import SpaceError
from commtune.formatting import format_many, wrap_text
from commtune.spaces.catalogue_facts import list_remarks
from commtune.spaces.loading import list_presets, load_space, split_preset
from commtune.spaces.parameter import Kind, Parameter
from commtune.spaces.space import Space


def _space_of(file: Path) -> Space:
    data = load_document(file, SpaceError).data
    # A campaign file has a key `space` too: what it names, where a space file has its version.
    if isinstance(data, dict) and "campaign" in data and "parameters" not in data:
        from commtune.app.campaigns.preparing import check_strategy_of  # slow; lists don't need it
        from commtune.campaign.loading import load_campaign

        spec = load_campaign(file)
        check_strategy_of(spec)
        return spec.plan.space
    return load_space(file)


def describe_space(space: Space) -> dict[str, Any]:
    """What JSON says of a space, and `shipped.json` of each that is shipped."""
    return {
        "name": space.name,
        "version": space.version,
        "library": space.library,
        "versions": space.versions,
        "summary": space.summary,
        "configurations": space.count(),
        "pinned": dict(space.pinned),
        "variables": list(space.variables),
        "parameters": [parameter.name for parameter in space.parameters],
    }


def _plain(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "kind": str(parameter.kind),
        "values": list(parameter.values),
        "variables": list(parameter.variables),
        "default": parameter.default,
        "restricted": [left_out.value for left_out in parameter.restricted],
        "condition": parameter.condition,
        "risks": [str(risk) for risk in parameter.risks],
        "source": parameter.source,
        "note": parameter.note,
    }


def _described(parameter: Parameter) -> str:
    lines = [f"{parameter.name} ({parameter.kind})", *map(wrap_text, _values(parameter))]
    if parameter.default:
        lines.append(wrap_text(f"unset means: {parameter.default}"))
    if condition := parameter.condition:
        lines.append(wrap_text(f"only when {condition}"))
    if parameter.risks:
        lines.append(wrap_text(f"danger: {', '.join(parameter.risks)}"))
    for left_out in parameter.restricted:
        setting = f"{parameter.name}={left_out.value}"
        why = "; ".join(filter(None, (", ".join(left_out.risks), left_out.why)))
        lines.append(wrap_text(f"left out without opt_in: [{setting!r}]: {why}"))
    if parameter.note:
        lines.append(wrap_text(parameter.note))
    if parameter.source:
        lines.append(wrap_text(f"source: {parameter.source}"))
    return "\n".join(lines)


def _values(parameter: Parameter) -> list[str]:
    """The values in a row; of a group a line each, with what it sets."""
    if parameter.kind is not Kind.GROUP:
        return [", ".join("unset" if value is None else value for value in parameter.values)]
    set_by = {
        value: " ".join(f"{n}={v}" for n, v in setting.items())
        for value, setting in parameter.settings.items()
    }
    return ["unset" if v is None else f"{v}: {set_by[v]}" for v in parameter.values]


def spaces_show_command(
    name: Annotated[str, typer.Argument(help="a shipped space, or a file")],
    json_output: JsonOption = False,
) -> None:
    """Show the variables of a space: values, conditions, risks, sources."""
    space = load_space(name)
    if json_output:
        parameters = [_plain(parameter) for parameter in space.parameters]
        print_json({**describe_space(space), "parameters": parameters})
        return
    print(f"{space.name} {space.version}: {space.summary}")
    meant = ", ".join([f"{space.library} {space.versions}", *space.operations])
    print(f"for {meant}; {format_many(space.count())} configurations")
    family, _ = split_preset(name)
    sizes = {family, f"{family}-quick", f"{family}-thorough"} - {name}
    if others := [other for other in list_presets() if other in sizes]:
        print(f"in other sizes: {', '.join(others)}")
    for name_, value in space.pinned.items():
        print(f"\n{name_}={value}\n    pinned: set in every run")
    for parameter in space.parameters:
        print("\n" + _described(parameter))
    for parameter in space.left_out.values():
        print(f"\n{_described(parameter)}\n    left out without opt_in: [{parameter.name}]")


def spaces_validate_command(
    files: Annotated[list[Path], typer.Argument(help="space files, or campaign files")],
    json_output: JsonOption = False,
) -> None:
    """Check space files."""
    validate_files(files, _counted, json_output=json_output)


def _counted(file: Path) -> str:
    space = _space_of(file)
    try:
        counted = f", {format_many(space.count())} configurations"
    except SpaceError as error:
        raise SpaceError(error.problem, file=file, hint=error.hint) from error
    return "\n  note: ".join([counted, *list_remarks(space)])
