"""Every error that commtune raises on purpose.

The tree says whose turn it is::

    CommtuneError
    ├── UserError              what was asked for is wrong; ask differently (exit code 2)
    │   ├── DocumentError      a YAML file is wrong at a known place (file, line)
    │   │   ├── SpaceError     ... a search-space file
    │   │   └── CampaignError  ... a campaign file
    │   ├── InvalidKey         a key of what is asked for, in a file, by a flag or in Python
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

#: How writing fails on a full disk, or where a quota is reached.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

#: Writes a key with its value: ``mode: batched``, or ``--mode batched``.
WriteKey = Callable[[str, str], str]


def install_command(packages: str) -> str:
    """The command that adds Python packages to the environment that runs us, wherever PATH leads.

    Args:
        packages: as pip takes them: ``pandas``, or ``.[python]``: commtune isn't on PyPI.
    """
    # Imported here: only the one who lacks something waits for it.
    import shutil

    known = shutil.which("python") == sys.executable
    python = "python" if known else shlex.quote(sys.executable)
    where = "  # in commtune's checkout" if packages.startswith(".") else ""
    return f"{python} -m pip install {shlex.quote(packages)}{where}"


class CommtuneError(Exception):
    """Base of the tree.

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
            self.add_note(hint)  # for who sees it in Python


class UserError(CommtuneError):
    """What was asked for is wrong."""

    exit_code = 2


class InvalidKey(UserError):
    """What a key asks for can't be had; files, flags and Python have the same keys.

    Args:
        key: the key that is wrong, as campaign files have it.
        problem: what is wrong with it.
        hint: what to write in its place; from how a key and its value are written, if it has any.
    """

    def __init__(self, key: str, problem: str, hint: str | Callable[[WriteKey], str]) -> None:
        self.key, self.problem, self._hint = key, problem, hint
        super().__init__(f"{key}: {problem}", hint=self.hint_in("{}: {}".format))

    def hint_in(self, write: WriteKey) -> str:
        """The hint, with keys written otherwise: as flags."""
        return self._hint if isinstance(self._hint, str) else self._hint(write)


class DocumentError(UserError):
    """A YAML document is wrong at a known place.

    Args:
        message: what is wrong, with the offending value.
        file: the document; ``None`` for text that came from elsewhere (a flag).
        line: 1-based line in the file, where it is known.
        hint: the nearest legal value, or what is allowed there.
        where: keys and list indices down to the place, where they are known.
        named: the same in words, if the message has to begin with them.

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
    """A search-space file, or a configuration held against a space, is wrong."""


class CampaignError(DocumentError):
    """A campaign file is wrong."""


class CampaignChanged(UserError):
    """A stored campaign would go on with another question than it began with."""


class UnknownName(UserError):
    """A name of a space, campaign, profile, operation or format that does not exist."""


class ExportRefused(UserError):
    """The profile must not be written in the asked-for form."""


class NotCancellable(UserError):
    """A campaign has ended, or it is not ours to end from here."""


class AllocationOver(CommtuneError):
    """The time of the job that we run in is nearly over; nothing is wrong."""

    exit_code = 0


class EnvironmentFault(CommtuneError):
    """The surroundings are wrong.

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
    errno.ENAMETOOLONG: "name a shorter path",
    errno.EEXIST: "name another place",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file",
}


def explain_os_error(error: OSError) -> EnvironmentFault:
    """What the operating system refused, with the path and what to do.

    For refusals that no one nearer has better words for.
    """
    path = "" if error.filename is None else os.fsdecode(error.filename)
    shown = f"{path[:60]}...: " if len(path) > 300 else f"{path}: " if path else ""
    return EnvironmentFault(shown + os_reason(error), hint=_WHAT_TO_DO.get(error.errno or 0, ""))


def os_reason(error: OSError) -> str:
    """Why the operating system refused, as it stands inside of a sentence."""
    said = error.strerror or str(error) or type(error).__name__
    return said[:1].lower() + said[1:]


class MissingComponent(EnvironmentFault):
    """A program, library or device is not on this machine."""


class BuildFailed(EnvironmentFault):
    """The native benchmark did not compile or link."""


class DatabaseFault(EnvironmentFault):
    """The database can't be opened, read or written, or has another schema."""


class CampaignLocked(EnvironmentFault):
    """Another living controller works on this campaign."""


class NoAnswer(CommtuneError):
    """The database holds nothing that answers the question."""

    exit_code = 4


#: What the HTTP API calls those that its clients tell apart, the more special first.
CODES: dict[str, type[CommtuneError]] = {
    "unknown-name": UnknownName,
    "no-answer": NoAnswer,
    "export-refused": ExportRefused,
    "not-cancellable": NotCancellable,
    "bad-request": UserError,
    "database-fault": DatabaseFault,
    "environment-fault": EnvironmentFault,
}
