"""A Tcl module file for Environment Modules (and for Lmod, which reads Tcl as well).

``pushenv`` (Environment Modules 5.1) brings back a user's value on unloading. Elsewhere ``setenv``
must do, and the variable is unset after unloading: versions before 5.1 have no ``pushenv``, and
that of Lmod 8.6 for Tcl files saves the new value as the old one, so that it would stay.
"""

from __future__ import annotations

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines
from commtune.export.remarks import profile_scope, profile_title

_SPECIAL = '\\"$[]{}'
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


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    profile = document.profile
    settings = (f"$commtune_set {n} {_quoted(v)}\n" for n, v in document.variables().items())
    helping = "".join(f"    puts stderr {_quoted(line)}\n" for line in lines)
    about = (profile_title(profile), " ".join(profile_scope(profile, guards)))
    return (
        "#%Module1.0\n"
        + comment_lines([profile_title(profile), "module help shows what it is good for."], "#")
        + f"proc ModulesHelp {{ }} {{\n{helping}}}\n"
        + "".join(f"module-whatis {_quoted(text)}\n" for text in about)
        + _CHOOSE
        + "".join(settings)
    )


def _quoted(text: str) -> str:
    """A Tcl word in double quotes. Braces are escaped too: they are counted inside a proc."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    return "\\" + character if character in _SPECIAL else character


def _unfit(value: str) -> str:
    """What Environment Modules 5.2, or Lmod 8.6 reading Tcl, garbles in some shell."""
    if not (value.isascii() and value.isprintable()):
        return "module systems carry printable ASCII only, whatever the locale"
    if value.startswith("~") or value.endswith(" "):
        return "module systems change a leading '~' and spaces at the end"
    wrong = sorted(set(value) & set("{}[]!"))
    return f"module systems do not quote {' '.join(wrong)} for csh or fish" if wrong else ""


_LOAD = "module use FOLDER; module load FILE, for FOLDER/FILE"
FORMAT = Format("tcl", _write, _LOAD, lambda _: "module unload FILE", _unfit, general=True)
