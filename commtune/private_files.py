"""Files that nobody else may have written: databases, whose settings are loaded, and programs.

Standard library only: what answers from the shell imports this.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

#: Paths, with colons between, that a site or a user answers for.
TRUSTED_VARIABLE = "COMMTUNE_TRUSTED"


def make_private_folder(folder: Path) -> None:
    """Makes a folder and those that are missing above it, for us alone, under any umask.

    Raises:
        OSError: it can't be made, or a file has its name.
    """
    try:
        folder.mkdir(0o700)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise


def make_private_file(file: Path) -> None:
    """Makes an empty file for us alone; one that is there stays as it is.

    Raises:
        OSError: it can't be made.
    """
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return


def who_else_wrote(file: Path) -> str:
    """Why others may have written or replaced a file, in words; empty where they can't have.

    Only its owner, root, and the owner's own group may: a group called as a user is theirs. Where
    the folder is closed to others, they can't reach it. A file that can't be looked at passes.
    """
    try:
        # Links count as what they lead to, and by where that is.
        file = file.resolve()
        of_file, of_folder = file.stat(), file.parent.stat()
    except OSError:
        return ""
    us = os.geteuid()
    if of_folder.st_uid == us and not of_folder.st_mode & 0o077:
        return ""
    if str(file) in os.environ.get(TRUSTED_VARIABLE, "").split(":"):
        return ""
    if of_file.st_uid not in (us, 0):
        return f"it belongs to {_name_of_user(of_file.st_uid)}"
    if _writers(of_file):
        return f"{_writers(of_file)} can write it"
    if _writers(of_folder) and not of_folder.st_mode & stat.S_ISVTX:
        return f"{_writers(of_folder)} can write its folder"
    return ""


def how_to_trust(file: Path) -> str:
    """What to type about such a file."""
    named, folder, real = (shlex.quote(str(one)) for one in (file, file.parent, file.resolve()))
    return (
        f"chmod go-w {named} {folder}; or, if you trust who wrote it: "
        f"export {TRUSTED_VARIABLE}={real}"
    )


def _writers(of: os.stat_result) -> str:
    if of.st_mode & stat.S_IWOTH:
        return "everybody"
    if of.st_mode & stat.S_IWGRP and of.st_gid != 0:
        group = _name_of_group(of.st_gid)
        return "" if group == _name_of_user(of.st_uid) else f"the group {group}"
    return ""


def _name_of_user(number: int) -> str:
    import pwd  # only the one who is refused waits for it

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
