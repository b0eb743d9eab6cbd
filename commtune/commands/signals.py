"""Long commands end cleanly, whoever ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

#: What a scheduler warns with before a job's time is over (see the template of allocations).
_WARNING = signal.SIGUSR1
_warned = False


def is_time_nearly_over() -> bool:
    """Whether a scheduler said that the time of our job is nearly over."""
    return _warned


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM, a lost terminal and a warning interrupt like Ctrl-C: runs in progress are ended."""
    numbers = (signal.SIGTERM, signal.SIGHUP, _WARNING)
    previous = {number: signal.getsignal(number) for number in numbers}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:  # nohup: it wants to outlive the terminal
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: object) -> NoReturn:
    global _warned  # a signal handler has no other place
    _warned = _warned or number == _WARNING
    del frame
    raise KeyboardInterrupt
