"""The bar of a campaign: phase, runs, best run by its right name, time left."""

from __future__ import annotations

from io import StringIO

from commtune.commands.campaigns.progress import _TerminalReporter
from commtune.tuner.ports import Progress


def test_the_bar_names_a_single_run_as_unconfirmed_and_says_what_is_left() -> None:
    drawn = StringIO()
    tell = _TerminalReporter(drawn)
    tell.say("a message [with] brackets")
    tell.progress(Progress("search", 3, 9, 1.31, 12.0, 50.0))
    tell.close()
    tell.close()
    said = drawn.getvalue()
    assert "a message [with] brackets\n" in said
    assert "search" in said
    assert "9 runs, best 1.31x (single unconfirmed run), 38 s left" in said


def test_a_bar_without_a_budget_is_drawn_as_well() -> None:
    drawn = StringIO()
    tell = _TerminalReporter(drawn)
    tell.progress(Progress("record", 1, 1, 1.0, 0.0, 0.0))
    tell.close()
    assert "1 run, 0 s left" in drawn.getvalue()
