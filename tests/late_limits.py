"""Time limits of programs that begin only when something has happened, however long that takes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from commtune import process


def begin_when(patched: pytest.MonkeyPatch, seen: Callable[[], object]) -> None:
    """The limit of what ``process.run`` starts counts from this moment on, not from its start.

    So a program was there to be cut short, on the busiest machine, and the limit can be short.
    """
    wait = process._wait

    def later(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
        while not seen():
            if wait(child, 0.01):
                return True
        return wait(child, timeout_s)

    patched.setattr(process, "_wait", later)
