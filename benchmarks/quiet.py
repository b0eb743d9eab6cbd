"""A reporter for campaigns that nobody watches: simulated ones, tests, measurements."""

from __future__ import annotations


class QuietReporter:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def progress(self, progress: object) -> None:
        """Not looked at."""

    def say(self, message: str) -> None:
        """Keeps it."""
        self.said.append(message)
