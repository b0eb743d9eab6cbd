"""Ctrl-C and other signals: all interrupt alike, and can be held back for a moment."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import ClassVar, NoReturn, Self

#: What a scheduler warns with before a job's time is over (see the template of allocations).
_WARNING = signal.SIGUSR1
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, _WARNING)
_warned = False


class Interrupts:
    """Holds back Ctrl-C and its like where they would come in between.

    Only signals that Python code handles are held back, and only in the main thread, as it alone
    gets them. The first of them acts where it is let through, or else at the end. Of several, one
    inside of the other, all let it through where one does.
    """

    # Why at all: a process that was just started would be lost; a transaction would stay open, as
    # its connection lives as long as the exception does, and whoever handles that exception would
    # wait for the database in vain.

    #: Those that hold back now, from the outermost.
    _nested: ClassVar[list[Interrupts]] = []

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._pending: list[int] = []
        self._active = self._holding = False

    def __enter__(self) -> Self:
        self._active = self._holding = True  # first: it is not left where it was not entered
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._arrived)
            self._nested.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self in self._nested:  # before anything acts: nobody may have it hold back again
            self._nested.remove(self)
        self._active = self._holding = False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is None or issubclass(kind, Exception):
            self._deliver()

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """Lets a signal act inside, also one that came before."""
        open_ = list(self._nested) if self in self._nested else [self]
        try:
            for one in open_:
                one._holding = False
            for one in reversed(open_):
                one._deliver()
            yield
        finally:
            for one in open_:
                one._holding = True

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._holding:
            self._pending.append(number)
            return
        # A second Ctrl-C must not disturb the cleaning up after the first.
        self._holding = self._active
        self._handlers[number](number, frame)

    def _deliver(self) -> None:
        if self._pending:
            number = self._pending[0]
            self._pending.clear()
            self._handlers[number](number, None)


def is_time_nearly_over() -> bool:
    """Whether a scheduler said that the time of our job is nearly over."""
    return _warned


def ignore_interrupts() -> None:
    """Ignores all interrupts from now on: this process ends by itself in a moment."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM, a lost terminal and a warning interrupt like Ctrl-C: runs in progress are ended."""
    # Ctrl-C does so anyhow.
    previous = {number: signal.getsignal(number) for number in _NUMBERS[1:]}
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
