"""Checks templates before they are used: values may stand only where their quoting works.

A quoted value is safe as a word or a part of one, but not inside the template's own quotes, which
its quotes would end. All branches of a template are read in order, as if all were taken.
"""

from __future__ import annotations

import re

import jinja2
from jinja2 import nodes

from commtune.errors import UserError

#: Filters for #SBATCH and #PBS lines only.
_FOR_DIRECTIVES = frozenset({"directive", "slurm_time", "whole_seconds"})
#: Sections whose text may be inserted at another place.
_ELSEWHERE = frozenset({"block", "call", "include", "macro"})

#: What begins a context in a shell script where quoting doesn't work, or (a line's end) may.
_OPENING = re.compile(
    r"(?P<escape>\\.?)|(?P<ansi>\$')|(?P<single>')|(?P<double>\")|(?P<backtick>`)"
    r"|(?P<directive>^#(?:SBATCH|PBS) )|(?P<comment>(?<![^\s;|&(])#)|(?P<arithmetic>\(\()"
    r"|(?P<here>\n)",
    re.MULTILINE | re.DOTALL,
)
_CLOSING = {
    "ansi": r"(\\.|[^'\\])*'",  # in $'...' a backslash escapes
    "single": r"[^']*'",
    "double": r'(\\.|[^"\\])*"',
    "backtick": r"(\\.|[^`\\])*`",
    "directive": r"[^\n]*(?=\n)",
    "comment": r"[^\n]*(?=\n)",
    "arithmetic": r"(\\.|(?!\)\)).)*\)\)",
}
_PLACES = {
    "escape": "after a backslash or $",
    "ansi": "inside single quotes",
    "single": "inside single quotes",
    "double": "inside double quotes",
    "backtick": "inside backticks",
    "directive": "in an #SBATCH or #PBS line",
    "comment": "in a comment",
    "arithmetic": "in arithmetic",
    "here": "in a here-document",
}
_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*[\"'\\]?(\w+)")


class _Shell:
    """The quoting contexts in the text of a script, as far as it was read."""

    def __init__(self) -> None:
        self.text = ""
        self._at = 0  # after the last context that was closed; not read again
        self._lost_at = -1

    def place(self) -> str:
        """Describes the context of a value that comes next; empty where quoting works."""
        while opened := _OPENING.search(self.text, self._at):
            kind = str(opened.lastgroup)
            closing = _CLOSING.get(kind, "")
            if kind == "here":
                line = self.text[: opened.start()].rpartition("\n")[2]
                here = _HERE.search(line)
                closing = rf"([^\n]*\n)*?[ \t]*{here[1]}[ \t]*(?=\n)" if here else ""
            closed = re.compile(closing, re.DOTALL).match(self.text, opened.end())
            if closed is None or opened[0] == "\\":
                return _PLACES[kind]
            self._at = closed.end()
            if kind == "double" and _is_unbalanced(closed[0]):
                self._lost_at = self._at
        # After quotes inside "$(...)", the rest of the line may be inside quotes.
        if self._lost_at >= 0 and "\n" not in self.text[self._lost_at :]:
            return _PLACES["double"]
        return _PLACES["escape"] if self.text.endswith("$") else ""


def _is_unbalanced(quoted: str) -> bool:
    """Whether ${...}, $(...) or backticks are still open at the end of a double-quoted text."""
    depth = 0
    for sign in re.findall(r"\\.|\$[({]|[)}`]", quoted):
        if sign in ("$(", "${"):
            depth += 1
        elif sign == "`":
            depth ^= 1
        elif sign in ")}" and depth:
            depth -= 1
    return depth > 0


def check_template(name: str, source: str, environment: jinja2.Environment) -> None:
    """Refuses a template with a value where quoting doesn't work.

    Raises:
        UserError: with the template's name and the line.
        jinja2.TemplateSyntaxError: it isn't a valid template.
    """
    shell = _Shell()
    expression: list[str] | None = None
    begun = False
    for line, kind, token in environment.lex(source, name):
        if begun and kind == "name":
            _check_section(shell, token, f"{name}:{line}")
        begun = kind == "block_begin" or (begun and kind == "whitespace")
        if kind == "data":
            shell.text += token
        elif kind == "variable_begin":
            expression = []
        elif kind == "variable_end" and expression is not None:
            _check_value(shell, "".join(expression), f"{name}:{line}", environment)
            shell.text += "x"  # stands for the quoted word
            expression = None
        elif expression is not None:
            expression.append(token)


def _check_section(shell: _Shell, word: str, where: str) -> None:
    if word == "filter":
        raise UserError(
            f"{where}: a filter section would change quoted values", hint="filter the value itself"
        )
    if word in _ELSEWHERE and (place := shell.place()):
        raise UserError(
            f"{where}: {{% {word} %}} stands {place}",
            hint="what it brings is checked as if it stood alone; let it",
        )


def _check_value(
    shell: _Shell, expression: str, where: str, environment: jinja2.Environment
) -> None:
    place, shown = shell.place(), f"{{{{ {expression.strip()} }}}}"
    tree = environment.parse("{{" + expression + "}}")
    outermost = next(tree.find_all(nodes.Output)).nodes[0]
    outer = outermost.name if isinstance(outermost, nodes.Filter) else ""
    if place == _PLACES["directive"]:
        if outer not in _FOR_DIRECTIVES:
            raise UserError(
                f"{where}: {shown} stands {place} without its filter",
                hint="write {{ value|directive }}, or {{ seconds|slurm_time }}",
            )
    elif place:
        raise UserError(
            f"{where}: {shown} stands {place}",
            hint="let it stand alone; it is quoted by itself",
        )
    elif _FOR_DIRECTIVES & {found.name for found in tree.find_all(nodes.Filter)}:
        raise UserError(
            f"{where}: {shown} has a filter for #SBATCH or #PBS lines",
            hint="leave the filter out; the value is quoted by itself",
        )
