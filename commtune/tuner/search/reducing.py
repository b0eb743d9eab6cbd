"""Drops idle parameters from configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commtune.model import Configuration
from commtune.spaces.parameter import Value
from commtune.tuner.search.encoding import Encoding


class Reduction:
    """Configurations without some idle parameters, cached.

    Args:
        idle: names of the parameters.
    """

    def __init__(self, encoding: Encoding, idle: Sequence[str]) -> None:
        self._encoding, self._idle = encoding, idle
        free = encoding.space.independent.intersection(idle)
        self._unset_free: dict[str, Value] = dict.fromkeys(free)
        self._bound = [name for name in idle if name not in free]
        self._known: dict[Configuration, Configuration] = {}
        #: By values without the free parameters, in which many configurations agree.
        self._by_values: dict[tuple[Value, ...], Configuration] = {}

    def reduce(self, configuration: Configuration) -> Configuration:
        """Returns a configuration without the idle parameters, except those that others need."""
        found = self._known.get(configuration)
        if found is None:
            rest = self._encoding.assignment(configuration) | self._unset_free
            values = tuple(rest.values())
            if values not in self._by_values:
                self._by_values[values] = self._encoding.configuration(self._drop_bound(rest))
            found = self._known[configuration] = self._by_values[values]
        return found

    def _drop_bound(self, small: Mapping[str, Value]) -> Mapping[str, Value]:
        """Unsets one after the other what is legal to unset and takes no other with it."""
        for name in self._bound:
            if small.get(name) is None:
                continue
            lacking = self._encoding.space.unset_parameters(small, [name]) or small
            gone = {n for n in small if small[n] is not None and lacking.get(n) is None}
            small = lacking if gone.issubset(self._idle) else small
        return small
