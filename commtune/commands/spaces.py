"""``commtune spaces``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from commtune.commands import text
from commtune.errors import CommtuneError, SpaceError
from commtune.spaces import Parameter, Space, condition_text, load_document, load_space, presets
from commtune.tuner.campaign_file import load_campaign

_WIDTH = 96
_MANY = 10**12


def show_all(*, json_output: bool) -> None:
    """Prints the presets."""
    spaces = [load_space(name) for name in presets()]
    if json_output:
        print(json.dumps([_brief(space) for space in spaces], indent=2))
        return
    rows = [
        (s.name, s.library, s.versions, str(len(s.parameters)), _counted(s), s.summary)
        for s in spaces
    ]
    header = ("space", "library", "versions", "variables", "configurations", "for")
    print(text.columns(header, rows, right="variables,configurations"))


def _counted(space: Space) -> str:
    """How many configurations there are; of very many, only about."""
    number = space.count()
    return f"{number:,}" if number < _MANY else f"{number:.1e}"


def show(name: str, *, json_output: bool) -> None:
    """Prints a space, by preset name or path."""
    space = _load(name)
    if json_output:
        parameters = [_plain(parameter) for parameter in space.parameters]
        print(json.dumps({**_brief(space), "parameters": parameters}, indent=2))
        return
    print(f"{space.name} {space.version}: {space.summary}")
    print(f"for {space.library} {space.versions}; {_counted(space)} configurations")
    for name_, value in space.pinned.items():
        print(f"\n{name_}={value}\n    pinned: set in every run")
    for parameter in space.parameters:
        print("\n" + _described(parameter))
    for parameter in space.left_out.values():
        print(f"\n{_described(parameter)}\n    left out without opt_in: [{parameter.name}]")


def validate(files: list[Path], *, json_output: bool) -> None:
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
        "condition": condition_text(parameter),
        "risks": [str(risk) for risk in parameter.risks],
        "source": parameter.source,
        "note": parameter.note,
    }


def _described(parameter: Parameter) -> str:
    values = ", ".join("unset" if value is None else value for value in parameter.values)
    lines = [f"{parameter.name} ({parameter.kind})", f"    {_shortened(values)}"]
    if len(parameter.variables) > 1:
        lines.append(f"    sets {', '.join(parameter.variables)}")
    if condition := condition_text(parameter):
        lines.append(f"    only when {condition}")
    if parameter.risks:
        lines.append(f"    danger: {', '.join(parameter.risks)}")
    if parameter.note:
        lines.append(f"    {' '.join(parameter.note.split())}")
    lines.append(f"    source: {parameter.source}")
    return "\n".join(lines)


def _shortened(values: str) -> str:
    return values if len(values) <= _WIDTH else f"{values[: _WIDTH - 4]} ..."
