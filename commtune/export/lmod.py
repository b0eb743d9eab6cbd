"""A Lua module file for Lmod.

``pushenv`` rather than ``setenv``: unloading then brings a value back that the user had.
``family`` keeps two profiles from being loaded together, of which neither would be what was
measured.
"""

from __future__ import annotations

from commtune.export.document import ExportDocument, Format, GuardVerdict, comment_lines
from commtune.export.remarks import one_line, profile_scope, profile_title


def _write(document: ExportDocument, lines: list[str], guards: GuardVerdict) -> str:
    profile = document.profile
    settings = [f"pushenv({_quoted(n)}, {_quoted(v)})" for n, v in document.variables().items()]
    name = _quoted(one_line("Name: commtune profile " + profile.name))
    body = [
        f"help({_long(lines)})",
        f"whatis({name})",
        f"whatis({_quoted('Description: ' + profile_title(profile))})",
        f"whatis({_quoted('Scope: ' + ' '.join(profile_scope(profile, guards)))})",
        'family("commtune")',
        *settings,
    ]
    return (
        comment_lines([profile_title(profile), "module help shows what it is good for."], "--")
        + "\n".join(body)
        + "\n"
    )


def _quoted(text: str) -> str:
    """A Lua string of printable text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unfit(value: str) -> str:
    """What Lmod 8.6 doesn't bring unchanged into sh, csh and fish (it quotes by itself)."""
    if not value.isprintable():
        return "Lmod does not quote control characters"
    return "Lmod does not quote '{', '}' or '!' for csh" if set(value) & set("{}!") else ""


def _long(lines: list[str]) -> str:
    """A long bracket of a level that doesn't occur in the text."""
    text = "\n".join(lines)
    level = next("=" * n for n in range(1, 99) if f"]{'=' * n}]" not in text)
    return f"[{level}[\n{text}\n]{level}]"


_LOAD = "module use FOLDER; module load FILE, for FOLDER/FILE.lua"
FORMAT = Format("lmod", _write, _LOAD, lambda _: "module unload FILE", _unfit, general=True)
