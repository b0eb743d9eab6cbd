"""Drops idle values from configurations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from commtune.model import Configuration
from commtune.tuner.search.encoding import EncodedValue, Encoding


@dataclass(frozen=True)
class _Step:
    """How idle values of one parameter are dropped.

    Attributes:
        name, place: of the parameter, the place in rows.
        values: the idle ones, by their numbers.
        read: places of the parameters that decide what else is unset.
        known: places that are unset, by the values at these places.
    """

    name: str
    place: int
    values: Collection[int]
    read: Sequence[int]
    known: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


class Reduction:
    """Configurations without some idle values, cached."""

    def __init__(self, encoding: Encoding, idle: Iterable[EncodedValue]) -> None:
        self._encoding = encoding
        self._idle: dict[int, list[int]] = {}
        for owner, value in idle:
            self._idle.setdefault(owner, []).append(value)
        names = [parameter.name for parameter in encoding.space.parameters]
        place = {name: number for number, name in enumerate(names)}
        self._steps = [
            _Step(names[n], n, values, [place[m] for m in encoding.space.connected_to(names[n])])
            for n, values in self._idle.items()
        ]
        self._known: dict[Configuration, Configuration] = {}

    def reduce(self, configuration: Configuration) -> Configuration:
        """Returns a configuration without the idle values, except those that others need."""
        found = self._known.get(configuration)
        if found is None:
            row = self._drop_idle(self._encoding.row(configuration))
            found = self._known[configuration] = self._encoding.configuration(row)
        return found

    def _drop_idle(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Unsets idle values in turn, where that is legal and unsets no other parameter."""
        left = [*row]
        for step in self._steps:
            if left[step.place] not in step.values:
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
        return gone if all(row[n] in self._idle.get(n, ()) for n in gone) else []
