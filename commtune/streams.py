"""Prepares the standard streams: replaces missing ones, and escapes text for terminals."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from commtune.errors import NO_ROOM

#: Characters that a terminal interprets or hides: control characters but line ends and tabs,
#: directional marks, zero-width characters and surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def escape_text(text: str) -> str:
    r"""Escapes characters that a terminal interprets or hides, such as ``\x1b`` for ESC."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _PlainText(io.TextIOWrapper):
    """A stream that escapes text, so that output of programs and files can't control a terminal.

    A full disk raises no error: text is lost, or is written once there is room.
    """

    def __init__(self, unescaped: TextIO) -> None:
        super().__init__(
            unescaped.buffer,
            encoding=unescaped.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )
        self.unescaped = unescaped

    def write(self, text: str, /) -> int:
        with _passing_if_full():
            super().write(escape_text(text))
        return len(text)

    def flush(self) -> None:
        with _passing_if_full():
            super().flush()


@contextmanager
def _passing_if_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise


def underlying_stream(stream: TextIO) -> TextIO:
    """Returns the underlying stream, for trusted text such as a progress bar."""
    return stream.unescaped if isinstance(stream, _PlainText) else stream


@contextmanager
def plain_streams() -> Iterator[None]:
    """Replaces missing standard streams, and escapes text that users read.

    Standard output that is no terminal is not escaped, since programs read it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open() takes the lowest free number. Without this, a file such as a database could
            # get it, and whatever is printed would go into that file.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    before = sys.stdout, sys.stderr
    sys.stderr = _PlainText(sys.stderr)
    if sys.stdout.isatty():
        sys.stdout = _PlainText(sys.stdout)
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _PlainText):
                with suppress(OSError):  # the reader is gone
                    stream.detach()
        sys.stdout, sys.stderr = before
        drop_output(sys.stderr)


def flush_output() -> None:
    """Flushes standard output while an error such as a full disk can still be reported.

    Raises:
        OSError: the write failed; it names standard output.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def drop_output(stream: TextIO) -> None:
    """Drops text that can't be written: Python would retry at exit and print an error."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
