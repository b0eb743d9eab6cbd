"""Files that people name: regular ones are read, and no more of them than is sensible."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from commtune.errors import UserError, explain_os_error
from commtune.formatting import format_size
from commtune.paths import exists, is_file, is_folder

#: Bytes of a text that a person writes.
_MOST_TEXT = 2**20
#: What was read so far, by absolute path, where somebody wants to know.
_noted: ContextVar[dict[str, bytes] | None] = ContextVar("_noted", default=None)


@contextmanager
def noted_reading(copies: Mapping[str, bytes] | None = None) -> Iterator[dict[str, bytes]]:
    """Notes the content of every file that is read inside, by absolute path.

    Args:
        copies: likewise, files that are not read again: they may have been edited since.
    """
    noted = dict(copies or {})
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def read_file(path: Path, most: int = _MOST_TEXT) -> bytes:
    """The content of a regular file.

    Args:
        most: bytes that it may have.

    Raises:
        OSError: it can't be read, is a pipe or a device, or is larger; with path and words.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no path has a NUL byte in it", str(path))
    noted, name = _noted.get(), os.path.realpath(path)  # resolve() raises at a link to itself
    if noted is not None and name in noted:
        return noted[name]
    with open(path, "rb", opener=_open_regular) as file:  # takes an opener
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {format_size(most)}", str(path))
    if noted is not None:
        noted[name] = content
    return content


def is_there(path: Path) -> bool:
    """Whether there is such a file, or a copy that is read in its place."""
    return os.path.realpath(path) in (_noted.get() or {}) or exists(path)


def _open_regular(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for someone who writes into it.
    handle = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    # Python itself refuses folders.
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", path)


@contextmanager
def writing_file(path: Path) -> Iterator[None]:
    """Turns faults of writing a file or folder that people named into errors for them.

    Raises:
        UserError: it can't be, and why; the hint makes a missing folder.
    """
    try:
        yield
    except OSError as error:
        hint = explain_os_error(error).hint
        if not is_folder(path.parent):
            hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        raise UserError(f"can't write {path}: {error.strerror or error}", hint=hint) from error


def write_new_file(file: Path, text: str, hint: str) -> None:
    """Writes a file that people name, which must not be there yet.

    Raises:
        UserError: it is there, with the hint; or it can't be written.
    """
    with writing_file(file):
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except FileExistsError as error:
            raise UserError(f"{file} exists already", hint=hint) from error


@contextmanager
def replaced_file(file: Path) -> Iterator[Path]:
    """A file beside this one to write to; at the end it takes its place, unless an error comes.

    Raises:
        UserError: it can't be written; the hint makes a missing folder.
    """
    is_special = exists(file) and not is_file(file)  # a pipe, a device
    part = file if is_special else file.with_name(f"{file.name}.part")
    try:
        with writing_file(file):
            if is_special:
                yield file
                return
            part.unlink(missing_ok=True)  # of somebody who was killed
            yield part
            part.replace(file)
    finally:
        if not is_special:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def resolve_path(written: str, folder: Path) -> Path:
    """Where a file is that a document names; ``~`` is a home folder.

    Args:
        folder: where a relative path starts.

    Raises:
        UserError: nobody has that home.
    """
    try:
        return folder / Path(written).expanduser()
    except RuntimeError as error:
        home = Path(written).parts[0]
        raise UserError(
            f"{home} is not the home folder of any user here",
            hint=f"write ./{home} for such a folder",
        ) from error
