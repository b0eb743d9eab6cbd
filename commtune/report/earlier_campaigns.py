"""Describes the outcome of configurations that earlier campaigns proposed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from commtune import formatting
from commtune.model import Configuration, Profile, Verdict


def describe_learned(learned: Mapping[Configuration, str], profiles: Iterable[Profile]) -> str:
    """Says which recommended profiles come from an earlier campaign; empty if none was tried.

    Args:
        learned: configurations that were tried first, with the campaign that found each best.
    """
    if not learned:
        return ""
    said = [
        f"{profile.name} is {found}"
        for profile in profiles
        if profile.verdict is Verdict.FASTER and (found := _origin(profile.configuration, learned))
    ]
    if said:
        return f"Tried first, from earlier campaigns: {', '.join(said)}."
    count = formatting.format_count(len(learned), "configuration")
    return f"Tried first, from earlier campaigns: {count}, of which none is recommended."


def _origin(configuration: Configuration, learned: Mapping[Configuration, str]) -> str:
    if configuration in learned:
        return f"what {learned[configuration]} found best"
    whole = (of for one, of in learned.items() if configuration.items() <= one.items())
    return next((f"a part of what {of} found best" for of in whole), "")
