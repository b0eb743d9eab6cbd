"""``commtune systems detect``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from commtune.app.systems import Detection, detect_system
from commtune.commands.options import JsonOption, called_as, print_json
from commtune.systems.loading import list_systems

#: Exit code where the machine is none of the described ones.
#: The same as where the database has no answer (``errors.NoAnswer``).
_NOT_RECOGNIZED = 4


def _print_detection(found: Detection, *, json_output: bool) -> None:
    """Says which described system a machine is; exits with 4 if it is none."""
    if json_output:
        print_json(_plain(found))
    else:
        _say(found)
    if not found.certain:
        sys.exit(_NOT_RECOGNIZED)


def _plain(found: Detection) -> dict[str, Any]:
    return {
        "recognized": [match.system.name for match in found.certain],
        "host": found.clues.host,
        "cluster": found.clues.cluster,
        "systems": [
            {
                "name": match.system.name,
                "recognized": match in found.certain,
                "by": list(match.by),
                "retired": match.system.retired,
            }
            for match in (*found.certain, *found.alike)
        ],
    }


def _say(found: Detection) -> None:
    for match in found.certain:
        system = match.system
        file = f" ({found.files[system.name]})" if system.name in found.files else ""
        print(f"this is {system.name}{file}, by {_and(match.by)}")
        if system.retired:
            print(f"  which has been out of service since {system.retired}")
    if not found.certain:
        clues = found.clues
        where = f" (Slurm's cluster {clues.cluster})" if clues.cluster else ""
        print(
            f"not recognized: {clues.host}{where} is none of the {found.known} described systems"
        )
    for match in found.alike:
        print(f"looks like {match.system.name}, with {_and(match.by)}; others have such nodes too")
    print(f"\n{_next(found)}")


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _next(found: Detection) -> str:
    """What to type now."""
    program = called_as()
    if len(found.certain) > 1:
        return f"these descriptions name the same things; {program} systems show NAME tells more"
    for match in found.certain:
        name = found.files.get(match.system.name, match.system.name)
        return f"'system: {name}' in a campaign file uses it; {program} systems show {name}"
    named = [file for file in found.files.values() if file not in list_systems()]
    if named:
        return f"if it is that system, add what identifies it under 'recognized' in {named[0]}"
    return f"describe it: {program} systems new NAME -o NAME.yaml"


def systems_detect_command(
    descriptions: Annotated[
        list[str] | None, typer.Argument(help="your own files, too (./my-system.yaml)")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Find the description that matches this machine."""
    _print_detection(detect_system(descriptions or ()), json_output=json_output)
