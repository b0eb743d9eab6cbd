"""YAML documents that remember where everything stands.

Every key and list element has a line, so that a wrong value is reported at its place. Reading is
stricter than YAML allows: a key may not occur twice, and a document holds data only (no tags).

What a plain (unquoted) word becomes: `commtune.documents.exact_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from commtune.documents.exact_values import AmbiguousWord, WrittenFloat
from commtune.documents.files import read_file
from commtune.documents.nearest import find_nearest, quote_value
from commtune.errors import DocumentError, InvalidKey, UserError, explain_os_error, os_reason

#: Keys and list indices from the top of a document down to a value.
Where = tuple[str | int, ...]

#: libyaml, where PyYAML was built with it.
_QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDINGS = (".yaml", ".yml")
_MOST_NODES = 50_000  # aliases can make a small file enormous
_DEEPEST = 50
#: Half a character, or none: neither an environment variable nor a database takes it.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
#: Characters of a number: 2^64 has 20.
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
)


#: What a document is, by the key that says so, and the group of commands that checks it.
_KINDS = {
    "campaign": ("a campaign file", "spaces"),
    "space": ("a search space", "spaces"),
    "system": ("the description of a system", "systems"),
}


@dataclass(frozen=True)
class Document:
    """A YAML document: plain data, and the line of everything in it.

    Whoever takes a document raises its `error` for what is wrong in it, with file and line.

    Attributes:
        data: dictionaries, lists and scalars.
        file: where it was read from; ``None`` for data that came from elsewhere.
        error_class: the error to raise for what is wrong in it.
    """

    data: Any
    file: Path | None = None
    error_class: type[DocumentError] = DocumentError
    lines: Mapping[Where, int] = field(default_factory=dict, repr=False)

    def line_of(self, where: Where) -> int | None:
        """The 1-based line of a key or list element; ``None`` where it is not in the document."""
        return self.lines.get(where)

    def error(
        self, message: str, where: Where = (), *, hint: str = "", named: str = ""
    ) -> DocumentError:
        """An error at a place, or at the nearest thing around it that has a line.

        Args:
            named: the place in words, if the message has to begin with them.
        """
        seen = where
        while seen and seen not in self.lines:
            seen = seen[:-1]
        line = self.lines.get(seen)
        return self.error_class(
            message, file=self.file, line=line, hint=hint, where=where, named=named
        )

    def require_kind(self, own: str) -> None:
        """Refuses a document that is plainly one of another kind: its problems would say nothing.

        Args:
            own: the key that says what a document is: ``space`` or ``system``.

        Raises:
            DocumentError: of the document's class; it says what the file is, and what checks it.
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
        """What is wrong with a name, a key, an amount or a file, as an error of this document."""
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
    """A place in a document; ``place / key`` is one below it."""

    document: Document
    where: Where = ()

    def __truediv__(self, step: str | int) -> Place:
        return Place(self.document, (*self.where, step))

    def error(self, message: str, *, hint: str = "") -> DocumentError:
        """An error at this place, or at the nearest thing around it that has a line."""
        return self.document.error(message, self.where, hint=hint)


def is_path(name: str | Path) -> bool:
    """Whether a file is meant, and not something that is shipped under this name."""
    text = str(name)
    return isinstance(name, Path) or "/" in text or text.endswith(_ENDINGS)


def load_document(path: Path, error_class: type[DocumentError] = DocumentError) -> Document:
    """Reads a YAML file.

    Raises:
        DocumentError: of the given class, when it can't be read or is not proper YAML.
    """
    try:
        text = read_file(path).decode("utf-8")
    except UnicodeDecodeError as e:
        raise error_class("not UTF-8 text", file=path, hint="save it as UTF-8") from e
    except OSError as e:
        is_missing = isinstance(e, FileNotFoundError)
        hint = _beside(path) if is_missing else explain_os_error(e).hint or "check the path"
        raise error_class(f"can't be read: {os_reason(e)}", file=path, hint=hint) from e
    return parse_document(text, path, error_class)


def _beside(path: Path) -> str:
    """The hint where there is no such file: another one in its folder that is called nearly so."""
    try:
        others = [other.name for other in path.parent.iterdir() if other.suffix in _ENDINGS]
    except OSError:  # there is no such folder, or it isn't ours to look into
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
    """Reads YAML text; ``file`` is only what errors name.

    Args:
        quick: take libyaml where it is there: ten times as fast, for long files of our own; what
            it says of bad syntax is less good.

    Raises:
        DocumentError: of the given class, when it is not proper YAML.
    """
    try:
        node = yaml.compose(text, Loader=_QUICK if quick else _LimitedLoader)
    except yaml.YAMLError as e:
        raise _syntax_error(e, file, error_class) from e
    except _TooMuch as e:
        raise error_class(str(e), file=file, line=e.line, hint=e.hint) from e
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


class _TooMuch(Exception):
    """A document is too deep or too long."""

    def __init__(self, message: str, hint: str, line: int) -> None:
        super().__init__(message)
        self.hint, self.line = hint, line


class _LimitedLoader(yaml.SafeLoader):
    """Stops where a document gets too deep or too long, before all of it is read."""

    _depth = _count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._count += 1
        line = self.line + 1  # of what was read last
        if self._depth > _DEEPEST:
            raise _TooMuch("nested too deeply", "close brackets that are open", line)
        if self._count > _MOST_NODES:
            raise _TooMuch(f"more than {_MOST_NODES:,} entries", "leave some out", line)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Reader:
    """Turns YAML nodes into plain data, noting lines."""

    def __init__(self, file: Path | None, error_class: type[DocumentError]) -> None:
        self.file = file
        self.error_class = error_class
        self.lines: dict[Where, int] = {}
        # Nodes that are being read: an alias may stand inside of what it means.
        self._open: set[int] = set()
        self._count = 0

    def read(self, node: yaml.Node, where: Where) -> Any:
        self.lines.setdefault(where, node.start_mark.line + 1)
        self._count += 1
        if self._count > _MOST_NODES or id(node) in self._open:
            raise self._error("aliases make the document endless", node, "write it out")
        if len(where) > _DEEPEST:  # aliases nest what was not nested
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
        if getattr(node, "style", None):  # quoted, or a block of text
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


@cache
def list_shipped(folder: str) -> tuple[str, ...]:
    """The names of the YAML files in a folder of the package (``systems/findings``), sorted."""
    names = [entry.name for entry in resources.files("commtune").joinpath(folder).iterdir()]
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


def shipped_file(folder: str, name: str) -> Path:
    """A YAML file of the package, by its name without the ending."""
    return Path(str(resources.files("commtune").joinpath(folder, f"{name}.yaml")))


def load_shipped(
    folder: str, name: str, error_class: type[DocumentError] = DocumentError
) -> Document:
    """The same, read."""
    file = shipped_file(folder, name)
    # Long files of our own: libyaml reads them ten times as fast.
    return parse_document(file.read_text(encoding="utf-8"), file, error_class, quick=True)
