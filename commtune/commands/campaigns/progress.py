"""Progress of a campaign on a terminal, or as plain lines in a log.

Drawn between runs only: while a run is timed, nothing of ours takes time on the cores it uses.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

from commtune.commands import text
from commtune.model import Outcome
from commtune.tuner.ports import Progress

_LINE_EVERY_S = 10.0
_REDRAW_EVERY_S = 0.2
_BAR = 24


@dataclass
class TerminalReporter:
    """One line that is redrawn; messages scroll above it."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _drawn_at: float = 0.0
    _phase: str = ""

    def progress(self, progress: Progress) -> None:
        """Redraws the line, not more often than eyes need."""
        now = time.monotonic()
        if now - self._drawn_at < _REDRAW_EVERY_S and progress.phase == self._phase:
            return
        self._drawn_at, self._phase = now, progress.phase
        share = min(1.0, progress.used_s / progress.budget_s) if progress.budget_s else 1.0
        done = round(share * _BAR)
        bar = "━" * done + "╌" * (_BAR - done)
        self.stream.write(f"\r\x1b[2K{progress.phase:<8}{bar} {_numbers(progress)}")
        self.stream.flush()

    def say(self, message: str) -> None:
        """Prints a line above the bar."""
        self.stream.write(f"\r\x1b[2K{message}\n")
        self.stream.flush()

    def close(self) -> None:
        """Takes the bar away."""
        self.stream.write("\r\x1b[2K")
        self.stream.flush()


@dataclass
class LineReporter:
    """A plain line now and then, for logs."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _said_at: float = 0.0
    _phase: str = ""

    def progress(self, progress: Progress) -> None:
        """Prints a line at the start of a phase and every ten seconds."""
        now = time.monotonic()
        if now - self._said_at < _LINE_EVERY_S and progress.phase == self._phase:
            return
        self._said_at, self._phase = now, progress.phase
        self.say(f"{progress.phase}: {_numbers(progress)}")

    def say(self, message: str) -> None:
        """Prints a line."""
        print(message, file=self.stream, flush=True)

    def close(self) -> None:
        """Nothing to take away."""


def make_reporter() -> TerminalReporter | LineReporter:
    """The reporter that fits standard error."""
    return TerminalReporter() if sys.stderr.isatty() else LineReporter()


def _numbers(progress: Progress) -> str:
    parts = [text.format_count(progress.trials, "trial"), text.format_count(progress.runs, "run")]
    if progress.best_gain > 1.005:
        parts.append(f"best run {progress.best_gain:.2f}x")
    parts.append(
        f"{text.format_wall_time(progress.used_s)} of {text.format_wall_time(progress.budget_s)}"
    )
    if progress.last not in (None, Outcome.OK):
        parts.append(f"last run: {progress.last}")
    return ", ".join(parts)
