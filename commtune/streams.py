"""The standard streams of the command line: none is missing, and terminals get plain text."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from commtune.errors import NO_ROOM

#: What a terminal acts upon or hides: control characters but for ends of lines and tabs, marks of
#: direction, characters without width, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def escape_text(text: str) -> str:
    r"""Text in which a terminal finds nothing to act upon: ``\x1b`` stands for an escape."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _PlainText(io.TextIOWrapper):
    """A stream for people: what others wrote (programs, files, tables) can't steer a terminal.

    A full disk behind it ends nothing: words are lost, or come once there is room.
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


def unescaped(stream: TextIO) -> TextIO:
    """The stream for what is ours, such as a bar of progress."""
    return stream.unescaped if isinstance(stream, _PlainText) else stream


@contextmanager
def plain_streams() -> Iterator[None]:
    """Replaces missing streams inside, and escapes text that goes to people.

    Standard output that is no terminal takes exactly what is written: programs read it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number. Else a file of ours would, a database perhaps, and
            # what anybody prints would go into it.
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
                with suppress(OSError):  # nobody is left to read it
                    stream.detach()
        sys.stdout, sys.stderr = before
        drop_output(sys.stderr)


def flush_output() -> None:
    """Writes what was printed: at the end, where a full disk can still be told.

    Raises:
        OSError: standard output, which it names, doesn't take it.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def drop_output(stream: TextIO) -> None:
    """Forgets what a stream did not take: Python would try again at the end, and complain."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
