"""A pattern's file, looked at before anything is started: nothing in it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from commtune.documents.nearest import find_nearest, quote_value
from commtune.errors import CampaignError

#: Statements whose bodies are a module's own.
_INSIDE = (ast.If, ast.Try, ast.With, ast.For, ast.While)
_PATTERN = "Pattern"
#: Calls that may bind whatever they like.
_OPAQUE = ("exec", "globals", "setattr", "vars")


def check_pattern_file(path: Path, kind: str) -> None:
    """Sees that a file can be read as Python, and has the class; where it can't be told, it has.

    Args:
        kind: the class; empty for the only one that the file has.

    Raises:
        CampaignError: with the file and, where there is one, its line.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise CampaignError(
            f"this is no Python: {error.msg}" + (f": {line[:60]}" if line else ""),
            file=path,
            line=error.lineno,
            hint="the benchmark's file has to be mended first",
        ) from error
    except OSError as error:
        raise CampaignError(f"it can't be read: {error.strerror}", file=path) from error
    except (ValueError, RecursionError, MemoryError):
        return  # Python itself will say it
    statements = list(_statements(tree.body))
    classes = [one for one in statements if isinstance(one, ast.ClassDef)]
    if kind:
        _check_named(path, kind, statements, classes)
    else:
        _check_only(path, statements, classes)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, but for those inside of functions and classes."""
    for statement in body:
        yield statement
        if isinstance(statement, _INSIDE):
            inner = (getattr(statement, part, []) for part in ("body", "orelse", "finalbody"))
            for part in inner:
                yield from _statements(part)
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)


def _check_named(
    path: Path, kind: str, statements: Sequence[ast.stmt], classes: Sequence[ast.ClassDef]
) -> None:
    bound = set(_bound(statements))
    if kind not in bound and "*" not in bound:
        names = [one.name for one in classes]
        known = find_nearest(kind, names)
        there = f"nearest: {known}" if known else f"classes there: {', '.join(names) or 'none'}"
        raise CampaignError(f"there is no class {quote_value(kind)}", file=path, hint=there)
    named = [one for one in classes if one.name == kind]
    if named and not named[-1].bases and not named[-1].decorator_list:
        raise CampaignError(
            f"the class {kind} is no pattern",
            file=path,
            line=named[-1].lineno,
            hint=f"from commtune import Pattern, and class {kind}(Pattern)",
        )


def _check_only(
    path: Path, statements: Sequence[ast.stmt], classes: Sequence[ast.ClassDef]
) -> None:
    patterns = {_PATTERN}
    for one in classes:  # in the order of the file, as they are made
        if any(_last_name(base) in patterns for base in one.bases):
            patterns.add(one.name)
    names = sorted(patterns - {_PATTERN})
    if len(names) > 1:
        raise CampaignError(
            f"it has several patterns: {', '.join(names)}",
            file=path,
            hint=f"name one: `python: {path.name}:{names[0]}`",
        )
    no_class = (ast.ClassDef, ast.FunctionDef, ast.Import)
    others = set(_bound([one for one in statements if not isinstance(one, no_class)]))
    if not any(one.bases for one in classes) and not others - {_PATTERN}:
        raise CampaignError(
            "there is no pattern in it",
            file=path,
            hint="a pattern is a class: from commtune import Pattern, and class NAME(Pattern)",
        )


def _bound(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that a module has once it was run; ``*`` where it takes whatever another has."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).partition(".")[0] for one in statement.names)
        else:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield inner.id
                elif isinstance(inner, ast.Call) and _last_name(inner.func) in _OPAQUE:
                    yield "*"


def _last_name(expression: ast.expr) -> str:
    """``Pattern`` of both ``Pattern`` and ``twin.Pattern``; empty for what is no name."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""
