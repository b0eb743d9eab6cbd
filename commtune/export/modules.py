"""Writes module files: Lua for Lmod, and Tcl for Environment Modules, which Lmod reads as well.

They use pushenv rather than setenv, so that unloading restores the user's value. family prevents
loading two profiles together, a combination that was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commtune.export.document import comment_lines


@dataclass(frozen=True)
class Module:
    """The content of a module file.

    Attributes:
        name, title, scope: its name, a title, and what it is for, each in one line.
        lines: the help text.
        note: what to know about the settings, in one line; may be empty.
    """

    name: str
    title: str
    scope: str
    lines: list[str]
    variables: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True)
class ModuleFile:
    """A format of module files.

    Attributes:
        unfit: returns why the format can't represent a value; empty if it can.
    """

    suffix: str
    write: Callable[[Module], str]
    unfit: Callable[[str], str]


_HELP = "module help shows what it is good for."


def _write_lmod(module: Module) -> str:
    body = [
        f"help({_long_bracket(module.lines)})",
        f"whatis({_quoted_lmod('Name: ' + module.name)})",
        f"whatis({_quoted_lmod('Description: ' + module.title)})",
        f"whatis({_quoted_lmod('Scope: ' + module.scope)})",
        *([f"whatis({_quoted_lmod('Note: ' + module.note)})"] if module.note else []),
        'family("commtune")',
        *(f"pushenv({_quoted_lmod(n)}, {_quoted_lmod(v)})" for n, v in module.variables.items()),
    ]
    return comment_lines([module.title, _HELP], "--") + "\n".join(body) + "\n"


def _quoted_lmod(text: str) -> str:
    """Quotes printable text as a Lua string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unfit_lmod(value: str) -> str:
    """Returns why Lmod 8.6, which does the shell quoting, would change a value in some shell."""
    if not value.isprintable():
        return "Lmod does not quote control characters"
    return "Lmod does not quote '{', '}' or '!' for csh" if set(value) & set("{}!") else ""


def _long_bracket(lines: list[str]) -> str:
    """Quotes lines as a Lua long bracket, of a level that doesn't occur in the text."""
    text = "\n".join(lines)
    level = next("=" * n for n in range(1, 99) if f"]{'=' * n}]" not in text)
    return f"[{level}[\n{text}\n]{level}]"


_SPECIAL = '\\"$[]{}'
# Environment Modules before 5.1 have no pushenv. In Lmod 8.6, pushenv in Tcl files saves the new
# value as the old one, so that it would stay. These use setenv: unloading unsets the variable.
_CHOOSE = """\
if {[llength [info commands family]]} {
    family commtune
}
if {[llength [info commands pushenv]] && ![info exists ::env(LMOD_VERSION)]} {
    set commtune_set pushenv
} else {
    set commtune_set setenv
}
"""


def _write_tcl(module: Module) -> str:
    settings = (f"$commtune_set {n} {_quoted_tcl(v)}\n" for n, v in module.variables.items())
    whatis = filter(None, (module.title, module.scope, module.note))
    helping = "".join(f"    puts stderr {_quoted_tcl(line)}\n" for line in module.lines)
    return (
        "#%Module1.0\n"
        + comment_lines([module.title, _HELP], "#")
        + f"proc ModulesHelp {{ }} {{\n{helping}}}\n"
        + "".join(f"module-whatis {_quoted_tcl(text)}\n" for text in whatis)
        + _CHOOSE
        + "".join(settings)
    )


def _quoted_tcl(text: str) -> str:
    """Quotes text as a Tcl word. Braces are escaped too, since a proc counts them."""
    return '"' + "".join("\\" + sign if sign in _SPECIAL else sign for sign in text) + '"'


def _unfit_tcl(value: str) -> str:
    """Returns why Environment Modules 5.2, or Lmod 8.6 for Tcl, would change a value."""
    if not (value.isascii() and value.isprintable()):
        return "module systems carry printable ASCII only, whatever the locale"
    if value.startswith("~") or value.endswith(" "):
        return "module systems change a leading '~' and spaces at the end"
    wrong = sorted(set(value) & set("{}[]!"))
    return f"module systems do not quote {' '.join(wrong)} for csh or fish" if wrong else ""


MODULE_FILES = {
    "lmod": ModuleFile(".lua", _write_lmod, _unfit_lmod),
    "tcl": ModuleFile("", _write_tcl, _unfit_tcl),
}
