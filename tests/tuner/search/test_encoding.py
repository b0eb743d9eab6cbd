"""How alike two values of a parameter are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.spaces.loading import list_presets, load_space
from commtune.tuner.search.encoding import Encoding, Matrix

SPACE = load_space("nccl-sockets")


def _alike(name: str, *values: str) -> Matrix:
    """How alike values of a parameter are."""
    encoding = Encoding(SPACE)
    number = [parameter.name for parameter in SPACE.parameters].index(name)
    places = [encoding.values[number].index(value) for value in values]
    return encoding.similarity[number][np.ix_(places, places)]


def test_words_are_like_themselves_and_numbers_like_their_neighbours() -> None:
    assert (_alike("NCCL_PROTO", "Simple", "LL", "^LL128") == np.eye(3)).all()
    found = _alike("NCCL_NTHREADS", "64", "128", "256", "512")
    assert found[0].tolist() == pytest.approx([math.exp(-0.75 * n) for n in range(4)])


def test_choices_of_a_group_are_alike_as_far_as_they_set_the_same() -> None:
    found = _alike("channels", "exactly-4", "exactly-8", "at-least-4", "at-most-8")
    assert np.diag(found) == pytest.approx(1)
    assert found[0, 1] == pytest.approx(math.exp(-0.6))  # neighbours of five in both variables
    assert found[0, 2] == pytest.approx(math.sqrt(0.5))
    assert found[2, 3] == 0


def test_a_digit_that_is_no_number_is_a_word() -> None:
    group = "{name: g, kind: group, choices: {a: {A: '²'}, b: {A: '2'}}}"
    (alike,) = Encoding(made_up_space(f"  - {group}\n")).similarity
    assert (alike[1:, 1:] == np.eye(2)).all()


@pytest.mark.parametrize("name", list_presets())
def test_likenesses_of_shipped_spaces_are_covariances(name: str) -> None:
    for alike in Encoding(load_space(name)).similarity:
        assert (alike == alike.T).all()
        assert np.linalg.eigvalsh(alike).min() > -1e-9
