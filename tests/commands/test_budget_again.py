"""The command that ``tune`` proposes to go on with."""

from __future__ import annotations

import sys

import pytest

from commtune.commands.campaigns.tune import _again, _with_budget
from commtune.commands.options import database_flag

LARGER = ["--search", "5min", "--ablate", "2min", "--confirm", "3min"]


def test_a_larger_budget_takes_the_place_of_the_one_that_was_given() -> None:
    given = ["tune", "--search", "10s", "--sizes", "8", "--confirm=8s", "--name", "o1"]
    assert _with_budget(given) == ["tune", "--sizes", "8", "--name", "o1", *LARGER]
    assert _with_budget(["tune"]) == ["tune", *LARGER]
    assert _with_budget(["tune", "--search"]) == ["tune", *LARGER]


def test_a_budget_that_was_large_already_is_doubled() -> None:
    given = ["tune", "--search=20min", "--confirm", "3min", "--ablate", "119s"]
    assert _with_budget(given) == [
        "tune", "--search", "40min", "--ablate", "2min", "--confirm", "6min"
    ]  # fmt: skip


def test_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://ann:secret@host/name"
    monkeypatch.setattr(sys, "argv", ["commtune", "tune", "--db", url, f"--db={url}"])
    assert "secret" not in _again(None, None, url)
    assert database_flag(url) == " --db 'postgresql://ann:***@host/name'"
    assert database_flag(None) == ""
