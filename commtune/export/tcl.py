"""A Tcl module file for Environment Modules (and for Lmod, which reads Tcl as well).

``pushenv`` (Environment Modules 5.1, Lmod) brings back a user's value on unloading; before 5.1
``setenv`` must do, after which the variable is unset.
"""

from __future__ import annotations

from commtune.export.document import ExportDocument
from commtune.export.formats import Format, commented
from commtune.export.guards import Guards
from commtune.export.remarks import scope, title

_SPECIAL = '\\"$[]{}'
_CHOOSE = """\
if {[llength [info commands family]]} {
    family commtune
}
if {[llength [info commands pushenv]]} {
    set commtune_set pushenv
} else {
    set commtune_set setenv
}
"""


def _write(document: ExportDocument, lines: list[str], guards: Guards) -> str:
    profile = document.profile
    settings = (f"$commtune_set {n} {_quoted(v)}\n" for n, v in document.variables().items())
    helping = "".join(f"    puts stderr {_quoted(line)}\n" for line in lines)
    about = (title(profile), " ".join(scope(profile, guards)))
    return (
        "#%Module1.0\n"
        + commented([title(profile), "module help shows what it is good for."], "#")
        + f"proc ModulesHelp {{ }} {{\n{helping}}}\n"
        + "".join(f"module-whatis {_quoted(text)}\n" for text in about)
        + _CHOOSE
        + "".join(settings)
    )


def _quoted(text: str) -> str:
    """A Tcl word in double quotes. Braces are escaped too: they are counted inside a proc."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in _SPECIAL:
        return "\\" + character
    return character if ord(character) >= 32 else f"\\{ord(character):03o}"


_LOAD = "module use FOLDER; module load FILE, for FOLDER/FILE"
FORMAT = Format("tcl", _write, _LOAD, lambda _: "module unload FILE", general=True)
