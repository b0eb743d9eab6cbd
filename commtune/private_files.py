"""Makes private files, and checks that no other user may have written a file.

The checks are for databases, whose settings are loaded into environments, and for programs. Uses
the standard library only, since commands with fast start-up import it.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import get_native_id

from commtune.errors import CommtuneError, EnvironmentFault, UserError
from commtune.paths import is_folder

#: A variable with paths, separated by colons, that a site or a user trusts.
TRUSTED_VARIABLE = "COMMTUNE_TRUSTED"

#: Suffixes of the files that SQLite reads together with a database.
FILES_BESIDE = ("-wal", "-shm", "-journal")

#: The fewest characters of a token, and the most that are read from its file.
_FEWEST_CHARACTERS = 16
_MOST_CHARACTERS = 4096
#: The most links that Linux follows to a file.
_MOST_LINKS = 40
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
    """Yields an empty file to write to, which atomically replaces ``file`` if no error occurs.

    Raises:
        OSError: it can't be written.
    """
    # Other threads may write the same file meanwhile, and must not put our half of it in place.
    part = file.with_name(f"{file.name}.{get_native_id()}.part")
    try:
        part.unlink(missing_ok=True)  # left by a process that was killed
        # Another user may lay a link there at this moment: its target is not written to.
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
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
def writing_data(what: str, folder: Path) -> Iterator[None]:
    """Makes a private folder of the user's own data, to be written to inside.

    Args:
        what: says what was not possible, for the message.

    Raises:
        EnvironmentFault: it can't be made or written to, or others can write to it.
    """
    try:
        make_private_folder(folder)
        require_own(f"the folder {folder} is not used", folder)
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"{what}: {folder}: {error.strerror}",
            hint="check its permissions and free space, or set XDG_DATA_HOME to another folder",
        ) from error


def require_own(
    said: str,
    file: Path,
    *,
    beside: Collection[str] = (),
    inside: bool = False,
    fault: type[CommtuneError] = EnvironmentFault,
) -> None:
    """Refuses a file that others may have written (``who_else_wrote``), and says what to type.

    Args:
        said: the message without the reason: "the benchmark FILE is not used".
        inside: whether all that is in a folder counts, too.

    Raises:
        CommtuneError: of the class ``fault``.
    """
    if not (found := _find_writable(file, beside, inside=inside)):
        return
    real = os.path.realpath(file)
    if not all(one.can_be_closed for one in found):
        mend = "use one in a folder of your own"
    elif inside and found[0].path.startswith(real):
        mend = f"chmod -R go-w {shlex.quote(real)}"
    else:
        mend = shlex.join(["chmod", "go-w", *dict.fromkeys(one.path for one in found)])
    trust = f"export {TRUSTED_VARIABLE}={shlex.quote(real)}"
    hint = f"{mend}; or, if you trust who wrote it: {trust}"
    raise fault(f"{said}: {found[0].why}", hint=hint)


def who_else_wrote(file: Path, *, beside: Collection[str] = ()) -> str:
    """Explains why others may have written or replaced a file; empty if they can't have.

    Only this user, root, and the owner's private group (with the user's name) may write it and its
    folder. Folders further above, also those above symbolic links to it, may have any owner and
    group, but not everybody may write them. It passes if it is trusted, can't be inspected, or is
    in a folder that only this user has access to; so does a folder above it that is below such a
    one. If it is missing, its folders decide.

    Args:
        beside: suffixes of further files that are read with it. In a sticky folder others can't
            replace existing files, but can add one of these at any time.
    """
    return next((one.why for one in _find_writable(file, beside)), "")


@dataclass(frozen=True)
class _Seen:
    """A file or folder that is used to reach a file."""

    path: str
    words: str  # for messages: "its folder"
    status: os.stat_result
    is_above: bool = False  # whether only what the file's path names in it is used
    is_far: bool = False  # whether it is neither the file nor its folder

    @property
    def why(self) -> str:
        """Explains why others may have written or replaced it; empty if they can't have."""
        is_ours = self.status.st_uid in (os.geteuid(), 0)
        is_link = stat.S_ISLNK(self.status.st_mode)
        # Whoever owns the folder of a project, and its group, is trusted by all who work there.
        if not is_ours and (is_link or not self.is_far):
            return f"{self.words} belongs to {name_of_user(self.status.st_uid)}"
        # In a sticky folder of ours or root's, others can't rename or remove what is not theirs.
        if is_link or (is_ours and self.is_above and self._is_sticky):
            return ""
        who = _writers(self.status, only_all=self.is_far)
        return f"{who} can write {self.words}" if who else ""

    @property
    def can_be_closed(self) -> bool:
        return self.status.st_uid == os.geteuid() and not self._is_sticky

    @property
    def _is_sticky(self) -> bool:
        return bool(self.status.st_mode & stat.S_ISVTX)


def _find_writable(file: Path, beside: Collection[str], *, inside: bool = False) -> list[_Seen]:
    """Returns what others may have written; the file first, then what is above it."""
    way = list(_way_to(file))
    found = [one for one in _look_at(way, beside, inside=inside) if one.why]
    if found:
        real = Path(way[-1][0])
        trusted = os.environ.get(TRUSTED_VARIABLE, "").split(":")
        if any(str(one) in trusted for one in (real, *real.parents)):
            return []
    return found[::-1]


#: A path with its status; ``None`` if it is missing or can't be inspected.
_Place = tuple[str, os.stat_result | None]


def _look_at(
    way: Sequence[_Place], beside: Collection[str] = (), *, inside: bool = False
) -> Iterator[_Seen]:
    """Yields all that is used to read a file and that others can reach, from the root on."""
    real, _ = way[-1]
    above, _, name = real.rpartition("/")
    folder = above or "/"
    words = {real: "it", folder: "its folder"}
    closed = "//"  # a folder to which only this user has access
    for path, status in way:
        is_above = path != real and not (beside and path == folder)
        # One far above may have been open before: the file and its folder are looked at as well.
        is_far = path not in (real, folder)
        if status is None or (path.startswith(closed) and (is_far or closed == f"{folder}/")):
            continue
        yield _Seen(path, words.get(path, path), status, is_above, is_far)
        is_open = status.st_uid != os.geteuid() or status.st_mode & 0o077
        if stat.S_ISDIR(status.st_mode) and not is_open:
            closed = f"{path}/"
        elif path == folder:
            for end in beside:
                with suppress(OSError):
                    yield _Seen(real + end, f"{name}{end} beside it", os.lstat(real + end))
    if inside and closed != f"{real}/":
        yield from _look_inside(real)


def _look_inside(folder: str) -> Iterator[_Seen]:
    """Yields all that is in a folder, and what its links lead to."""
    with os.scandir(folder) as found:
        for one in found:
            yield _Seen(one.path, one.path, one.stat(follow_symlinks=False))
            if one.is_dir(follow_symlinks=False):
                yield from _look_inside(one.path)
            elif one.is_symlink():
                for other in _look_at(list(_way_to(Path(one.path)))):
                    yield replace(other, words=other.path)


def _way_to(file: Path) -> Iterator[_Place]:
    """Yields every path that is looked up to reach a file, from the root, with symbolic links."""
    # As texts, since this is part of the start of ``commtune best``.
    ahead, at, links = [*reversed(file.absolute().parts)], "", 0
    while ahead:
        name, status = ahead.pop(), None
        at = {"/": "", "..": at.rpartition("/")[0]}.get(name, f"{at}/{name}")
        with suppress(OSError, ValueError):
            status = os.lstat(at or "/")
        yield at or "/", status
        if status is not None and stat.S_ISLNK(status.st_mode) and links < _MOST_LINKS:
            links += 1
            ahead += reversed(Path(at).readlink().parts)
            at = at.rpartition("/")[0]


def _writers(of: os.stat_result, *, only_all: bool) -> str:
    if of.st_mode & stat.S_IWOTH:
        return "everybody"
    if of.st_mode & stat.S_IWGRP and of.st_gid != 0 and not only_all:
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
