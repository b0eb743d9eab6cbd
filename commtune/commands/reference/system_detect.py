"""``commtune systems detect``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from commtune import formatting as text
from commtune.app.systems import Detection, HeldAgainst, detect_system
from commtune.commands.options import JsonOption, called_as
from commtune.systems.detection.recognition import FactComparison, FactVerdict
from commtune.systems.loading import list_systems

#: Exit code where the machine is none of the described ones.
#: The same as where the database has no answer (``errors.NoAnswer``).
_NOT_RECOGNIZED = 4
#: Verdicts that are to be seen in a long table.
_WORDS = {FactVerdict.DIFFERS: "DIFFERS"}


def print_detection(found: Detection, *, json_output: bool, program: str) -> None:
    """Says which described system a machine is; exits with 4 if it is none."""
    if json_output:
        print(json.dumps(_plain(found), indent=2))
    else:
        _say(found, program)
    if not found.certain:
        sys.exit(_NOT_RECOGNIZED)


def _plain(found: Detection) -> dict[str, Any]:
    return {
        "recognized": [match.system.name for match in found.certain],
        "host": found.seen.clues.host,
        "cluster": found.seen.clues.cluster,
        "systems": [
            {
                "name": one.system.name,
                "recognized": one.is_it,
                "by": list(one.by),
                "retired": one.system.retired,
                "facts": [asdict(fact) for fact in one.facts],
            }
            for one in found.held
        ],
    }


def _say(found: Detection, program: str) -> None:
    clues, certain, held = found.seen.clues, found.certain, found.held
    for one in (one for one in held if one.is_it):
        file = f" ({one.named})" if one.named else ""
        print(f"this is {one.system.name}{file}, by {_and(one.by)}")
        if one.system.retired:
            print(f"  which has been out of service since {one.system.retired}")
    if len(certain) > 1:
        print("  these descriptions name the same things: the facts below tell them apart")
    if not certain:
        where = f" (Slurm's cluster {clues.cluster})" if clues.cluster else ""
        print(
            f"not recognized: {clues.host}{where} is none of the {found.known} described systems"
        )
    for match in found.alike:
        print(f"looks like {match.system.name}, with {_and(match.by)}; others have such nodes too")
    for one in held[: max(1, len(certain) + sum(bool(h.named) for h in held))]:
        _show(one)
    facts = [fact for one in held if one.is_it for fact in one.facts]
    differing = {fact.what for fact in facts if fact.verdict is FactVerdict.DIFFERS}
    if differing & {"GPU model", "GPUs"}:
        print("\nits GPUs differ: another kind of node, or another machine of the same name")
    print(f"\n{_next(found, program)}")


def _show(one: HeldAgainst) -> None:
    print(f"\ncompared with {one.named or one.system.name}, facts checked {one.system.checked}")
    together = _unseen_together(one.facts)
    rows = [
        (fact.what, fact.described, fact.found, _WORDS.get(fact.verdict, str(fact.verdict)))
        for fact in one.facts
        if fact.verdict is not FactVerdict.UNSEEN or fact.found not in together
    ]
    if rows:
        print(text.format_table(("what", "described", "here", "result"), rows))
    for why, names in together.items():
        print(f"{why}; so not seen: {', '.join(names)}")
    counts = Counter(fact.verdict for fact in one.facts)
    agree, differ = counts[FactVerdict.AGREES], counts[FactVerdict.DIFFERS]
    print(
        f"{agree} agree{'s' if agree == 1 else ''}, {differ} differ{'s' if differ == 1 else ''}, "
        f"{counts[FactVerdict.UNSEEN]} can't be seen here"
    )


def _unseen_together(facts: Sequence[FactComparison]) -> dict[str, list[str]]:
    """What can't be seen for one and the same reason, where that is more than one fact."""
    by_reason: dict[str, list[str]] = {}
    for fact in facts:
        if fact.verdict is FactVerdict.UNSEEN:
            by_reason.setdefault(fact.found, []).append(fact.what)
    return {why: names for why, names in by_reason.items() if len(names) > 1}


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _next(found: Detection, program: str) -> str:
    """What to type now."""
    certain, held = found.certain, found.held
    if certain:
        name = next((one.named for one in held if one.is_it and one.named), certain[0].system.name)
        return f"'system: {name}' in a campaign file uses it; {program} systems show {name}"
    named = [one.named for one in held if one.named not in ("", *list_systems())]
    if named:
        return f"if it is that system, add what identifies it under 'recognized' in {named[0]}"
    return f"describe it: {program} systems new NAME -o NAME.yaml"


def systems_detect_command(
    descriptions: Annotated[
        list[str] | None, typer.Argument(help="your own files (./my-system.yaml) to compare with")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Find the description that matches this machine, and where it differs."""
    found = detect_system(descriptions or ())
    print_detection(found, json_output=json_output, program=called_as())
