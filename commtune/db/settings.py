"""What the stored settings of a campaign say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.model import Configuration

#: Key that holds the name of the system's description.
DESCRIBED = "described"


def node_hours_budget(settings: Mapping[str, Any]) -> float | None:
    """How many node-hours a campaign may use, by its settings; ``None`` without a limit."""
    found = settings.get("node_hours")
    return float(found) if isinstance(found, int | float) else None


def excluded_nodes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Nodes that the campaign's file leaves out of all jobs."""
    slurm = settings.get("slurm") or {}
    return tuple(sorted(slurm.get("exclude") or ()))


def learned_configurations(settings: Mapping[str, Any]) -> dict[Configuration, str]:
    """What a campaign tried first, as an earlier one had found it best, and the name of that."""
    found = settings.get("learned") or ()
    return {Configuration(one["tried"]): str(one["campaign"]) for one in found}
