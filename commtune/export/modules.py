"""Module files: Lua for Lmod, and Tcl for Environment Modules, which Lmod reads as well."""

from __future__ import annotations

from collections.abc import Callable

from commtune.export.document import (
    ExportDocument,
    Format,
    GuardVerdict,
    comment_lines,
    one_line,
)

_Writer = Callable[[ExportDocument, list[str], GuardVerdict], str]
_SPECIAL = '\\"$[]{}'
# pushenv rather than setenv: unloading then brings back a value that the user had. family keeps
# two profiles from being loaded together, of which neither would be what was measured.
# Versions of Environment Modules before 5.1 have no pushenv, and that of Lmod 8.6 for Tcl files
# saves the new value as the old one, so that it would stay: there setenv must do, and the variable
# is unset after unloading.
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


def _write_lmod(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    settings = [
        f"pushenv({_quoted_lmod(n)}, {_quoted_lmod(v)})" for n, v in document.variables().items()
    ]
    name = _quoted_lmod(one_line("Name: commtune profile " + document.profile.name))
    body = [
        f"help({_long_bracket(lines)})",
        f"whatis({name})",
        f"whatis({_quoted_lmod('Description: ' + document.title)})",
        f"whatis({_quoted_lmod('Scope: ' + ' '.join(document.scope(guards)))})",
        'family("commtune")',
        *settings,
    ]
    return (
        comment_lines([document.title, "module help shows what it is good for."], "--")
        + "\n".join(body)
        + "\n"
    )


def _quoted_lmod(text: str) -> str:
    """A Lua string of printable text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unfit_lmod(value: str) -> str:
    """What Lmod 8.6 doesn't bring unchanged into sh, csh and fish (it quotes by itself)."""
    if not value.isprintable():
        return "Lmod does not quote control characters"
    return "Lmod does not quote '{', '}' or '!' for csh" if set(value) & set("{}!") else ""


def _long_bracket(lines: list[str]) -> str:
    """A long bracket of a level that doesn't occur in the text."""
    text = "\n".join(lines)
    level = next("=" * n for n in range(1, 99) if f"]{'=' * n}]" not in text)
    return f"[{level}[\n{text}\n]{level}]"


def _write_tcl(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    settings = (f"$commtune_set {n} {_quoted_tcl(v)}\n" for n, v in document.variables().items())
    helping = "".join(f"    puts stderr {_quoted_tcl(line)}\n" for line in lines)
    about = (document.title, " ".join(document.scope(guards)))
    return (
        "#%Module1.0\n"
        + comment_lines([document.title, "module help shows what it is good for."], "#")
        + f"proc ModulesHelp {{ }} {{\n{helping}}}\n"
        + "".join(f"module-whatis {_quoted_tcl(text)}\n" for text in about)
        + _CHOOSE
        + "".join(settings)
    )


def _quoted_tcl(text: str) -> str:
    """A Tcl word in double quotes. Braces are escaped too: they are counted inside a proc."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    return "\\" + character if character in _SPECIAL else character


def _unfit_tcl(value: str) -> str:
    """What Environment Modules 5.2, or Lmod 8.6 reading Tcl, garbles in some shell."""
    if not (value.isascii() and value.isprintable()):
        return "module systems carry printable ASCII only, whatever the locale"
    if value.startswith("~") or value.endswith(" "):
        return "module systems change a leading '~' and spaces at the end"
    wrong = sorted(set(value) & set("{}[]!"))
    return f"module systems do not quote {' '.join(wrong)} for csh or fish" if wrong else ""


def _module(name: str, write: _Writer, unfit: Callable[[str], str], file: str) -> Format:
    load = f"module use FOLDER; module load FILE, for FOLDER/{file}"
    return Format(name, write, load, lambda _: "module unload FILE", unfit, general=True)


FORMATS = (
    _module("lmod", _write_lmod, _unfit_lmod, "FILE.lua"),
    _module("tcl", _write_tcl, _unfit_tcl, "FILE"),
)
