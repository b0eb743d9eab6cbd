"""Runs a background command beside a launch, by the shell code in ``templates/beside.sh.j2``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_TO_THE_END = "this was there to the end"
_KILLED = ", and had to be killed"
_LAST_LINE = re.compile(r"^commtune: (this .*)$", re.MULTILINE)


@dataclass(frozen=True)
class BackgroundCommand:
    """A command that runs from before a launch to its end, without the launch's variables."""

    command: tuple[str, ...]  # launcher, program and arguments, one word each
    #: Text in its output that shows that it works, for which the launch waits; empty for no wait.
    sign: str = ""
    #: A file that makes it end when it appears; empty if it has to be ended by a signal.
    stop_file: str = ""
    #: Whole seconds to wait for the sign; if it doesn't come, the launch is not made.
    limit_s: int = 60


@dataclass(frozen=True)
class Presence:
    """Whether a background command ran for the whole launch."""

    why: str = ""  # why it didn't; empty if it did
    killed: bool = False  # it had to be killed, and may have left processes on other nodes

    @classmethod
    def read(cls, printed: str) -> Presence:
        """Reads the last line of its output; without one, it doesn't count as present."""
        said = _LAST_LINE.findall(printed)
        if not said:
            return cls("nobody knows how long it was there", killed=True)
        words, killed = said[-1].removesuffix(_KILLED), said[-1].endswith(_KILLED)
        return cls("" if words == _TO_THE_END else words.replace("this", "it", 1), killed)

    @property
    def was_there(self) -> bool:
        return not self.why


def launch_with(
    beside: BackgroundCommand, output: str, variables: Mapping[str, str], command: Sequence[str]
) -> list[str]:
    """Returns the command line of a launch with a background command beside it.

    Its exit status is the launch's; 125 if that was not made, 143 after a signal, which ends both.

    Args:
        output: file for the background command's output; its last line is for ``Presence``.
        variables: of the launch alone.
    """
    own = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    # -p: this bash must not read the file in BASH_ENV, or functions from the environment.
    return [
        "bash", "-p", "-c", _script(), "beside",
        output, beside.stop_file, beside.sign, str(beside.limit_s),
        str(len(beside.command)), *beside.command, *own, *command,
    ]  # fmt: skip


@cache
def _script() -> str:
    templates = files(__package__) / "templates"
    names = ("beside.sh.j2", "beside_command.sh")
    return "".join((templates / name).read_text(encoding="ascii") for name in names)
