"""Configurations as rows of numbers, and how alike two values of a parameter are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from commtune.model import Configuration
from commtune.spaces.parameter import Parameter
from commtune.spaces.space import Space

#: One row a configuration, one column a parameter: 0 for unset, else the place of its value.
Rows = NDArray[np.intp]
Matrix = NDArray[np.float64]


class Encoding:
    """Rows of a space's configurations; the default is the row of zeros."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.values = [
            (None, *(value for value in parameter.values if value is not None))
            for parameter in space.parameters
        ]
        self._places = [{value: n for n, value in enumerate(known)} for known in self.values]
        self.alike = [_likeness(parameter) for parameter in space.parameters]
        self._seen: dict[Configuration, tuple[int, ...]] = {}

    def rows(self, configurations: Iterable[Configuration]) -> Rows:
        """One row for each configuration."""
        found = [self._row(configuration) for configuration in configurations]
        return np.array(found, dtype=np.intp).reshape(len(found), len(self.values))

    def _row(self, configuration: Configuration) -> tuple[int, ...]:
        if configuration not in self._seen:
            self._seen[configuration] = self.row_of(self.space.assignment(configuration))
        return self._seen[configuration]

    def assignment(self, configuration: Configuration) -> dict[str, str | None]:
        """As the space's own, of which known rows need no check."""
        places = zip(self.space.parameters, self.values, self._row(configuration), strict=True)
        return {parameter.name: values[place] for parameter, values, place in places}

    def row_of(self, assignment: Mapping[str, str | None]) -> tuple[int, ...]:
        """The row of an assignment; what it doesn't name is unset."""
        return tuple(
            places[assignment.get(parameter.name)]
            for parameter, places in zip(self.space.parameters, self._places, strict=True)
        )

    def assignment_of(self, row: Iterable[int]) -> dict[str, str | None]:
        """The legal assignment of a row: what can't be active there is unset."""
        return self.space.consistent(
            {
                parameter.name: values[place]
                for parameter, values, place in zip(
                    self.space.parameters, self.values, row, strict=True
                )
            }
        )


def _likeness(parameter: Parameter) -> Matrix:
    """1 for equal values, less for neighbours in an order, 0 for all else.

    Unset is unlike itself too: what a variable does is told from leaving it unset.
    """
    places = np.arange(len([value for value in parameter.values if value is not None]))
    apart = np.abs(places[:, None] - places[None, :])
    alike = np.exp(-3.0 * apart / max(3, len(places))) if parameter.ordered else apart == 0
    found = np.zeros((len(places) + 1, len(places) + 1))
    found[1:, 1:] = alike
    return found
