"""Reads the stored settings of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from commtune.model import Configuration

#: The key of the name of the system's description.
DESCRIBED = "described"


def node_hours_budget(settings: Mapping[str, Any]) -> float | None:
    """Returns the limit on a campaign's node-hours; ``None`` without one."""
    found = settings.get("node_hours")
    return float(found) if isinstance(found, int | float) else None


def excluded_nodes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the nodes that the campaign's file excludes from all jobs."""
    slurm = settings.get("slurm") or {}
    return tuple(sorted(slurm.get("exclude") or ()))


def learned_configurations(settings: Mapping[str, Any]) -> dict[Configuration, str]:
    """Returns configurations that a campaign tried first, with the campaigns that proved them."""
    found = settings.get("learned") or ()
    return {Configuration(one["tried"]): str(one["campaign"]) for one in found}


def rename_verified(
    settings: Mapping[str, Any], rename: Callable[[str], str]
) -> Mapping[str, Any]:
    """Returns settings in which the campaign whose profile they verify, if any, is renamed."""
    campaign, _, profile = (settings.get("verifies") or "").partition("/")
    return {**settings, "verifies": f"{rename(campaign)}/{profile}"} if profile else settings
