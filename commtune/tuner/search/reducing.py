"""Drops idle parameters from configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from commtune.model import Configuration
from commtune.tuner.search.encoding import Encoding


@dataclass(frozen=True)
class _Step:
    """How one idle parameter is dropped.

    Attributes:
        name, place: of the parameter, the place in rows.
        read: places of the parameters that decide what else is unset.
        known: places that are unset, by the values at these places.
    """

    name: str
    place: int
    read: Sequence[int]
    known: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


class Reduction:
    """Configurations without some idle parameters, cached.

    Args:
        idle: names of the parameters.
    """

    def __init__(self, encoding: Encoding, idle: Sequence[str]) -> None:
        self._encoding = encoding
        place = {p.name: number for number, p in enumerate(encoding.space.parameters)}
        self._idle = {place[name] for name in idle}
        self._steps = [
            _Step(name, place[name], [place[n] for n in encoding.space.connected_to(name)])
            for name in idle
        ]
        self._known: dict[Configuration, Configuration] = {}

    def reduce(self, configuration: Configuration) -> Configuration:
        """Returns a configuration without the idle parameters, except those that others need."""
        found = self._known.get(configuration)
        if found is None:
            row = self._drop_idle(self._encoding.row(configuration))
            found = self._known[configuration] = self._encoding.configuration(row)
        return found

    def _drop_idle(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Unsets idle parameters in turn, where that is legal and unsets no other parameter."""
        left = [*row]
        for step in self._steps:
            if not left[step.place]:
                continue
            values = tuple([left[n] for n in step.read])
            if values not in step.known:
                step.known[values] = self._find_unset(step.name, left)
            for n in step.known[values]:
                left[n] = 0
        return tuple(left)

    def _find_unset(self, name: str, row: Sequence[int]) -> list[int]:
        """Finds the places that are unset along with a parameter; none if it can't be dropped."""
        lacking = self._encoding.space.unset_parameters(self._encoding.decode(row), [name])
        if lacking is None:
            return []
        small = self._encoding.encode(lacking)
        gone = [place for place, value in enumerate(row) if value != small[place]]
        return gone if self._idle.issuperset(gone) else []
