"""All errors that commtune raises on purpose.

The class says who must act::

    CommtuneError
    ├── UserError              what was asked for is wrong; ask differently (exit code 2)
    │   ├── DocumentError      a YAML file is wrong at a known place (file, line)
    │   │   ├── SpaceError     ... a search-space file
    │   │   └── CampaignError  ... a campaign file
    │   ├── InvalidKey         a key of what is asked for, in a file, by a flag or in Python
    │   ├── InvalidValue       a value is invalid wherever it stands: a size, a time, a word
    │   ├── CampaignChanged    a stored campaign was edited so that results no longer compare
    │   ├── UnknownName        no such space, campaign, profile, format ...
    │   ├── ExportRefused      the profile must not be written in that form
    │   └── NotCancellable     nothing of a campaign can be ended from here
    ├── EnvironmentFault       the surroundings are wrong (exit code 3)
    │   ├── MissingComponent   a program or library is not there
    │   ├── BuildFailed        the native benchmark did not compile
    │   ├── DatabaseFault      the database is not to be had, or has another schema
    │   └── CampaignLocked     another controller works on this campaign
    ├── AllocationOver         the time of the job that we run in ends; a next one goes on
    └── NoAnswer               the question is fine, the database has no answer (exit code 4)

An error is for a person: ``message`` says what is wrong and where, ``hint`` what to type next.
Only the command line turns errors into exit codes.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

#: Error numbers of a write that fails on a full disk or a reached quota.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

#: A function that writes a key with its value: ``mode: batched``, or ``--mode batched``.
WriteKey = Callable[[str, str], str]


def install_command(packages: str) -> str:
    """Returns the command that installs Python packages for this interpreter, whatever PATH is.

    Args:
        packages: as for pip: ``pandas``, or ``.[python]``, since commtune isn't on PyPI.
    """
    # Imported here, since it is only needed when something is missing.
    import shutil

    known = shutil.which("python") == sys.executable
    python = "python" if known else shlex.quote(sys.executable)
    where = "  # in commtune's checkout" if packages.startswith(".") else ""
    return f"{python} -m pip install {shlex.quote(packages)}{where}"


class CommtuneError(Exception):
    """The base of all errors of commtune.

    Args:
        message: what is wrong, and where.
        hint: what to do or type next; empty where nothing sensible can be said.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # shown in Python tracebacks


class UserError(CommtuneError):
    """A request is invalid; the user must change it."""

    exit_code = 2


class InvalidKey(UserError):
    """The value of a key is invalid; files, flags and Python have the same keys.

    Args:
        key: the key, as in campaign files.
        problem: what is wrong with its value.
        hint: what to write instead; if that names keys, a function of how keys are written.
    """

    def __init__(self, key: str, problem: str, hint: str | Callable[[WriteKey], str]) -> None:
        self.key, self.problem, self._hint = key, problem, hint
        super().__init__(f"{key}: {problem}", hint=self.hint_in("{}: {}".format))

    def hint_in(self, write: WriteKey) -> str:
        """Returns the hint with keys in another notation, such as flags."""
        return self._hint if isinstance(self._hint, str) else self._hint(write)


class InvalidValue(UserError, ValueError):
    """A value is invalid; pydantic, which catches this as a ``ValueError``, tells its place."""


class DocumentError(UserError):
    """A YAML document is wrong at a known place.

    Args:
        message: what is wrong, with the offending value.
        file: the document; ``None`` for text that came from elsewhere (a flag).
        line: 1-based line in the file, where it is known.
        hint: the nearest legal value, or what is allowed there.
        where: keys and list indices down to the place, where they are known.
        named: the place in words, if the message must begin with it.

    Attributes:
        problem: the message without any place.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Path | None = None,
        line: int | None = None,
        hint: str = "",
        where: tuple[str | int, ...] = (),
        named: str = "",
    ) -> None:
        self.file = file
        self.line = line
        self.problem, self.where, self.named = message, where, named
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(f"{place}{named}: {message}" if named else place + message, hint=hint)


class SpaceError(DocumentError):
    """A search-space file is wrong, or a configuration is not legal in a space."""


class CampaignError(DocumentError):
    """A campaign file is wrong."""


class CampaignChanged(UserError):
    """A stored campaign was changed so that further results can't be compared with it."""


class UnknownName(UserError):
    """A name of a space, campaign, profile, operation or format that does not exist."""


class ExportRefused(UserError):
    """The profile must not be exported in the requested format."""


class NotCancellable(UserError):
    """A campaign has ended, or it can't be ended from here."""


class AllocationOver(CommtuneError):
    """The time limit of the job that commtune runs in is near; nothing is wrong."""

    exit_code = 0


class EnvironmentFault(CommtuneError):
    """The environment is wrong: the machine, its software, or access to it.

    Args:
        transient: whether the same call may succeed later without a change by the user.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", transient: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.transient = transient


_WHAT_TO_DO = {
    errno.EACCES: "check its permissions and those of its folders, or name another place",
    errno.EPERM: "check its permissions and those of its folders, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENOSPC: "free some space, or name another place",
    errno.EDQUOT: "free some space: your quota is used up",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), or name another place",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.EEXIST: "name another place",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file",
}


def explain_os_error(error: OSError) -> EnvironmentFault:
    """Turns an error of the operating system into one with the path and a hint.

    It is for errors that no caller handles with a better message.
    """
    if error.errno == errno.ENOENT and error.filename is None:  # of os.getcwd()
        return EnvironmentFault("the current folder was deleted", hint="cd to one that exists")
    path = "" if error.filename is None else os.fsdecode(error.filename)
    shown = f"{path[:60]}...: " if len(path) > 300 else f"{path}: " if path else ""
    return EnvironmentFault(shown + os_reason(error), hint=_WHAT_TO_DO.get(error.errno or 0, ""))


def os_reason(error: OSError) -> str:
    """Returns the reason of an error, to be used within a sentence."""
    said = error.strerror or str(error) or type(error).__name__
    return said[:1].lower() + said[1:]


class MissingComponent(EnvironmentFault):
    """A program, library or device is not on this machine."""


class BuildFailed(EnvironmentFault):
    """The native benchmark did not compile or link."""


class DatabaseFault(EnvironmentFault):
    """The database can't be opened, read or written, or has another schema."""


class CampaignLocked(EnvironmentFault):
    """Another controller, which is alive, works on this campaign."""


class NoAnswer(CommtuneError):
    """The database has no answer to a valid query."""

    exit_code = 4


#: Codes of the HTTP API for errors that clients distinguish, subclasses first.
CODES: dict[str, type[CommtuneError]] = {
    "unknown-name": UnknownName,
    "no-answer": NoAnswer,
    "export-refused": ExportRefused,
    "not-cancellable": NotCancellable,
    "bad-request": UserError,
    "database-fault": DatabaseFault,
    "environment-fault": EnvironmentFault,
}
