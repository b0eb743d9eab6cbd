"""What each type of a stored value lets pass, one value at a time and a column at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from commtune.db.checked_values import (
    Level,
    Moment,
    Seconds,
    Time,
    check_document,
    check_of,
    column_check_of,
    interval_problem,
    is_document,
)
from commtune.model import Outcome


@dataclass
class _Closed:
    name: str
    size: int = 0


class _Open(TypedDict, total=False):
    note: str


_SOUND: list[tuple[Any, Any]] = [
    (int, 5),
    (float, 5),
    (float, 0.5),
    (bool, True),
    (bool, 1),
    (str, "x"),
    (bytes, b"\x00"),
    (int | None, None),
    (Any, ...),
    (Outcome, "ok"),
    (Moment, 0),
    (Moment, 253402300800.0),
    (Seconds, 0.0),
    (Seconds, 1e9),
    (Time, 1e-10),
    (Time, 1e9),
    (Level, 0.95),
    (Level, 1 - 1e-15),
    (list[int], []),
    (list[int], [1, 2]),
    (tuple[float, ...], [1.0]),
    (int | str, "x"),
    (Mapping[str, int], {"a": 1}),
    (_Closed, {"name": "x"}),
    (_Closed, {"name": "x", "size": 2}),
    (_Open, {}),
    (_Open, {"note": "x", "more": 1}),
    (_Open, {"note": None}),
]
_DAMAGED: list[tuple[Any, Any, str]] = [
    (int, "5", "'5' is not a whole number"),
    (int, True, "True is not a whole number"),
    (int, None, "None is not a whole number"),
    (float, "x" * 50, f"'{'x' * 39}... is not a number"),
    (float, math.nan, "not a number"),
    (bool, 2, "2 is not true or false"),
    (str, 5, "5 is not text"),
    (str, "\udcff", r"no UTF-8 text: '\udcff'"),
    (Outcome, "none", "'none' is no outcome"),
    (Outcome, 5, "5 is no outcome"),
    (Moment, -0.5, "-0.5 is no moment"),
    (Moment, 253402300801, "253402300801 is no moment"),
    (Seconds, -1e-9, "-1e-09 is no seconds"),
    (Seconds, math.inf, "inf is no seconds"),
    (Time, 0, "0 is no time"),
    (Time, 9e-11, "9e-11 is no time"),
    (Level, 95, "95 is no level"),
    (Level, 0, "0 is no level"),
    (Level, 1.0, "1.0 is no level"),
    (list[int], {"a": 1}, "{'a': 1} is not a list"),
    (list[int], 5, "5 is not a list"),
    (list[int], [1, "2"], "'2' is not a whole number"),
    (Mapping[str, int], [1], "[1] is not an object"),
    (Mapping[str, int], {"a": "1"}, "a: '1' is not a whole number"),
    (_Closed, [], "[] is not an object"),
    (_Closed, {"size": 1}, "lacks name"),
    (_Closed, {"name": "x", "more": 1}, "unknown key 'more'"),
    (_Closed, {"name": 1}, "name: 1 is not text"),
    (_Open, {"note": 1}, "note: 1 is not text"),
]


@pytest.mark.parametrize(("hint", "value"), _SOUND, ids=str)
def test_sound_values_pass(hint: Any, value: Any) -> None:
    assert check_of(hint)(value) == ""


@pytest.mark.parametrize(("hint", "value", "words"), _DAMAGED, ids=lambda one: ascii(one)[:40])
def test_damaged_values_are_named(hint: Any, value: Any, words: str) -> None:
    assert check_of(hint)(value) == words
    # Whatever is wrong, the quick check of a column sends it to the one that tells what.
    assert not column_check_of(hint)([value])


def test_a_column_of_sound_numbers_and_words_needs_no_second_look() -> None:
    columns: list[tuple[Any, list[Any]]] = [
        (int, [1, 2]),
        (bool, [0, True]),
        (str, ["x"]),
        (Outcome, ["ok", "crashed"]),
        (Seconds, [0, 1e9]),
        (Moment, [0.0, 253402300800.0]),
        (Time, [1e-10, 1e9]),
        (Level, [0.95, 0.999]),
        (float, []),
        (int | None, [None, 1]),
    ]
    for hint, values in columns:
        assert column_check_of(hint)(values), hint


def test_documents_are_read_as_far_as_they_can_be() -> None:
    assert check_document("[1]", list[int]) == ([1], "")
    assert check_document([1], list[int]) == ([1], "")
    assert check_document("[1", list[int]) == (None, "broken JSON: '[1'")
    assert check_document("[" * 100_000, list[int])[1].startswith("broken JSON: '[[[")
    assert check_document('"\udcff"', str) == (None, r"""no UTF-8 text: '"\udcff"'""")


def test_which_columns_are_stored_as_json() -> None:
    assert all(map(is_document, [list[int], Mapping[str, int], _Closed, _Open, list[int] | None]))
    assert not any(map(is_document, [Any, int, str, Time, Outcome, int | None, Outcome | None]))


@pytest.mark.parametrize(
    ("low", "ratio", "high", "problem"),
    [
        (0.0, 1.0, math.inf, ""),
        (1.1, 1.1, 1.1, ""),
        (-0.1, 1.0, 1.2, "1.0 is not in an interval from -0.1 to 1.2"),
        (1.2, 1.1, 1.3, "1.1 is not in an interval from 1.2 to 1.3"),
        (1.2, 1.4, 1.3, "1.4 is not in an interval from 1.2 to 1.3"),
        (0.0, 0.0, 1.3, "0.0 is not in an interval from 0.0 to 1.3"),
        (1.0, math.inf, math.inf, "inf is not in an interval from 1.0 to inf"),
    ],
)
def test_a_ratio_is_in_its_interval(low: float, ratio: float, high: float, problem: str) -> None:
    assert interval_problem({"low": low, "ratio": ratio, "high": high}) == problem
