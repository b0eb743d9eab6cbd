"""How alike two values of a parameter are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from commtune.documents.yaml_document import parse_document
from commtune.spaces.loading import build_space, list_presets, load_space
from commtune.tuner.search.encoding import Encoding, Matrix

SPACE = build_space(
    parse_document(
        """
space: 1
name: made-up
version: 1
library: made-up
parameters:
  - {name: WORD, kind: choice, values: [a, b, c], source: made up}
  - {name: NUMBER, kind: integer, values: [1, 2, 4, 8], source: made up}
  - name: channels
    kind: group
    source: made up
    choices:
      exactly-4: {LEAST: 4, MOST: 4}
      exactly-8: {LEAST: 8, MOST: 8}
      at-least-4: {LEAST: 4}
      at-most-8: {MOST: 8}
      by-name: {HOW: ring}
"""
    )
)


def _alike(name: str) -> Matrix:
    """Of a parameter's values, unset left out."""
    encoding = Encoding(SPACE)
    names = [parameter.name for parameter in SPACE.parameters]
    return encoding.alike[names.index(name)][1:, 1:]


def test_words_are_like_themselves_and_numbers_like_their_neighbours() -> None:
    assert (_alike("WORD") == np.eye(3)).all()
    assert _alike("NUMBER")[0].tolist() == pytest.approx([math.exp(-0.75 * n) for n in range(4)])


def test_choices_of_a_group_are_alike_as_far_as_they_set_the_same() -> None:
    found = _alike("channels")
    exactly_4, exactly_8, at_least_4, at_most_8, by_name = range(5)
    assert np.diag(found) == pytest.approx(1)
    assert found[exactly_4, exactly_8] == pytest.approx(math.exp(-1))
    assert found[exactly_4, at_least_4] == pytest.approx(math.sqrt(0.5))
    assert found[at_least_4, at_most_8] == 0
    assert found[by_name].tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("name", list_presets())
def test_likenesses_of_shipped_spaces_are_covariances(name: str) -> None:
    for alike in Encoding(load_space(name)).alike:
        assert (alike == alike.T).all()
        assert np.linalg.eigvalsh(alike).min() > -1e-9
