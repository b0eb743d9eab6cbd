"""Drops idle parameters from configurations."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.model import Configuration
from commtune.tuner.search.encoding import Encoding


class Reduction:
    """Configurations without some idle parameters, cached.

    Args:
        idle: names of the parameters.
    """

    def __init__(self, encoding: Encoding, idle: Sequence[str]) -> None:
        self._encoding, self._idle = encoding, idle
        independent = encoding.space.independent
        names = [parameter.name for parameter in encoding.space.parameters]
        self._free = [names.index(name) for name in idle if name in independent]
        self._bound = [name for name in idle if name not in independent]
        self._known: dict[Configuration, Configuration] = {}
        #: By rows without the free parameters, in which many configurations agree.
        self._by_row: dict[tuple[int, ...], Configuration] = {}

    def reduce(self, configuration: Configuration) -> Configuration:
        """Returns a configuration without the idle parameters, except those that others need."""
        found = self._known.get(configuration)
        if found is None:
            places = [*self._encoding.row(configuration)]
            for n in self._free:
                places[n] = 0
            row = tuple(places)
            if row not in self._by_row:
                self._by_row[row] = self._encoding.configuration(self._drop_bound(row))
            found = self._known[configuration] = self._by_row[row]
        return found

    def _drop_bound(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Unsets one after the other what is legal to unset and takes no other with it."""
        whole = small = self._encoding.decode(row)
        for name in self._bound:
            if small.get(name) is None:
                continue
            lacking = self._encoding.space.unset_parameters(small, [name]) or small
            gone = {n for n in small if small[n] is not None and lacking.get(n) is None}
            small = lacking if gone.issubset(self._idle) else small
        return row if small is whole else self._encoding.encode(small)
