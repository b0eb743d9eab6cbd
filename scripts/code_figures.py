"""Figures of the code in ``commtune/``: how much of it there is, how large its pieces are.

    .venv/bin/python scripts/code_figures.py [--by-folder] [FOLDER ...]

Prints public names per 1,000 lines, the biggest flat folder, the share of public functions named
by one word, the share of comment lines, the 90th percentile of function lengths, and import
circles between modules, each beside its limit; exits 1 if one is over it.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Figures:
    """What was counted in a set of files.

    Attributes:
        functions: public functions at module level.
        lengths: lines of the bodies of all functions and methods, docstrings left out.
    """

    lines: int = 0
    comments: int = 0
    names: int = 0
    functions: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    files: Counter[Path] = field(default_factory=Counter)

    def add(self, file: Path) -> None:
        """Counts one file."""
        text = file.read_text("utf-8")
        tree = ast.parse(text)
        self.files[file.parent] += file.name != "__init__.py"
        self.lines += len(text.splitlines())
        self.comments += _comment_lines(text)
        names = [name for node in tree.body for name in _public_names(node)]
        # Alembic finds what a migration defines by fixed names: nobody has to learn them.
        self.names += 0 if file.match("migrations/versions/*.py") else len(names)
        self.functions += [
            node.name
            for node in tree.body
            if isinstance(node, _FUNCTIONS) and not node.name.startswith("_")
        ]
        self.lengths += [_body_lines(n) for n in ast.walk(tree) if isinstance(n, _FUNCTIONS)]

    @property
    def one_word_percent(self) -> float:
        """Share of the public functions whose name is one word, in per cent."""
        one_word = sum("_" not in name.rstrip("_") for name in self.functions)
        return 100 * one_word / max(1, len(self.functions))

    @property
    def longest_usual(self) -> float:
        """The 90th percentile of function lengths, in lines."""
        return quantiles(self.lengths, n=10)[-1] if len(self.lengths) > 1 else 0.0


def _comment_lines(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return len({token.start[0] for token in tokens if token.type == tokenize.COMMENT})


def _public_names(node: ast.stmt) -> Iterator[str]:
    """Functions, classes and constants that a statement at module level defines."""
    found: list[str] = []
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        found = [node.name]
    elif isinstance(node, ast.Assign):
        found = [target.id for target in node.targets if isinstance(target, ast.Name)]
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        found = [node.target.id]
    return (name for name in found if not name.startswith("_"))


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body
    if ast.get_docstring(node) is not None and len(body) > 1:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def find_circles(root: Path) -> list[list[str]]:
    """Sets of modules that import each other at module level, directly or by way of others."""
    modules = {_module(file, root): file for file in root.rglob("*.py")}
    graph = {name: _imports(file, name, modules) for name, file in modules.items()}
    return [sorted(part) for part in _components(graph) if len(part) > 1]


def _module(file: Path, root: Path) -> str:
    parts = file.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(file: Path, name: str, modules: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            # A name that is no module of its own comes from the package's __init__.
            found |= inner & modules.keys() or {node.module}
    return (found & modules.keys()) - {name}


def _components(graph: dict[str, set[str]]) -> Iterator[set[str]]:
    """Strongly connected components: what reaches each other."""
    reach = {name: _reachable(graph, name) for name in graph}
    seen: set[str] = set()
    for name in sorted(graph):
        if name not in seen:
            part = {other for other in reach[name] if name in reach[other]} | {name}
            seen |= part
            yield part


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def _table(figures: Figures, circles: int) -> Iterator[tuple[str, float, float]]:
    """Each figure with the most that it may be; the share of comments is the least, negated."""
    folder, most = figures.files.most_common(1)[0]
    yield "public names per 1,000 lines", 1000 * figures.names / figures.lines, 22
    yield f"files in the biggest folder ({folder})", most, 16
    yield "public functions named by one word, %", figures.one_word_percent, 25
    yield "comment lines, %", -100 * figures.comments / figures.lines, -2.5
    yield "90th percentile of function lengths, lines", figures.longest_usual, 20
    yield "import circles", circles, 0


def _print(title: str, figures: Figures, circles: int) -> bool:
    print(f"{title}: {figures.lines:,} lines, {figures.names:,} public names")
    fine = True
    for name, value, limit in _table(figures, circles):
        over = value > limit
        fine &= not over
        bound = f"at most {limit}" if limit >= 0 else f"at least {-limit}"
        print(f"  {name:60}{abs(value):8.1f}  {bound}{'  <-' if over else ''}")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("commtune")])
    parser.add_argument("--by-folder", action="store_true", help="each sub-folder by itself, too")
    arguments = parser.parse_args()
    circles = find_circles(Path("commtune"))
    for circle in circles:
        print("circle:", ", ".join(circle))
    total, parts = Figures(), dict[Path, Figures]()
    for top in arguments.folders:
        for file in sorted(top.rglob("*.py")):
            total.add(file)
            parts.setdefault(file.parent, Figures()).add(file)
    if arguments.by_folder:
        for folder, figures in sorted(parts.items()):
            print(
                f"{folder}: {figures.lines:,} lines, {figures.names} names "
                f"({1000 * figures.names / max(1, figures.lines):.0f}), "
                f"{figures.files[folder]} files, {figures.one_word_percent:.0f} % one word, "
                f"{100 * figures.comments / max(1, figures.lines):.1f} % comments"
            )
    return 0 if _print("all", total, len(circles)) else 1


if __name__ == "__main__":
    sys.exit(main())
