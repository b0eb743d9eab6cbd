"""Waiting for what must come, on a machine that is as busy as it likes to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

#: Only for what never comes: no machine is as slow as this.
PATIENCE_S = 300.0
_Found = TypeVar("_Found")


def wait_for(
    find: Callable[[], _Found | None], what: str, patience_s: float = PATIENCE_S
) -> _Found:
    """Waits until there is something, or a condition holds; returns it."""
    deadline = time.monotonic() + patience_s
    while not (found := find_sparingly(find)):
        assert time.monotonic() < deadline, f"waited {patience_s:g} s for {what}"
    return found


def find_sparingly(find: Callable[[], _Found]) -> _Found:
    """Looks, and lets ten times as long pass if there is nothing: looking may cost a process."""
    began = time.monotonic()
    if not (found := find()):
        time.sleep(min(max(0.02, 10 * (time.monotonic() - began)), 0.5))
    return found
