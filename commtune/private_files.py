"""Makes private files, and checks that no other user may have written a file.

The checks are for databases, whose settings are loaded into environments, and for programs. Uses
the standard library only, since commands with fast start-up import it.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_native_id

from commtune.errors import EnvironmentFault, UserError
from commtune.paths import is_folder

#: A variable with paths, separated by colons, that a site or a user trusts.
TRUSTED_VARIABLE = "COMMTUNE_TRUSTED"

#: The fewest characters of a token, and the most that are read from its file.
_FEWEST_CHARACTERS = 16
_MOST_CHARACTERS = 4096
_NEW_TOKEN = "make one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)"


def make_private_folder(folder: Path) -> None:
    """Makes a folder and its missing parents, with access for this user only under any umask.

    Raises:
        OSError: it can't be made, or a file has its name.
    """
    try:
        folder.mkdir(0o700)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    except FileExistsError:
        if not is_folder(folder):
            raise


def make_private_file(file: Path) -> None:
    """Makes an empty file with access for this user only; an existing one stays unchanged.

    Raises:
        OSError: it can't be made.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


@contextmanager
def replacing_file(file: Path) -> Iterator[Path]:
    """Yields a temporary file to write to, which atomically replaces ``file`` if no error occurs.

    Raises:
        OSError: it can't be written.
    """
    # Other threads may write the same file meanwhile, and must not put our half of it in place.
    part = file.with_name(f"{file.name}.{get_native_id()}.part")
    try:
        part.unlink(missing_ok=True)  # left by a process that was killed
        yield part
        part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def replace_own_file(file: Path, text: str) -> None:
    """Writes a file of ours completely or not at all; an ``OSError`` where it can't be written."""
    with replacing_file(file) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def writing_data(what: str, path: Path) -> Iterator[None]:
    """Turns errors of writing below the user's data folder into an ``EnvironmentFault``.

    Args:
        what: says what was not possible, for the message.
    """
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"{what}: {path}: {error.strerror}",
            hint="check its permissions and free space, or set XDG_DATA_HOME to another folder",
        ) from error


def who_else_wrote(file: Path, *, beside: Collection[str] = ()) -> str:
    """Explains why others may have written or replaced a file; empty if they can't have.

    Only this user, root, and the owner's private group (with the user's name) may write it and
    its folder. A file passes if it is trusted, can't be inspected, or is in a folder that only
    this user has access to.

    Args:
        beside: suffixes of further files that are read with it. In a sticky folder others can't
            replace existing files, but can add one of these at any time.
    """
    us = os.geteuid()
    try:
        # Symbolic links are judged by the file and folder that they lead to.
        file = file.resolve()
        of_folder = file.parent.stat()
    except (OSError, RuntimeError):
        return ""
    if of_folder.st_uid == us and not of_folder.st_mode & 0o077:
        return ""
    trusted = os.environ.get(TRUSTED_VARIABLE, "").split(":")
    if any(str(one) in trusted for one in (file, *file.parents)):
        return ""
    found = {}
    for end in ("", *beside):
        with suppress(OSError):
            found[f"{file.name}{end} beside it" if end else "it"] = os.lstat(f"{file}{end}")
    for name, status in found.items():
        if status.st_uid not in (us, 0):
            return f"{name} belongs to {name_of_user(status.st_uid)}"
        if _writers(status):
            return f"{_writers(status)} can write {name}"
    if of_folder.st_uid not in (us, 0):
        return f"its folder belongs to {name_of_user(of_folder.st_uid)}"
    if _writers(of_folder) and (beside or not of_folder.st_mode & stat.S_ISVTX):
        return f"{_writers(of_folder)} can write its folder"
    return ""


def how_to_trust(file: Path, why: str) -> str:
    """Returns a hint on how to secure or trust a file, given why ``who_else_wrote`` refused it."""
    named, folder, real = (shlex.quote(str(one)) for one in (file, file.parent, file.resolve()))
    is_shared = " belongs to " in why or file.resolve().parent.stat().st_mode & stat.S_ISVTX
    mend = "use one in a folder of your own" if is_shared else f"chmod go-w {named}* {folder}"
    return f"{mend}; or, if you trust who wrote it: export {TRUSTED_VARIABLE}={real}"


def _writers(of: os.stat_result) -> str:
    if of.st_mode & stat.S_IWOTH:
        return "everybody"
    if of.st_mode & stat.S_IWGRP and of.st_gid != 0:
        group = _name_of_group(of.st_gid)
        return "" if group == name_of_user(of.st_uid) else f"the group {group}"
    return ""


def name_of_user(number: int) -> str:
    """Returns a user's name, or ``user NUMBER`` if this machine doesn't know it."""
    import pwd  # only needed after a refusal

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _name_of_group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def read_token(file: Path) -> str:
    """Reads the token in a file.

    Raises:
        UserError: it can't be read, others may read it, or its token is unsuitable.
    """
    try:
        with file.open(encoding="ascii") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            token = opened.read(_MOST_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not plain ASCII"
        raise UserError(f"the token file {file} can't be read: {why}", hint=_NEW_TOKEN) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UserError(f"the token file {file} is open to other users", hint=f"chmod 600 {file}")
    if len(token) < _FEWEST_CHARACTERS or not token.isprintable() or " " in token:
        raise UserError(
            f"the token file {file} must hold one word of at least {_FEWEST_CHARACTERS} "
            "characters",
            hint=_NEW_TOKEN,
        )
    return token
