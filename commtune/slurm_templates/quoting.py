"""Quotes values in job scripts, for the shell and for #SBATCH and #PBS lines.

Each value in a template becomes one quoted word, unless it is ``QuotedText`` from this module.
Scripts are plain ASCII, so that all locales read them alike and no value starts a new line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from commtune.documents.nearest import quote_value
from commtune.errors import UserError

#: Arguments that need no quotes; a first word does, as ``=`` would make it an assignment.
_BARE = re.compile(r"[A-Za-z0-9_./:,+@%=-]+\Z")
#: Values in directives. sbatch splits these at blanks, interprets quotes, backslashes and #, and
#: replaces % in file names.
_DIRECTIVE = re.compile(r"[A-Za-z0-9_.,:=+@/~^*&|()\[\]-]+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Variables that bash computes, refuses to set, or that would change how the script itself runs.
_OF_THE_SHELL = frozenset([
    "_", "BASHOPTS", "BASHPID", "BASH", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0",
    "BASH_CMDS", "BASH_COMMAND", "BASH_COMPAT", "BASH_ENV", "BASH_EXECUTION_STRING", "BASH_LINENO",
    "BASH_LOADABLES_PATH", "BASH_REMATCH", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO",
    "BASH_VERSION", "BASH_XTRACEFD", "CDPATH", "COMP_WORDBREAKS", "DIRSTACK", "ENV",
    "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "EXECIGNORE", "FIGNORE", "FUNCNAME", "FUNCNEST",
    "GLOBIGNORE", "GROUPS", "HISTCMD", "IFS", "LINENO", "OLDPWD", "OPTARG", "OPTERR", "OPTIND",
    "PATH", "PIPESTATUS", "POSIXLY_CORRECT", "PPID", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3",
    "PS4", "PWD", "RANDOM", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL", "SRANDOM",
    "TIMEFORMAT", "TMOUT", "UID",
])  # fmt: skip
_OF_SCHEDULERS = {
    "Slurm": ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_"),
    "PBS": ("PBS_",),
}


class QuotedText(str):
    """Text that is safe in a script without further quoting."""

    def __html__(self) -> str:
        # Keeps our quotes unescaped in a template that switches HTML escaping on.
        return self


class ShellCode(str):
    """Shell code that a user wrote to be run: the lines ``before`` and ``after``."""


NO_CODE = ShellCode()


def quote_word(value: object) -> QuotedText:
    """Returns a value as one word of the shell, always quoted.

    Raises:
        UserError: it is neither text nor a number, or contains a NUL character.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(
            f"a {type(value).__name__} stands in a template where one value is expected",
            hint="choose one of its entries, or join them with `|words`",
        )
    text = str(value)
    if "\0" in text:
        raise UserError("a NUL character can't stand in a job script", hint="leave it out")
    if text.isascii() and text.isprintable():
        return QuotedText("'" + text.replace("'", "'\\''") + "'")
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        raise UserError(f"{text!a:.60} can't be encoded as UTF-8", hint="correct it") from e
    return QuotedText("$'" + "".join(_spelled(byte) for byte in raw) + "'")


def _spelled(byte: int) -> str:
    if byte in b"'\\":
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _quote_words(values: Sequence[object]) -> QuotedText:
    """Returns a command with its arguments, each one word; filter ``words``.

    Raises:
        UserError: there are no words, or one can't be quoted.
    """
    if isinstance(values, str) or not values:
        raise UserError(
            f"{quote_value(values)} is not a list of words",
            hint="give a program and its arguments",
        )
    first, *others = values
    bare = [str(w) if _BARE.match(str(w)) else quote_word(w) for w in others]
    return QuotedText(" ".join([quote_word(first), *bare]))


def quote_directive(value: object) -> QuotedText:
    """Returns a value for an #SBATCH or #PBS line; filter ``directive``.

    Raises:
        UserError: it is empty, or has blanks, line breaks, quotes or other characters that sbatch
            or qsub would interpret.
    """
    text = "" if isinstance(value, bool) else str(value)
    if not _DIRECTIVE.match(text):
        wrong = next((c for c in text if not _DIRECTIVE.match(c)), None)
        said = f"holds {_named(wrong)}" if wrong else "is empty"
        raise UserError(
            f"{quote_value(value)} can't be the value of a job's option: it {said}",
            hint="use letters, digits and . , : = + @ / ~ ^ * & | ( ) [ ] - _",
        )
    return QuotedText(text)


def _named(character: str) -> str:
    names = {" ": "a blank", "\n": "a line break", "\t": "a tab"}
    return names.get(character) or repr(character)


def _format_slurm_time(seconds: object) -> QuotedText:
    """Returns a time limit for sbatch, in whole minutes, rounded up; filter ``slurm_time``.

    Raises:
        UserError: it isn't a positive number of seconds.
    """
    minutes = -int(-_checked_limit(seconds) // 60)
    return QuotedText(f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00")


def _format_whole_seconds(seconds: object) -> QuotedText:
    """Returns a time limit for qsub, in whole seconds; raises as ``_format_slurm_time``."""
    return QuotedText(str(math.ceil(_checked_limit(seconds))))


def _checked_limit(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise UserError(f"{quote_value(seconds)} is not a time limit", hint="give seconds above 0")
    if seconds == float("inf"):
        raise UserError("a job without a time limit can't be asked for", hint="give seconds")
    return seconds


def check_variable(name: object) -> QuotedText:
    """Returns the name of an environment variable; filter ``variable``.

    Raises:
        UserError: the name is invalid, or belongs to the shell or a scheduler.
    """
    text = str(name)
    if not _VARIABLE.match(text):
        raise UserError(
            f"{quote_value(text)} is not the name of an environment variable",
            hint="use letters, digits and _; begin with a letter",
        )
    if text in _OF_THE_SHELL or text.startswith("BASH_FUNC_"):
        raise UserError(
            f"{text} belongs to the shell and can't be set in a job script",
            hint="set it in the lines before, if it must be",
        )
    owner = next((name for name, own in _OF_SCHEDULERS.items() if text.startswith(own)), "")
    if owner:
        raise UserError(
            f"{text} belongs to {owner} and can't be set in a job script",
            hint="options of the job go into the system description",
        )
    return QuotedText(text)


def _check_code(lines: object) -> QuotedText:
    """Returns a user's shell code unquoted (filter ``code``); a ``UserError`` for a value."""
    if not isinstance(lines, ShellCode):
        raise UserError(
            f"{quote_value(lines)} is a value, and values are never run",
            hint="only the job's lines before and after are code",
        )
    return QuotedText(lines)


#: Filters of templates.
FILTERS: dict[str, Callable[[Any], QuotedText]] = {
    "directive": quote_directive,
    "slurm_time": _format_slurm_time,
    "whole_seconds": _format_whole_seconds,
    "variable": check_variable,
    "words": _quote_words,
    "code": _check_code,
}
