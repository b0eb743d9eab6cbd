"""Finds the described system that this machine is, and drafts a description of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from commtune.cluster.machine.inventory import inspect_machine
from commtune.systems.detection.recognition import Match, look_alikes, recognize_system
from commtune.systems.detection.seen import Clues, SeenMachine
from commtune.systems.loading import list_systems, load_system

if TYPE_CHECKING:
    from commtune.systems.drafting.description import Draft


@dataclass(frozen=True)
class Detection:
    """The described systems that a machine may be.

    Attributes:
        certain: certain matches; several if descriptions have the same clues.
        alike: systems of the same shape, if there is no certain match.
        files: the user's own descriptions, as they were named, by the system's name.
        known: number of descriptions.
    """

    clues: Clues
    certain: list[Match]
    alike: list[Match]
    files: Mapping[str, str]
    known: int


def detect_system(names: Sequence[str] = (), seen: SeenMachine | None = None) -> Detection:
    """Finds the described system that a machine is.

    Args:
        names: paths of the user's own descriptions, which take precedence over shipped ones.
        seen: another machine; this one by default.
    """
    seen = seen or inspect_machine(os.environ)
    systems = {name: load_system(name) for name in list_systems()}
    files = {}
    for named in names:
        own = load_system(named)
        systems[own.name] = own
        files[own.name] = named
    certain = recognize_system(seen.clues, systems.values())
    alike = [] if certain else look_alikes(seen, systems.values())
    return Detection(seen.clues, certain, alike, files, len(systems))


def draft_system(name: str, partition: str = "") -> Draft:
    """Describes this machine as far as it shows itself (see ``draft_description``)."""
    # Imported here, because the detection of a system doesn't need templates.
    from commtune.systems.drafting.description import draft_description

    today = datetime.now(UTC).date()
    return draft_description(name, inspect_machine(os.environ), today, partition)
