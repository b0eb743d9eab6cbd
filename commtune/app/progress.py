"""Reports the progress of use cases as plain lines, for logs and programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from commtune.formatting import describe_speedup, format_count, format_wall_time
from commtune.model import Outcome
from commtune.tuner.ports import Progress

_LINE_EVERY_S = 10.0
#: The ratio from which on the best single run is reported.
_WORTH_SAYING = 1.005


@dataclass
class LineReporter:
    """A reporter that writes a line at the start of a phase and every ten seconds.

    Args:
        write: called with each line, without a newline.
    """

    write: Callable[[str], object]
    _said_at: float = 0.0
    _phase: str = ""

    def progress(self, progress: Progress) -> None:
        """Writes a line, if one is due."""
        now = time.monotonic()
        if now - self._said_at < _LINE_EVERY_S and progress.phase == self._phase:
            return
        self._said_at, self._phase = now, progress.phase
        used, budget = format_wall_time(progress.used_s), format_wall_time(progress.budget_s)
        said = describe_progress(progress, f"{used} of {budget}")
        self.say(f"{progress.phase}: {format_count(progress.trials, 'trial')}, {said}")

    def say(self, message: str) -> None:
        self.write(message)


def describe_progress(progress: Progress, time: str) -> str:
    """Formats progress: ``9 runs, best 1.31x (single unconfirmed run), 12 s of 50 s``.

    From the confirmation on, it has the best confirmed speedup with its interval and size.
    """
    parts = [format_count(progress.runs, "run")]
    if progress.best_gain > _WORTH_SAYING:
        # The search's best is often just a lucky run, so it is labelled as unconfirmed.
        parts.append(f"best {progress.best_gain:.2f}x (single unconfirmed run)")
    if (point := progress.confirmed) is not None:
        parts.append(f"confirmed {describe_speedup(point.gain, point.bytes)}")
    parts.append(time)
    if progress.last not in (None, Outcome.OK):
        parts.append(f"last run: {progress.last}")
    return ", ".join(parts)
