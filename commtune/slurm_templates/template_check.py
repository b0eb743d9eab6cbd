"""Checks templates before they are used: values stand only where quoting holds.

A quoted value is safe as a word or part of a word. Inside quotes of the template's own, in a
comment, in a here-document or in arithmetic its quotes would mean something else, so a template
that puts a value there is refused, with its line. The reading is by lines of text, from top to
bottom, as if every branch of the template were taken.
"""

from __future__ import annotations

import re
from enum import Enum

import jinja2
from jinja2 import nodes

from commtune.errors import UserError

#: Filters whose result is meant for #SBATCH lines, and for nowhere else.
_FOR_DIRECTIVES = frozenset({"directive", "slurm_time"})
#: Sections whose text is read at another place.
_ELSEWHERE = frozenset({"block", "call", "include", "macro"})
_HERE = re.compile(r"<<(?!<)-?\s*[\"'\\]?(\w+)")


class _Place(Enum):
    """Where in a shell script a value would stand."""

    PLAIN = "plain"
    SINGLE = "inside single quotes"
    DOUBLE = "inside double quotes"
    BACKTICK = "inside backticks"
    COMMENT = "in a comment"
    DIRECTIVE = "in an #SBATCH line"
    HERE = "in a here-document"
    ARITHMETIC = "in arithmetic"
    ESCAPED = "after a backslash or $"


_QUOTES = {"'": _Place.SINGLE, '"': _Place.DOUBLE, "`": _Place.BACKTICK}


class _Shell:
    """Follows quoting through the fixed text of a script."""

    def __init__(self) -> None:
        self.place = _Place.PLAIN
        self._line = ""
        self._skip = False
        self._here = ""
        self._ansi = False  # single quotes after $, in which a backslash counts
        self._inside = 0  # ${...} and $(...) that are open inside double quotes
        self._lost = False  # quotes within those: what follows in the line may be inside quotes

    def feed(self, text: str) -> None:
        for character in text:
            self._feed(character)

    def value(self) -> _Place:
        """Where a value stands that comes next."""
        last = self._line[-1:]
        place = _Place.DOUBLE if self._lost else self.place
        if place is _Place.PLAIN and (self._skip or last == "$"):
            place = _Place.ESCAPED
        elif place is _Place.COMMENT and self._line.startswith("#SBATCH "):
            place = _Place.DIRECTIVE
        self._line += "x"
        return place

    def _feed(self, character: str) -> None:
        before = self._line
        self._line = "" if character == "\n" else before + character
        self._lost = self._lost and character != "\n"
        if self._skip:
            self._skip = False
        elif self.place is _Place.HERE:
            self._end_here(character, before)
        elif self.place is _Place.COMMENT:
            if character == "\n":
                self.place = _Place.PLAIN
        elif character == "\\" and (self.place is not _Place.SINGLE or self._ansi):
            self._skip = True
        else:
            self._change(character, before)

    def _change(self, character: str, before: str) -> None:
        if self.place is _Place.DOUBLE:
            self._double(character, before)
        elif self.place in _QUOTES.values():
            if _QUOTES.get(character) is self.place:
                self.place = _Place.PLAIN
        elif self.place is _Place.ARITHMETIC:
            if before.endswith(")") and character == ")":
                self.place = _Place.PLAIN
        else:
            self._open(character, before)

    def _double(self, character: str, before: str) -> None:
        if character in "({" and before.endswith("$"):
            self._inside += 1
        elif character in ")}" and self._inside:
            self._inside -= 1
        elif character == "`":
            self._inside ^= 1
        elif character == '"':
            self._lost = self._lost or self._inside > 0
            self.place, self._inside = _Place.PLAIN, 0

    def _open(self, character: str, before: str) -> None:
        if character in _QUOTES:
            self.place = _QUOTES[character]
            self._ansi = character == "'" and before.endswith("$")
        elif character == "#" and (not before or before[-1] in " \t;|&("):
            self.place = _Place.COMMENT
        elif character == "(" and before.endswith("("):
            self.place = _Place.ARITHMETIC
        elif character == "\n" and (found := _HERE.search(before)):
            self.place, self._here = _Place.HERE, found[1]

    def _end_here(self, character: str, before: str) -> None:
        if character == "\n" and before.strip() == self._here:
            self.place = _Place.PLAIN


def check_template(name: str, source: str, environment: jinja2.Environment) -> None:
    """Refuses a template that puts a value where quoting doesn't hold.

    Raises:
        UserError: with the template's name and the line.
        jinja2.TemplateSyntaxError: it is no template.
    """
    shell = _Shell()
    expression: list[str] | None = None
    begun = False
    for line, kind, text in environment.lex(source, name):
        if begun and kind == "name":
            _check_section(shell, text, f"{name}:{line}")
        begun = kind == "block_begin" or (begun and kind == "whitespace")
        if kind == "data":
            shell.feed(text)
        elif kind == "variable_begin":
            expression = []
        elif kind == "variable_end" and expression is not None:
            _check_value(shell, "".join(expression), f"{name}:{line}", environment)
            expression = None
        elif expression is not None:
            expression.append(text)


def _check_section(shell: _Shell, word: str, where: str) -> None:
    if word == "filter":
        raise UserError(
            f"{where}: a filter section would change quoted values", hint="filter the value itself"
        )
    if word in _ELSEWHERE and shell.place is not _Place.PLAIN:
        raise UserError(
            f"{where}: {{% {word} %}} stands {shell.place.value}",
            hint="what it brings is checked as if it stood alone; let it",
        )


def _check_value(
    shell: _Shell, expression: str, where: str, environment: jinja2.Environment
) -> None:
    place = shell.value()
    outer, inner = _filters(expression, environment)
    if place is _Place.DIRECTIVE:
        if outer not in _FOR_DIRECTIVES:
            raise UserError(
                f"{where}: {{{{ {expression.strip()} }}}} stands {place.value} without its filter",
                hint="write {{ value|directive }}, or {{ seconds|slurm_time }}",
            )
    elif place is not _Place.PLAIN:
        raise UserError(
            f"{where}: {{{{ {expression.strip()} }}}} stands {place.value}",
            hint="let it stand alone; it is quoted by itself",
        )
    elif inner & _FOR_DIRECTIVES:
        raise UserError(
            f"{where}: {{{{ {expression.strip()} }}}} has a filter for #SBATCH lines",
            hint="leave the filter out; the value is quoted by itself",
        )


def _filters(expression: str, environment: jinja2.Environment) -> tuple[str, set[str]]:
    """The outermost filter of an expression, and all in it."""
    tree = environment.parse("{{" + expression + "}}")
    output = next(tree.find_all(nodes.Output)).nodes[0]
    outer = output.name if isinstance(output, nodes.Filter) else ""
    return outer, {found.name for found in tree.find_all(nodes.Filter)}
