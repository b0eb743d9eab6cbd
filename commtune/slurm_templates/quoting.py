"""Values in job scripts: for the shell, and for sbatch's own lines.

All that a template puts out becomes one quoted word, unless it is ``QuotedText`` from here.
Scripts are plain ASCII, so that no locale reads them differently and no value begins a line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from commtune.documents.nearest import quote_value
from commtune.errors import UserError

#: Needs no quotes as an argument of a command; ``=`` would make an assignment of a first word.
_BARE = re.compile(r"[A-Za-z0-9_./:,+@%=-]+\Z")
#: sbatch splits its lines at blanks and reads quotes, backslashes and #; % stands for the job's
#: own values in file names.
_DIRECTIVE = re.compile(r"[A-Za-z0-9_.,:=+@/~^*&|()\[\]-]+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: What Slurm's controller takes, in characters: of most options, and of those that differ.
_LONGEST_TEXT = 1024
_LONGEST = {"nodelist": 65536, "exclude": 65536, "output": 4096}
_NEEDED = ("name", "output")
#: bash computes these, refuses to set them, or changes how the script itself runs by them.
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
    """Text that is fit for a script as it stands."""

    def __html__(self) -> str:
        # A template that switches HTML's escapes on must not have our quotes escaped.
        return self


class ShellCode(str):
    """Lines of shell that a person wrote to be run: the lines before and after."""


NO_CODE = ShellCode()


def quote_word(value: object) -> QuotedText:
    """A value as one word of the shell, always quoted.

    Raises:
        UserError: it is neither text nor a number, or holds a NUL character.
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


def quote_words(values: Sequence[object]) -> QuotedText:
    """A command with its arguments, each one word; filter ``words``.

    Raises:
        UserError: no words, or one that can't be quoted.
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
    """A value in an #SBATCH or #PBS line; filter ``directive``.

    Raises:
        UserError: empty, or with blanks, line breaks, quotes or other signs by which sbatch or
            qsub would read something else.
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


def check_options(options: Mapping[str, object]) -> None:
    """Refuses, by name, options of a job that sbatch would read differently.

    Raises:
        UserError: a value that `directive` refuses; empty text and 0 mean that it isn't asked for.
    """
    for name in ("nodes", "ranks_per_node"):
        if not isinstance(options[name], int) or options[name] in (0, False):
            raise UserError(
                f"{name}: {options[name]} is not a number of them", hint="give 1 or more"
            )
    for name, value in options.items():
        try:
            if value not in ("", 0) or name in _NEEDED:
                quote_directive(value)
            _check_length(str(value), _LONGEST.get(name, _LONGEST_TEXT))
        except UserError as e:
            raise UserError(f"{name}: {e.message}", hint=e.hint) from e


def _check_length(text: str, most: int) -> None:
    if len(text) > most:
        raise UserError(
            f"{quote_value(text)} has {len(text)} characters, and {most} is the most",
            hint="choose something shorter",
        )


def slurm_time(seconds: object) -> QuotedText:
    """A time limit as sbatch takes it, rounded up to whole minutes; filter ``slurm_time``.

    Raises:
        UserError: not a positive number of seconds.
    """
    minutes = -int(-_checked_limit(seconds) // 60)
    return QuotedText(f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:00")


def whole_seconds(seconds: object) -> QuotedText:
    """A time limit as qsub takes it, rounded up; a ``UserError`` as for `slurm_time`."""
    return QuotedText(str(math.ceil(_checked_limit(seconds))))


def _checked_limit(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise UserError(f"{quote_value(seconds)} is not a time limit", hint="give seconds above 0")
    if seconds == float("inf"):
        raise UserError("a job without a time limit can't be asked for", hint="give seconds")
    return seconds


def variable_name(name: object) -> QuotedText:
    """The name of an environment variable; filter ``variable``.

    Raises:
        UserError: no legal name, or one that belongs to the shell or to Slurm.
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


def shell_code(lines: object) -> QuotedText:
    """Lines of shell that a person wrote (filter ``code``); a ``UserError`` for a mere value."""
    if not isinstance(lines, ShellCode):
        raise UserError(
            f"{quote_value(lines)} is a value, and values are never run",
            hint="only the job's lines before and after are code",
        )
    return QuotedText(lines)


def check_environment(environment: Mapping[str, str]) -> None:
    """Refuses, by name, what a script can't deliver unchanged.

    Raises:
        UserError: the name of a variable is wrong, or its value is no text or holds NUL.
    """
    for name, value in environment.items():
        variable_name(name)
        try:
            quote_word(value)
        except UserError as e:
            raise UserError(f"{name}: {e.message}", hint=e.hint) from e
        if not isinstance(value, str):
            raise UserError(f"{name}: {quote_value(value)} is not text", hint="put it in quotes")
