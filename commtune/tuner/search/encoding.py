"""Configurations as rows of numbers, and how alike two values of a parameter are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from commtune.model import Configuration
from commtune.spaces.parameter import Kind, Parameter
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
        """Encodes configurations, one row for each."""
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
    """How alike two values are: 1 for equal ones, 0 for all else but neighbours in an order.

    Choices of a group are alike as far as they set the same variables to like values. Unset is
    unlike itself too: what a variable does is told from leaving it unset.
    """
    settings = [parameter.settings[value] for value in parameter.values if value is not None]
    found = np.zeros((len(settings) + 1, len(settings) + 1))
    for name in parameter.variables:
        texts = [setting.get(name) for setting in settings]
        known = list(dict.fromkeys(text for text in texts if text is not None))
        ordered = parameter.ordered
        if parameter.kind is Kind.GROUP and all(map(str.isdigit, known)):
            known, ordered = sorted(known, key=int), True
        places = np.array([math.nan if text is None else known.index(text) for text in texts])
        apart = np.abs(np.subtract.outer(places, places))
        alike = np.exp(-3.0 * apart / max(3, len(known))) if ordered else 1.0 * (apart == 0)
        found[1:, 1:] += np.nan_to_num(alike)
    counts = np.array([1, *map(len, settings)])
    even: Matrix = found / np.sqrt(np.outer(counts, counts))
    return even
