"""Configurations near a given one: without some parameters, or with one changed."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.model import Configuration
from commtune.spaces.space import Space


def parameter_units(space: Space, configuration: Configuration) -> dict[str, Configuration]:
    """Each parameter that the configuration sets, with the configuration that lacks it.

    A parameter whose absence is not legal by itself has no entry.
    """
    found = {}
    for name, value in space.assignment(configuration).items():
        if value is not None:
            lacking = without_parameters(space, configuration, [name])
            if lacking is not None:
                found[name] = lacking
    return found


def without_parameters(
    space: Space, configuration: Configuration, names: Sequence[str]
) -> Configuration | None:
    """A configuration without some parameters, and without those that need them; if legal."""
    whole = {**space.assignment(configuration), **dict.fromkeys(names)}
    lacking = space.configuration(space.consistent(whole))
    return lacking if lacking != configuration and not space.check(lacking) else None


def neighbour_configurations(space: Space, configuration: Configuration) -> list[Configuration]:
    """The legal configurations with another value of one parameter that is set, nearest first.

    Near is by the order of the values; nothing is unset, for that is what ablation tries.
    """
    whole = space.assignment(configuration)
    found: dict[Configuration, int] = {}
    for name, value in whole.items():
        if value is None:
            continue
        values = [v for v in space.by_name[name].values if v is not None]
        for other in values:
            changed = space.configuration(space.consistent({**whole, name: other}))
            if changed != configuration and not space.check(changed):
                found.setdefault(changed, abs(values.index(other) - values.index(value)))
    return sorted(found, key=lambda changed: (found[changed], changed.key))


def values_of(space: Space, configuration: Configuration, name: str) -> dict[str, str]:
    """The variables that a parameter sets in a configuration."""
    value = space.assignment(configuration)[name]
    return dict(space.configuration({name: value}))
