"""Reads and writes files that users name: only regular files, and of a limited size."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from commtune.errors import EnvironmentFault, UserError, explain_os_error
from commtune.formatting import format_size
from commtune.paths import exists, is_file, is_folder
from commtune.private_files import replacing_file

#: Errors of writing a file that another name avoids; any other is the environment's.
_WRONG_NAMES = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EINVAL,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    None,
)
_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")
#: The largest text file that is read, bytes.
_MOST_TEXT = 2**20
#: The files that were read so far, by absolute path; ``None`` outside ``noted_reading``.
_noted: ContextVar[dict[str, bytes] | None] = ContextVar("_noted", default=None)


@contextmanager
def noted_reading(copies: Mapping[str, bytes] | None = None) -> Iterator[dict[str, bytes]]:
    """Records the content of every file that is read inside, by absolute path.

    Args:
        copies: contents of files, by absolute path, that are used instead of the files, as these
            may have been edited since.
    """
    noted = dict(copies or {})
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def read_file(path: Path, most: int = _MOST_TEXT) -> bytes:
    """Returns the content of a regular file.

    Args:
        most: the largest size, bytes.

    Raises:
        OSError: it can't be read, is a pipe or a device, or is larger; with path and message.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no path has a NUL byte in it", str(path))
    noted, name = _noted.get(), os.path.realpath(path)  # resolve() raises at a link to itself
    if noted is not None and name in noted:
        return noted[name]
    with open(path, "rb", opener=_open_regular) as file:  # Path.open has no opener
        content = file.read(most + 1) or b""  # None of a file of the kernel that has nothing yet
    if len(content) > most:
        raise OSError(errno.EINVAL, f"it is larger than {format_size(most)}", str(path))
    if noted is not None:
        noted[name] = content
    return content


def is_there(path: Path) -> bool:
    """Whether a file exists, or a copy that is used instead of it."""
    return os.path.realpath(path) in (_noted.get() or {}) or exists(path)


def _open_regular(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    handle = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    # Python refuses folders itself.
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", path)


@contextmanager
def writing_file(path: Path) -> Iterator[None]:
    """Explains errors of writing a file or folder that the user named.

    Raises:
        UserError: its path is wrong; for a missing folder, the hint is to create it.
        EnvironmentFault: the disk is full, permission is denied, or the like.
    """
    try:
        yield
    except OSError as error:
        hint = explain_os_error(error).hint
        if not is_folder(path.parent):
            hint = f"mkdir -p {shlex.quote(str(path.parent))}"
        kind = UserError if error.errno in _WRONG_NAMES else EnvironmentFault
        raise kind(f"can't write {path}: {error.strerror or error}", hint=hint) from error


def write_new_file(file: Path, text: str, hint: str) -> None:
    """Writes a new file that the user named.

    Raises:
        UserError: it exists already, with ``hint``, or its path is wrong.
        EnvironmentFault: it can't be written.
    """
    if os.path.lexists(file):
        raise UserError(f"{file} exists already", hint=hint)
    write_file(file, text)


def write_file(file: Path, text: str) -> None:
    """Writes a text file that the user named; raises as ``replaced_file``."""
    with replaced_file(file) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def replaced_file(file: Path) -> Iterator[Path]:
    """Yields a temporary file to write to, which atomically replaces ``file`` if no error occurs.

    A symbolic link stays, and a file that was there keeps its mode. Raises as ``writing_file``.
    """
    with writing_file(file):
        # A pipe, a device, or a file that is open already, such as /dev/stdout.
        if str(file).startswith(_OPEN_FILES) or (exists(file) and not is_file(file)):
            yield file
            return
        target = Path(os.path.realpath(file))
        with replacing_file(target) as part:
            yield part
            with suppress(FileNotFoundError):
                part.chmod(stat.S_IMODE(target.stat().st_mode))


def resolve_path(written: str, folder: Path) -> Path:
    """Returns the path of a file that a document names; ``~`` is a home folder.

    Args:
        folder: the base of relative paths.

    Raises:
        UserError: there is no such user.
    """
    try:
        return folder / Path(written).expanduser()
    except RuntimeError as error:
        home = Path(written).parts[0]
        raise UserError(
            f"{home} is not the home folder of any user here",
            hint=f"write ./{home} for such a folder",
        ) from error
