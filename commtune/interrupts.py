"""Handles Ctrl-C and other signals as interrupts, and defers them in critical sections."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import ClassVar, NoReturn, Self

#: The signal by which a scheduler announces the end of a job (see the template of allocations).
_WARNING = signal.SIGUSR1
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, _WARNING)
_warned = False


class Interrupts:
    """A context manager that defers signals such as Ctrl-C.

    Only signals that Python code handles are deferred, and only in the main thread, which alone
    receives them. The first deferred signal is delivered within ``let_through`` or at the end. If
    instances are nested, ``let_through`` of one lets signals through all of them.
    """

    # Without this, an interrupt could lose a process that was just started. It could also leave a
    # transaction open, since the connection lives as long as the exception; whoever handles the
    # exception would then wait for the database in vain.

    #: The active instances, outermost first.
    _nested: ClassVar[list[Interrupts]] = []

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._pending: list[int] = []
        self._active = self._holding = False

    def __enter__(self) -> Self:
        # Set first, so that no signal raises in here: __exit__ would not be called.
        self._active = self._holding = True
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._arrived)
            self._nested.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self in self._nested:  # before signals are delivered: it must not defer again
            self._nested.remove(self)
        self._active = self._holding = False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is None or issubclass(kind, Exception):
            self._deliver()

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """Delivers signals inside, including one that was deferred before."""
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
        # A second Ctrl-C must not disturb the clean-up after the first.
        self._holding = self._active
        self._handlers[number](number, frame)

    def _deliver(self) -> None:
        if self._pending:
            number = self._pending[0]
            self._pending.clear()
            self._handlers[number](number, None)


def is_time_nearly_over() -> bool:
    """Whether the scheduler has announced the end of our job."""
    return _warned


def ignore_interrupts() -> None:
    """Ignores all interrupts from now on, since this process is about to end."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Makes SIGTERM, SIGHUP and the scheduler's signal end runs in progress, like Ctrl-C."""
    # SIGINT does so by default.
    previous = {number: signal.getsignal(number) for number in _NUMBERS[1:]}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:  # with nohup, it must outlive the terminal
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: object) -> NoReturn:
    global _warned  # a signal handler can't return anything
    _warned = _warned or number == _WARNING
    del frame
    raise KeyboardInterrupt
