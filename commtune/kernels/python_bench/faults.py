"""What can go wrong in a run; the exit statuses are those of the native benchmark."""

from __future__ import annotations

OK, FAILURE, USAGE, WRONG_RESULT, WRONG_WORLD = 0, 1, 2, 3, 4


class UsageFault(Exception):
    """What was asked for is wrong; the message says what is legal."""
