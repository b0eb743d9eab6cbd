"""Encodes configurations as rows of integers, and the similarity of a parameter's values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from commtune.model import Configuration
from commtune.spaces.parameter import Kind, Parameter, Value
from commtune.spaces.space import Space

#: Configurations x parameters: 0 for unset, else the number of the value, from 1.
Rows = NDArray[np.intp]
Matrix = NDArray[np.float64]
#: A value of a parameter, by the numbers of both.
EncodedValue = tuple[int, int]


class Encoding:
    """The rows of a space's configurations; the default is the row of zeros.

    Attributes:
        values: of each parameter, ``None`` (unset) first.
        encoded_values: all but unset, parameter by parameter.
        similarity: of each parameter's values, from 0 to 1.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.values = [
            (None, *(value for value in parameter.values if value is not None))
            for parameter in space.parameters
        ]
        self.encoded_values = [
            (owner, n) for owner, known in enumerate(self.values) for n in range(1, len(known))
        ]
        self._places = [{value: n for n, value in enumerate(known)} for known in self.values]
        self._settings = [
            [parameter.environment(value) for value in known]
            for parameter, known in zip(space.parameters, self.values, strict=True)
        ]
        self.similarity = [_value_similarity(parameter) for parameter in space.parameters]
        self._seen: dict[Configuration, tuple[int, ...]] = {}

    def rows(self, configurations: Iterable[Configuration]) -> Rows:
        """Encodes configurations, one row for each."""
        found = [self.row(configuration) for configuration in configurations]
        return np.array(found, dtype=np.intp).reshape(len(found), len(self.values))

    def row(self, configuration: Configuration) -> tuple[int, ...]:
        """Encodes a configuration."""
        found = self._seen.get(configuration)
        if found is None:
            found = self.encode(self.space.assignment(configuration))
            self._seen[configuration] = found
        return found

    def encode(self, assignment: Mapping[str, Value]) -> tuple[int, ...]:
        """Encodes an assignment; parameters that it doesn't name are unset."""
        places = zip(self.space.parameters, self._places, strict=True)
        return tuple(numbers[assignment.get(parameter.name)] for parameter, numbers in places)

    def configuration(self, row: tuple[int, ...]) -> Configuration:
        """Returns the configuration of a row, in which inactive parameters are unset."""
        environment: dict[str, str] = {}
        for settings, place in zip(self._settings, row, strict=True):
            environment |= settings[place]
        found = Configuration(environment)
        self._seen.setdefault(found, row)
        return found

    def assignment_of(self, row: Iterable[int]) -> dict[str, Value]:
        """Decodes a row; parameters that can't be active there are unset."""
        return self.space.consistent(self.decode(row))

    def decode(self, row: Iterable[int]) -> dict[str, Value]:
        """Returns the values of all parameters."""
        places = zip(self.space.parameters, self.values, row, strict=True)
        return {parameter.name: values[place] for parameter, values, place in places}


def _value_similarity(parameter: Parameter) -> Matrix:
    """Returns the similarity of a parameter's values, unset first, as a matrix.

    Equal values have 1. Ordered ones have less with their distance, others 0. Choices of a group
    are similar as far as they set the same variables to similar values. Unset has 0 even to
    itself, since the effect of a value is that against leaving the variable unset.
    """
    settings = [parameter.settings[value] for value in parameter.values if value is not None]
    found = np.zeros((len(settings) + 1, len(settings) + 1))
    for name in parameter.variables:
        texts = [setting.get(name) for setting in settings]
        known = list(dict.fromkeys(text for text in texts if text is not None))
        ordered = parameter.ordered
        if parameter.kind is Kind.GROUP and all(map(str.isdecimal, known)):
            known, ordered = sorted(known, key=int), True
        places = np.array([math.nan if text is None else known.index(text) for text in texts])
        apart = np.abs(np.subtract.outer(places, places))
        similarity = np.exp(-3.0 * apart / max(3, len(known))) if ordered else 1.0 * (apart == 0)
        found[1:, 1:] += np.nan_to_num(similarity)
    counts = np.array([1, *map(len, settings)])
    even: Matrix = found / np.sqrt(np.outer(counts, counts))
    return even
