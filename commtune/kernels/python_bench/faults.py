"""What can go wrong in a run; the exit statuses are those of the native benchmark."""

from __future__ import annotations

OK, FAILURE, USAGE, WRONG_RESULT, WRONG_WORLD, WAIVED = 0, 1, 2, 3, 4, 5


class UsageFault(Exception):
    """What was asked for is wrong; the message says what is legal."""

    status = USAGE


class Waived(UsageFault):
    """What was asked for makes sense, and this machine can't do it."""

    status = WAIVED

    def __init__(self, why: str) -> None:
        super().__init__(why if why.startswith("waived: ") else f"waived: {why}")
