"""The command that ``tune`` proposes to go on with."""

from __future__ import annotations

import sys

import pytest

from commtune.commands.campaigns.tune import _again
from commtune.commands.options import database_flag


def test_what_was_asked_for_is_proposed_with_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["commtune", "tune", "--sizes", "8, 64", "--search=10s"])
    command, words = _again(None, None, None).split("   ")
    assert command == "commtune tune --sizes '8, 64' --search=10s"
    assert words == "(with a larger --search and --confirm)"


def test_no_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://ann:secret@host/name"
    monkeypatch.setattr(sys, "argv", ["commtune", "tune", "--db", url, f"--db={url}"])
    assert "secret" not in _again(None, None, url)
    assert database_flag(url) == " --db 'postgresql://ann:***@host/name'"
    assert database_flag(None) == ""
