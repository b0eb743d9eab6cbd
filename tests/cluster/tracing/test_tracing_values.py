"""Whether what a library holds is what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from commtune.cluster.tracing.library import holds_value

_TRUTH = {"kind": "integer", "value": "1", "word": "true", "words": ["false", "true"]}
_ALGORITHM = {"kind": "integer", "value": "4", "word": "ring", "words": ["ignore", "ring", "tree"]}


def _integer(value: str) -> dict[str, Any]:
    return {"kind": "integer", "value": value}


@pytest.mark.parametrize(
    ("asked", "control", "same"),
    [
        ("4096", _integer("4096"), True),
        ("0x1000", _integer("4096"), True),
        (" 4096", _integer("4096"), True),
        ("4096", _integer("64"), False),
        ("-1", _integer("64"), None),  # -1 and 0 mean: choose
        ("0", _integer("64"), None),
        ("010", _integer("8"), None),  # eight or ten
        ("4k", _integer("4096"), None),  # this library reads no suffixes, or does it
        ("auto", _integer("3"), None),
        ("inf", _integer("3"), None),
        ("", _integer("3"), None),
        ("yes", _integer("1"), True),
        ("no", _integer("1"), False),
        ("disable", _integer("1"), False),
        ("yes", _integer("7"), None),
        ("true", _TRUTH, True),
        ("yes", _TRUTH, True),
        ("1", _TRUTH, True),
        ("false", _TRUTH, False),
        ("ring", _ALGORITHM, True),
        ("RING", _ALGORITHM, True),
        ("4", _ALGORITHM, True),
        ("tree", _ALGORITHM, False),
        ("rabenseifner", _ALGORITHM, None),
        ("5", _ALGORITHM, False),
        ("0.5", {"kind": "number", "value": "0.5"}, True),
        ("5e-1", {"kind": "number", "value": "0.5"}, True),
        ("0.25", {"kind": "number", "value": "0.5"}, False),
        ("self,sm", {"kind": "text", "value": "self,sm"}, True),
        ("self, sm", {"kind": "text", "value": "self,sm"}, True),
        ("~/x", {"kind": "text", "value": "/home/me/x"}, None),
        ("1", {"kind": "unreadable", "value": ""}, None),
    ],
)
def test_types_are_known_and_doubt_is_doubt(
    asked: str, control: dict[str, Any], same: bool | None
) -> None:
    assert holds_value(asked, control) is same


@pytest.mark.parametrize(
    ("asked", "same"), [("4k", True), ("4K", True), ("1m", False), ("k", None), ("4kb", None)]
)
def test_suffixes(asked: str, same: bool | None) -> None:
    assert holds_value(asked, _integer("4096"), suffixes=True) is same
