"""Described systems and this machine: which one it is, and a first description of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from commtune.cluster.machine.inventory import inspect_machine
from commtune.systems.detection import recognition
from commtune.systems.detection.recognition import FactComparison, compare_machine
from commtune.systems.detection.seen import SeenMachine
from commtune.systems.drafting.description import Draft, draft_description
from commtune.systems.loading import list_systems, load_system
from commtune.systems.schema import System


@dataclass(frozen=True)
class HeldAgainst:
    """A description, and how the machine stands to it.

    Attributes:
        is_it: whether the machine was recognized as this system.
        by: by what; or what looks alike.
        named: what the user called it by; empty for a shipped one that was found.
    """

    system: System
    is_it: bool
    by: tuple[str, ...]
    named: str
    facts: tuple[FactComparison, ...]


@dataclass(frozen=True)
class Detection:
    """Which described system a machine is.

    Attributes:
        certain: what it is; several where descriptions name the same things.
        alike: what only has the same shape, where nothing is certain.
        held: what the machine is held against: what it is, what was named, else what is alike.
        known: number of descriptions.
    """

    seen: SeenMachine
    certain: list[recognition.Match]
    alike: list[recognition.Match]
    held: list[HeldAgainst]
    known: int


def detect_system(names: Sequence[str] = (), seen: SeenMachine | None = None) -> Detection:
    """Finds the described system that a machine is, and where it differs.

    Args:
        names: descriptions of the user's own, by path, or shipped ones, to be held against
            whether or not they are recognized.
        seen: another machine than this one.
    """
    seen = seen or inspect_machine(os.environ)
    own = {name: load_system(name) for name in names}
    mine = {system.name for system in own.values()}
    known = [*own.values(), *(load_system(name) for name in list_systems() if name not in mine)]
    certain = recognition.surest_matches(recognition.recognize_system(seen.clues, known))
    alike = [] if certain else recognition.look_alikes(seen, known)
    asked = {id(system): name for name, system in own.items()}
    by = {id(match.system): match.by for match in (*certain, *alike)}
    recognized = [match.system for match in certain]
    chosen = [*recognized, *(system for system in own.values() if system not in recognized)]
    held = [
        HeldAgainst(
            system=system,
            is_it=system in recognized,
            by=by.get(id(system), ()),
            named=asked.get(id(system), ""),
            facts=tuple(compare_machine(seen, system)),
        )
        for system in chosen or [match.system for match in alike]
    ]
    return Detection(seen, certain, alike, held, len(known))


def draft_system(name: str, partition: str = "") -> Draft:
    """Describes this machine as far as it shows itself (see ``draft_description``)."""
    today = datetime.now(UTC).date()
    return draft_description(name, inspect_machine(os.environ), today, partition)
