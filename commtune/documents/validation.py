"""Turns pydantic's validation errors into errors with file, line and the nearest valid word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from commtune.documents.nearest import quote_value, suggest_nearest
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
}  # message and hint by pydantic's type of error
_SHOWN = 5  # the most errors of a document that a message lists


@dataclass(frozen=True)
class _Finding:
    """A problem of a document; ``named`` describes its place, if it is about a value there."""

    where: Where
    problem: str
    hint: str = ""
    named: str = ""


def validate_document(document: Document, model: type[_Model]) -> _Model:
    """Returns the document as an instance of a model.

    Raises:
        DocumentError: it is invalid; of the document's own class, with the first problem at its
            place, the nearest valid key or value, and up to four further problems.
    """
    if document.data is None:
        required = [name for name, key in model.model_fields.items() if key.is_required()]
        raise document.error("the document is empty", hint=f"begin with {', '.join(required)}")
    return validate_part(document, document.data, model)


def validate_part(document: Document, data: Any, model: type[_Model], at: Where = ()) -> _Model:
    """Validates like ``validate_document``, for data at a place inside the document."""
    try:
        return model.model_validate(data)
    except ValidationError as e:
        raise _explain_errors(e, document, model, data, at) from e


def _explain_errors(
    error: ValidationError, document: Document, model: type[BaseModel], data: Any, at: Where = ()
) -> DocumentError:
    """Returns one error for all problems: the first at its place, the others in the hint."""
    schema = _json_schema(model)
    found = [_explain_one(dict(e), data, schema) for e in error.errors(include_url=False)]
    # pydantic's order is that of the model; a reader expects that of the file.
    found.sort(key=lambda f: document.lines.get((*at, *f.where), 0))
    first = found[0]
    message = first.problem
    if len(found) > 1:
        message += f" ({len(found)} problems in all)"
    others = [_further(f, document, (*at, *f.where)) for f in found[1:_SHOWN]]
    others += [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    hint = "\n".join([first.hint, *others]).strip() if others else first.hint
    return document.error(message, (*at, *first.where), hint=hint, named=first.named)


@cache  # pydantic makes it anew each time, in up to 0.1 s
def _json_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema()


def _further(finding: _Finding, document: Document, where: Where) -> str:
    line = document.nearest_line(where)
    place = f"line {line}: " if line else ""
    named = f"{finding.named}: " if finding.named else ""
    return f"{place}{named}{finding.problem}" + (f" ({finding.hint})" if finding.hint else "")


def _describe_place(where: Where, data: Any) -> str:
    """Returns a place for messages: ``parameters[2] (NCCL_ALGO).values[0]``."""
    words = ""
    for step in where:
        data = _below(data, step)
        words += f"[{step}]" if isinstance(step, int) else f".{step}" if words else step
        if isinstance(step, int) and isinstance(data, dict) and data.get("name"):
            words += f" ({data['name']})"
    return words or "the document"


def _below(data: Any, step: str | int, absent: Any = None) -> Any:
    if isinstance(data, dict):
        return data.get(step, absent)
    if isinstance(data, list) and isinstance(step, int) and step < len(data):
        return data[step]
    return absent


def _explain_one(error: dict[str, Any], data: Any, schema: Mapping[str, Any]) -> _Finding:
    where = _real_place(tuple(error["loc"]), data)
    place = _describe_place(where, data)
    value, context = error.get("input"), error.get("ctx", {})
    match str(error["type"]):
        case "extra_forbidden":
            key = str(where[-1])
            at = f"in {_describe_place(where[:-1], data)}" if where[1:] else "at the top level"
            hint = suggest_nearest(key, _keys_at(schema, tuple(error["loc"])[:-1]))
            return _Finding(where, f"unknown key {quote_value(key)} {at}", hint)
        case "missing" | "union_tag_not_found":
            key = str(context.get("discriminator") or error["loc"][-1]).strip("'")
            problem = f"key {quote_value(key)} is missing in {place}"
            return _Finding(where, problem, f"add `{key}: ...`")
        case "union_tag_invalid":
            where = (*where, str(context["discriminator"]).strip("'"))
            place, expected = _describe_place(where, data), context["expected_tags"]
            return _explain_wrong_word(where, place, context["tag"], expected)
        case "literal_error" | "enum":
            return _explain_wrong_word(where, place, value, context["expected"])
        case "value_error":
            cause = context["error"]
            return _Finding(where, str(cause), getattr(cause, "hint", ""), place)
        case "string_pattern_mismatch":
            hint = "use letters, digits and _; begin with a letter"
            return _Finding(where, f"{quote_value(value)} is not a name", hint, place)
    return _explain_other(error, where, place)


def _explain_wrong_word(where: Where, place: str, word: object, expected: object) -> _Finding:
    # pydantic lists the valid words only as text: 'a', 'b' or 'c'.
    hint = (
        suggest_nearest(str(word), re.findall(r"'([^']*)'", str(expected))) or f"known: {expected}"
    )
    return _Finding(where, f"{quote_value(word)} is not a known value", hint, place)


def _explain_other(error: dict[str, Any], where: Where, place: str) -> _Finding:
    text, value = str(error["msg"]), error.get("input")
    said, hint = _PLAIN.get(str(error["type"]), (text[:1].lower() + text[1:], ""))
    has_value = not isinstance(value, dict | list) and value is not None
    if hint and not has_value:
        return _Finding(where, f"{place} {said}", hint)
    return _Finding(where, f"{quote_value(value)} {said}" if has_value else said, hint, place)


def _real_place(location: tuple[str | int, ...], data: Any) -> Where:
    # pydantic adds names of union members to a location; the others are keys in the data.
    where: list[str | int] = []
    absent = object()
    for step in location:
        if (below := _below(data, step, absent)) is not absent:
            where.append(step)
            data = below
    return tuple(where)


def _keys_at(schema: Mapping[str, Any], location: tuple[str | int, ...]) -> Iterable[str]:
    # Follows the location through the JSON Schema, with union members, to the valid keys there.
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
