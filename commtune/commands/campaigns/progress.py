"""Progress of a campaign on a terminal, or as plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from commtune.app.progress import LineReporter, describe_progress
from commtune.formatting import format_wall_time
from commtune.streams import escape_text, underlying_stream
from commtune.tuner.ports import Progress

_REDRAW_EVERY_S = 0.2


class _TerminalReporter:
    """A bar with phase, runs, best speedup and time left; messages scroll above it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        # Imported here: logs and quick commands don't wait for rich.
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        # No refresh of its own: its thread would draw while a run is timed, and take time on the
        # cores that the run uses. Between runs, we draw.
        self._bar = Bar(
            TextColumn("{task.fields[phase]:<8}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[numbers]}"),
            console=Console(
                file=underlying_stream(stream or sys.stderr), force_terminal=True, highlight=False
            ),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, visible=False, phase="", numbers="")
        self._drawn_at = 0.0
        self._phase = ""
        self._bar.start()

    def progress(self, progress: Progress) -> None:
        """Redraws the bar, not more often than eyes need."""
        now = time.monotonic()
        if now - self._drawn_at < _REDRAW_EVERY_S and progress.phase == self._phase:
            return
        self._drawn_at, self._phase = now, progress.phase
        left_s = max(0.0, progress.budget_s - progress.used_s)
        self._bar.update(
            self._task,
            visible=True,
            completed=min(progress.used_s, progress.budget_s),
            total=progress.budget_s or 1.0,
            phase=progress.phase,
            numbers=describe_progress(progress, f"{format_wall_time(left_s)} left"),
        )
        self._bar.refresh()

    def say(self, message: str) -> None:
        self._bar.console.print(escape_text(message), markup=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


@contextmanager
def open_reporter() -> Iterator[_TerminalReporter | LineReporter]:
    """The reporter that fits standard error; a bar is taken away at the end, however it comes."""
    if not sys.stderr.isatty():
        yield LineReporter(partial(print, file=sys.stderr, flush=True))
        return
    reporter = _TerminalReporter()
    try:
        yield reporter
    finally:
        reporter.close()
