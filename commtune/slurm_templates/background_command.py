"""What stands beside a launch, in a job's script and as a command: ``templates/beside.sh.j2``."""

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
    """A command that stands beside a launch, from before it to its end, with other variables."""

    command: tuple[str, ...]  # launcher, program and arguments, one word each
    #: Text in what it prints by which one knows that it works: the launch waits for it; empty for
    #: not waiting.
    sign: str = ""
    #: It ends by itself when this file is there; empty where it has to be asked by a signal.
    stop_file: str = ""
    #: Whole seconds to wait for the sign; without it the launch is not made.
    limit_s: int = 60


@dataclass(frozen=True)
class Presence:
    """Whether it was there as long as the launch that it stood beside."""

    why: str = ""  # what is known where it was not; empty where it was
    killed: bool = False  # it had to be killed, and may have left processes on other nodes

    @classmethod
    def read(cls, printed: str) -> Presence:
        """What the end of its output says; nothing said is no proof."""
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
    """The words that start a launch with what stands beside it, and end with the launch's status.

    The status is 125 if the launch was not made; 143 after a signal, which ends both.

    Args:
        output: file for what stands beside prints; its last line is for `presence`.
        variables: of the launch alone.
    """
    own = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    # -p: what the environment has for a bash to read first is not for this one.
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
