"""Reads YAML documents with the line of every key and list element, to report errors there.

It is stricter than YAML: duplicate keys and tags are errors. ``exact_values`` describes the
values of plain (unquoted) scalars.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from commtune.documents.exact_values import AmbiguousWord, WrittenFloat
from commtune.documents.files import read_file
from commtune.documents.nearest import find_nearest, quote_value, suggest_nearest
from commtune.errors import (
    DocumentError,
    InvalidKey,
    UnknownName,
    UserError,
    explain_os_error,
    os_reason,
)

#: The path to a value: keys and list indices from the top of a document.
Where = tuple[str | int, ...]

#: The loader of libyaml, if PyYAML was built with it.
_QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDINGS = (".yaml", ".yml")
_MOST_NODES = 50_000  # aliases can make a small file enormous
_DEEPEST = 50
#: NUL and surrogates, which neither environment variables nor databases accept.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
#: The most characters of a number: 2^64 has 20.
_LONGEST_NUMBER = 24
_TAG = "tag:yaml.org,2002:"
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]*([eE][-+]?[0-9]{1,2})?\Z")
_HINTS = (
    ("'\\t'", "indent with spaces; YAML does not allow tabs"),
    ("mapping values are not allowed", "indent keys alike; put a value with ': ' in quotes"),
    ("could not find expected ':'", "every key is followed by ': ' and its value"),
    ("expected <block end>", "entries of one list or mapping have the same indentation"),
    ("did not find expected", "entries of one list or mapping have the same indentation"),
    ("while scanning a quoted", "close the quotes"),
    ("unexpected end of stream", "close the quotes"),
    ("cannot start any token", "put a value that begins with a special character in quotes"),
    ("flow", "close the bracket"),
    ("a number is too large", "a character is at most \\U0010FFFF, the version 1.2"),
)


#: Kinds of documents by their distinctive key, with the group of commands that validates them.
_KINDS = {
    "campaign": ("a campaign file", "spaces"),
    "space": ("a search space", "spaces"),
    "system": ("the description of a system", "systems"),
}


@dataclass(frozen=True)
class Document:
    """A YAML document: plain data, and the line of each value.

    Users of a document raise its ``error`` for problems in it, with file and line.

    Attributes:
        data: dictionaries, lists and scalars.
        file: the file that it was read from; ``None`` for data from elsewhere.
        error_class: the class of errors about it.
        lines: 1-based lines of all keys and list elements, by path.
    """

    data: Any
    file: Path | None = None
    error_class: type[DocumentError] = DocumentError
    lines: Mapping[Where, int] = field(default_factory=dict, repr=False)

    def error(
        self, message: str, where: Where = (), *, hint: str = "", named: str = ""
    ) -> DocumentError:
        """Returns an error at a place, or at its nearest parent that has a line.

        Args:
            named: a description of the place, if the message must begin with it.
        """
        line = self.nearest_line(where)
        return self.error_class(
            message, file=self.file, line=line, hint=hint, where=where, named=named
        )

    def nearest_line(self, where: Where) -> int | None:
        """Returns the line of a place, or of its nearest parent that has one."""
        while where and where not in self.lines:
            where = where[:-1]
        return self.lines.get(where)

    def require_kind(self, own: str) -> None:
        """Refuses a document of another kind, for which validation errors would be misleading.

        Args:
            own: the distinctive key of the expected kind: ``space`` or ``system``.

        Raises:
            DocumentError: the document is of another kind; the hint is how to validate that.
        """
        keys = self.data.keys() if isinstance(self.data, dict) else ()
        # A campaign has a space and a system, so it comes first.
        for key, (kind, checked_by) in _KINDS.items():
            if key in keys and key == own:
                return
            if key in keys:
                hint = f"commtune {checked_by} validate {self.file or 'FILE'}"
                raise self.error(f"this is {kind}", (key,), hint=hint)

    @contextmanager
    def placing(self, *where: str | int) -> Iterator[None]:
        """Turns errors about a name, a key, a quantity or a file into errors of this document."""
        try:
            yield
        except InvalidKey as error:
            raise self.error(error.problem, (*where, error.key), hint=error.hint) from error
        except UserError as error:
            if isinstance(error, DocumentError):
                raise
            raise self.error(error.message, where, hint=error.hint) from error
        except OSError as error:
            fault = explain_os_error(error)
            raise self.error(fault.message, where, hint=fault.hint) from error


@dataclass(frozen=True)
class Place:
    """A place in a document; ``place / key`` is a place below it."""

    document: Document
    where: Where = ()

    def __truediv__(self, step: str | int) -> Place:
        return Place(self.document, (*self.where, step))

    def error(self, message: str, *, hint: str = "") -> DocumentError:
        """Returns an error at this place, or at its nearest parent that has a line."""
        return self.document.error(message, self.where, hint=hint)


def is_path(name: str | Path) -> bool:
    """Whether a name is the path of a file, and not the name of a shipped document."""
    text = str(name)
    return isinstance(name, Path) or "/" in text or text.endswith(_ENDINGS)


def load_document(path: Path, error_class: type[DocumentError] = DocumentError) -> Document:
    """Reads a YAML file.

    Raises:
        DocumentError: it can't be read or is not valid YAML; of the given class.
    """
    try:
        text = read_file(path).decode("utf-8")
    except UnicodeDecodeError as e:
        raise error_class("not UTF-8 text", file=path, hint="save it as UTF-8") from e
    except OSError as e:
        is_missing = isinstance(e, FileNotFoundError)
        hint = _beside(path) if is_missing else explain_os_error(e).hint or "check the path"
        raise error_class(f"can't be read: {os_reason(e)}", file=path, hint=hint) from None
    return parse_document(text, path, error_class)


def _beside(path: Path) -> str:
    """Returns the hint for a missing file: another one in its folder with a similar name."""
    try:
        others = [other.name for other in path.parent.iterdir() if other.suffix in _ENDINGS]
    except OSError:  # there is no such folder, or it is not readable
        others = []
    found = find_nearest(path.name, others, cutoff=0.8)
    return f"nearest: {path.parent / found}" if found else "check the path"


def parse_document(
    text: str,
    file: Path | None = None,
    error_class: type[DocumentError] = DocumentError,
    *,
    quick: bool = False,
) -> Document:
    """Parses YAML text; ``file`` is only used in errors.

    Args:
        quick: whether to use libyaml if available, which is ten times as fast, but has worse error
            messages; for long files of the package.

    Raises:
        DocumentError: it is not valid YAML; of the given class.
    """
    try:
        node = yaml.compose(text, Loader=_QUICK if quick else _LimitedLoader)
    except yaml.YAMLError as e:
        raise _syntax_error(e, file, error_class) from e
    except DocumentError as e:  # of _LimitedLoader
        raise error_class(e.problem, file=file, line=e.line, hint=e.hint) from e
    reader = _Reader(file, error_class)
    data = None if node is None else reader.read(node, ())
    return Document(data, file, error_class, reader.lines)


def _syntax_error(
    e: yaml.YAMLError, file: Path | None, error_class: type[DocumentError]
) -> DocumentError:
    mark = getattr(e, "problem_mark", None) or getattr(e, "context_mark", None)
    words = [
        getattr(e, "context", None),
        getattr(e, "problem", None) or getattr(e, "reason", None),
    ]
    problem = ", ".join(str(word) for word in words if word) or "unreadable"
    hint = next((hint for sign, hint in _HINTS if sign in problem), "")
    return error_class(
        f"not proper YAML: {problem}", file=file, line=mark.line + 1 if mark else None, hint=hint
    )


class _LimitedLoader(yaml.SafeLoader):
    """A loader that limits depth and entries of a document while it is read."""

    _depth = _count = 0

    def fetch_more_tokens(self) -> None:
        try:
            super().fetch_more_tokens()
        except ValueError as error:  # of chr() and int(), for an escape or a version
            what = "a number is too large"
            raise yaml.scanner.ScannerError(None, None, what, self.get_mark()) from error

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._count += 1
        line = self.line + 1  # of the last token
        if self._depth > _DEEPEST:
            raise DocumentError(
                "nested too deeply", line=line, hint="close brackets that are open"
            )
        if self._count > _MOST_NODES:
            raise DocumentError(
                f"more than {_MOST_NODES:,} entries", line=line, hint="leave some out"
            )
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Reader:
    """A converter of YAML nodes into plain data, which records their lines."""

    def __init__(self, file: Path | None, error_class: type[DocumentError]) -> None:
        self.file = file
        self.error_class = error_class
        self.lines: dict[Where, int] = {}
        # Nodes that are being read, to detect an alias inside of its own anchor.
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, where: Where) -> Any:
        self.lines.setdefault(where, node.start_mark.line + 1)
        self._count += 1
        if self._count > _MOST_NODES or id(node) in self._open:
            raise self._error("aliases make the document endless", node, "write it out")
        if len(where) > _DEEPEST:  # aliases may nest deeper than the text does
            raise self._error("nested too deeply", node, "write aliases out")
        if not node.tag.startswith(_TAG) or node.tag.startswith(_TAG + "python"):
            raise self._error(
                f"tag {quote_value(node.tag)} is not used here", node, "leave the tag out"
            )
        self._open.add(id(node))
        data = self._read_inside(node, where)
        self._open.discard(id(node))
        return data

    def _read_inside(self, node: yaml.Node, where: Where) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*where, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in data:
                first = self.lines[(*where, key)]
                raise self._error(
                    f"key {quote_value(key)} occurs twice; first in line {first}",
                    key_node,
                    "remove one of them",
                )
            self.lines[(*where, key)] = key_node.start_mark.line + 1
            data[key] = self.read(value_node, (*where, key))
        return data

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag == _TAG + "merge":
            raise self._error("a key must be a plain word", node, "write `key: value`")
        return self._text(node)

    def _text(self, node: yaml.Node) -> str:
        text = str(node.value)
        if found := _NO_TEXT.search(text):
            what = "a NUL character" if found[0] == "\0" else "half a character (a surrogate)"
            raise self._error(f"{what} can't stand here", node, "leave it out")
        return text

    def _scalar(self, node: yaml.Node) -> Any:
        text, kind = self._text(node), node.tag.removeprefix(_TAG)
        if getattr(node, "style", None):  # quoted, or a block scalar
            return text
        is_whole = kind == "int" and _DECIMAL.match(text)
        if is_whole or (kind == "float" and _FRACTION.match(text)):
            if len(text) > _LONGEST_NUMBER:
                raise self._error(
                    f"the number {quote_value(text)} is too long", node, "put text in quotes"
                )
            return int(text) if is_whole else WrittenFloat(text)
        if kind == "bool":
            lower = text.lower()
            return lower == "true" if lower in ("true", "false") else AmbiguousWord(text)
        return None if kind == "null" else text

    def _error(self, message: str, node: yaml.Node, hint: str) -> DocumentError:
        line = node.start_mark.line + 1
        return self.error_class(message, file=self.file, line=line, hint=hint)


def require_shipped(kind: str, name: str, known: Collection[str]) -> None:
    """Raises an ``UnknownName`` unless a shipped document of this kind has the name."""
    if name not in known:
        raise UnknownName(
            f"no {kind} is called {quote_value(name)}",
            hint=f"{suggest_nearest(name, known)}; a file is named with its ending: ./NAME.yaml",
        )


@cache
def list_shipped(folder: str) -> tuple[str, ...]:
    """Returns the names of the YAML files in a folder of the package, sorted."""
    names = [entry.name for entry in resources.files("commtune").joinpath(folder).iterdir()]
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def shipped_file(folder: str, name: str) -> Path:
    """Returns the path of a YAML file of the package, by its name without the suffix."""
    return Path(str(resources.files("commtune").joinpath(folder, f"{name}.yaml")))


def load_shipped(
    folder: str, name: str, error_class: type[DocumentError] = DocumentError
) -> Document:
    """Reads a YAML file of the package, by its name without the suffix."""
    file = shipped_file(folder, name)
    return parse_document(file.read_text(encoding="utf-8"), file, error_class, quick=True)
