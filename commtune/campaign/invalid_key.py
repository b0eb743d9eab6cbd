"""What campaign files and flags ask for, and can't have."""

from __future__ import annotations


class InvalidKey(Exception):
    """What is asked for can't be done.

    Attributes:
        key: the key that is wrong, as campaign files have it.
        hint: what to write in its place.
    """

    def __init__(self, key: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.key, self.message, self.hint = key, message, hint
