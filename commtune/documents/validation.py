"""Turns pydantic's validation errors into errors with file, line and the nearest legal word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from commtune.documents.nearest import quote_value, suggest
from commtune.documents.yaml_document import Document, Where
from commtune.errors import DocumentError

_Model = TypeVar("_Model", bound=BaseModel)
_PLAIN = {
    "too_short": ("is empty", "give it at least one entry"),
    "list_type": ("is not a list", "write it in brackets: [...]"),
    "tuple_type": ("is not a list", "write it in brackets: [...]"),
    "dict_type": ("is not a mapping", "write it as `key: value`"),
    "model_type": ("is not a mapping", "write it as `key: value`"),
    "model_attributes_type": ("is not a mapping", "write it as `key: value`"),
    "int_parsing": ("is not a whole number", "write it in digits"),
    "int_type": ("is not a whole number", "write it in digits"),
    "int_from_float": ("is not a whole number", "write it in digits"),
    "float_parsing": ("is not a number", "write it in digits"),
    "bool_parsing": ("is neither true nor false", "write true or false"),
    "bool_type": ("is neither true nor false", "write true or false"),
    "string_type": ("is not text", "put it in quotes"),
}  # pydantic's kinds of error, in our words, with a hint
_SHOWN = 5  # errors of one document that a message lists


def validate_document(document: Document, model: type[_Model]) -> _Model:
    """The document as a model.

    Raises:
        DocumentError: of the document's own class, with the first problem at its place, the
            nearest legal key or value, and up to four further problems.
    """
    if document.data is None:
        raise document.error("the document is empty", hint=f"begin with {_first_keys(model)}")
    return validate_part(document, document.data, model)


def validate_part(document: Document, data: Any, model: type[_Model], at: Where = ()) -> _Model:
    """As `validated`, for data that stands at a place inside the document."""
    try:
        return model.model_validate(data)
    except ValidationError as e:
        raise _explain_errors(e, document, model, data, at) from e


def _explain_errors(
    error: ValidationError, document: Document, model: type[BaseModel], data: Any, at: Where = ()
) -> DocumentError:
    """One error for all that is wrong: the first at its place, the others as further lines."""
    schema = model.model_json_schema()
    found = [_Finding(dict(e), data, schema) for e in error.errors(include_url=False)]
    found.sort(key=lambda f: document.line_of((*at, *f.where)) or 0)
    first = found[0]
    message = first.problem
    if len(found) > 1:
        message += f" ({len(found)} problems in all)"
    others = [_further(f, document, (*at, *f.where)) for f in found[1:_SHOWN]]
    hint = "\n".join([first.hint, *others]).strip() if others else first.hint
    return document.error(message, (*at, *first.where), hint=hint, named=first.named)


def _further(finding: _Finding, document: Document, where: Where) -> str:
    line = getattr(document.error("", where), "line", None)
    place = f"line {line}: " if line else ""
    named = f"{finding.named}: " if finding.named else ""
    return f"{place}{named}{finding.problem}" + (f" ({finding.hint})" if finding.hint else "")


def _first_keys(model: type[BaseModel]) -> str:
    return ", ".join(n for n, f in model.model_fields.items() if f.is_required())


def _describe_place(where: Where, data: Any) -> str:
    """A place in words: ``parameters[2] (NCCL_ALGO).values[0]``."""
    words = ""
    for step in where:
        data = _below(data, step)
        words += f"[{step}]" if isinstance(step, int) else f".{step}" if words else step
        if isinstance(step, int) and isinstance(data, dict) and data.get("name"):
            words += f" ({data['name']})"
    return words


def _below(data: Any, step: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(step)
    if isinstance(data, list) and isinstance(step, int) and step < len(data):
        return data[step]
    return None


class _Finding:
    """One problem, in words; ``named`` is the value that it is about, if it is about one."""

    def __init__(self, error: dict[str, Any], data: Any, schema: Mapping[str, Any]) -> None:
        self.error = error
        self.kind = str(error["type"])
        self.value = error.get("input")
        self.where = _real_place(tuple(error["loc"]), data)
        self.schema = schema
        self._data = data
        self.hint = self.named = ""
        self.problem = self._explained()

    def _explained(self) -> str:
        handlers = {
            "extra_forbidden": self._unknown_key,
            "missing": self._missing,
            "union_tag_not_found": self._missing_tag,
            "union_tag_invalid": self._wrong_word,
            "literal_error": self._wrong_word,
            "enum": self._wrong_word,
            "value_error": self._own,
            "string_pattern_mismatch": self._pattern,
        }
        return handlers.get(self.kind, self._other)()

    def _place(self, where: Where | None = None) -> str:
        return (
            _describe_place(self.where if where is None else where, self._data) or "the document"
        )

    def _unknown_key(self) -> str:
        key = str(self.where[-1])
        self.hint = suggest(key, _keys_at(self.schema, tuple(self.error["loc"])[:-1]))
        return f"unknown key {quote_value(key)} in {self._place(self.where[:-1])}"

    def _missing(self) -> str:
        key = str(self.error["loc"][-1])
        self.hint = f"add `{key}: ...`"
        return f"key {quote_value(key)} is missing in {self._place(self.where)}"

    def _missing_tag(self) -> str:
        key = str(self.error["ctx"]["discriminator"]).strip("'")
        self.hint = f"add `{key}: ...`"
        return f"key {quote_value(key)} is missing in {self._place()}"

    def _wrong_word(self) -> str:
        context = self.error["ctx"]
        options = re.findall(
            r"'([^']*)'", str(context.get("expected_tags") or context["expected"])
        )
        if self.kind == "union_tag_invalid":
            key = str(context["discriminator"]).strip("'")
            self.where = (*self.where, key)
            self.value = context["tag"]
        self.hint = suggest(str(self.value), options) or f"known: {context.get('expected')}"
        self.named = self._place()
        return f"{quote_value(self.value)} is not known here"

    def _own(self) -> str:
        cause = self.error["ctx"]["error"]
        self.hint = getattr(cause, "hint", "")
        self.named = self._place()
        return str(cause)

    def _pattern(self) -> str:
        self.hint = "use letters, digits and _; begin with a letter"
        self.named = self._place()
        return f"{quote_value(self.value)} is not a name"

    def _other(self) -> str:
        text = str(self.error["msg"])
        said, self.hint = _PLAIN.get(self.kind, (text[:1].lower() + text[1:], ""))
        has_value = not isinstance(self.value, dict | list) and self.value is not None
        if self.hint and not has_value:
            return f"{self._place()} {said}"
        self.named = self._place()
        return f"{quote_value(self.value)} {said}" if has_value else said


def _real_place(location: tuple[str | int, ...], data: Any) -> Where:
    # pydantic puts names of union members into the place; only what the data has is a place.
    where: list[str | int] = []
    for step in location:
        inside = (isinstance(data, dict) and step in data) or (
            isinstance(data, list) and isinstance(step, int) and step < len(data)
        )
        if inside:
            where.append(step)
            data = _below(data, step)
    return tuple(where)


def _keys_at(schema: Mapping[str, Any], location: tuple[str | int, ...]) -> Iterable[str]:
    # Follows the place, union members included, through the JSON Schema to the keys allowed there.
    nodes: list[Mapping[str, Any]] = [schema]
    for step in location:
        nodes = [found for node in nodes for found in _step(schema, node, step)] or nodes
    keys: dict[str, None] = {}
    for node in nodes:
        for option in _options(schema, node):
            keys.update(dict.fromkeys(option.get("properties", {})))
    return keys


def _options(schema: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in node:
        node = schema["$defs"][str(node["$ref"]).rsplit("/", 1)[-1]]
    unions = [*node.get("anyOf", []), *node.get("oneOf", [])]
    return [node] + [found for member in unions for found in _options(schema, member)]


def _step(
    schema: Mapping[str, Any], node: Mapping[str, Any], step: str | int
) -> list[Mapping[str, Any]]:
    tagged = node.get("discriminator", {}).get("mapping", {})
    if step in tagged:
        return [{"$ref": tagged[step]}]
    found: list[Mapping[str, Any]] = []
    for option in _options(schema, node):
        if isinstance(step, int):
            found += [option["items"]] if "items" in option else []
        elif step in option.get("properties", {}):
            found.append(option["properties"][step])
        else:
            patterned = option.get("patternProperties", {}).values()
            found += [inside for inside in patterned if isinstance(inside, dict)]
            if isinstance(option.get("additionalProperties"), dict):
                found.append(option["additionalProperties"])
    return found
