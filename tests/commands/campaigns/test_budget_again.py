"""The command that ``tune`` proposes to go on with."""

from __future__ import annotations

from commtune.commands.campaigns.tune import _again
from commtune.commands.options import called_as, database_flag


def test_what_was_asked_for_is_proposed_again() -> None:
    command = _again(None, None, None, ["tune", "--sizes", "8, 64"])
    assert command == f"{called_as()} tune --sizes '8, 64'"


def test_no_password_is_shown() -> None:
    url = "postgresql://ann:secret@host/name"
    assert "secret" not in _again(None, None, url, ["tune", "--db", url, f"--db={url}"])
    assert database_flag(url) == " --db 'postgresql://ann:***@host/name'"
    assert database_flag(None) == ""
