"""The bar of a campaign: phase, runs, best run by its right name, time left."""

from __future__ import annotations

from io import StringIO

from stated_profiles import point

from commtune.app.progress import describe_progress
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


def test_what_is_confirmed_stands_beside_it_with_its_interval() -> None:
    confirmed = point(65536, 1.2, 1.5)
    now = Progress("confirm", 3, 90, 1.61, 12.0, 50.0, confirmed=confirmed)
    said = describe_progress(now, "38 s left")
    speedup = f"{confirmed.gain.ratio:.2f}x, {confirmed.gain.pairs} pairs"
    shown = f"confirmed 1.20x to 1.50x ({speedup}) at 64 KiB"
    assert said == f"90 runs, best 1.61x (single unconfirmed run), {shown}, 38 s left"
