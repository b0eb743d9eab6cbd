"""Time limits of programs that begin only when something has happened, however long that takes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import pytest

from commtune import process


def begin_when(patched: pytest.MonkeyPatch, seen: Callable[[], object]) -> None:
    """The limit of what ``process.run`` starts counts from this moment on, not from its start.

    So a program was there to be cut short, on the busiest machine, and the limit can be short.
    """
    begin_when_of(patched, lambda _: seen())


def begin_when_of(patched: pytest.MonkeyPatch, seen: Callable[[Sequence[str]], object]) -> None:
    """The same; the moment depends on the words that the program was started with."""
    wait = process._wait

    def later(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
        words = child.args
        assert isinstance(words, list)
        while not seen(words):
            if wait(child, 0.01):
                return True
        return wait(child, timeout_s)

    patched.setattr(process, "_wait", later)
