"""The process below which the daemons of a tests' cluster run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from waiting import PATIENCE_S


@contextmanager
def running_keeper(program: Sequence[str], log: IO[Any]) -> Iterator[subprocess.Popen[str]]:
    """Starts it, to take orders by its input; it ends, with its daemons, when that is closed."""
    keeper = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        yield keeper
    finally:
        with keeper:
            with suppress(OSError, subprocess.TimeoutExpired):
                keeper.communicate(timeout=PATIENCE_S)
            keeper.kill()
