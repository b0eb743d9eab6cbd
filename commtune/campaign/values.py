"""Kinds of values in a campaign file, which its parts share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from commtune.documents.nearest import quote_value
from commtune.documents.quantities import QuantityError, parse_bytes, parse_percent, parse_seconds
from commtune.documents.yaml_document import exact_text
from commtune.errors import UserError
from commtune.slurm_templates.quoting import quote_directive
from commtune.spaces.schema import Text

#: A comma that doesn't stand in brackets: n[1,3],n7 are two words.
_BETWEEN_NODES = re.compile(r",(?![^\[]*\])")


class Part(BaseModel):
    """Base of the file's parts: unknown keys are errors, everything is read-only."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def require_within(low: float, high: float, words: str = "") -> AfterValidator:
    """Both ends are legal; ``words`` says so where the numbers themselves wouldn't."""

    def check(value: float) -> float:
        if not low <= value <= high:
            raise QuantityError(
                f"{value:.15g} is out of range", hint=words or f"from {low} to {high}"
            )
        return value

    return AfterValidator(check)


def _share(low: float, words: str) -> Callable[[Any], float]:
    def parse(written: Any) -> float:
        share = parse_percent(written)
        if not low <= share < 1:
            raise QuantityError(f"{quote_value(written)} is out of range", hint=words)
        return share

    return parse


def _seconds(written: Any) -> float:
    seconds = parse_seconds(written)
    if seconds == 0:
        raise QuantityError(f"{quote_value(written)} is no time at all", hint="write it like 60s")
    return seconds


def _amount(written: Any) -> float:
    try:
        number = float(exact_text(written))
    except ValueError as e:
        raise QuantityError(
            f"{quote_value(written)} is not a number", hint="write it in digits"
        ) from e
    if not 0 < number < float("inf"):
        raise QuantityError(
            f"{quote_value(written)} is out of range", hint="write a number above 0"
        )
    return number


def _words(written: Any) -> tuple[str, ...]:
    if isinstance(written, list | tuple):
        return tuple(exact_text(word) for word in written)
    text = exact_text(written)
    try:
        return tuple(shlex.split(text))
    except ValueError as e:
        raise QuantityError(
            f"{quote_value(text)} can't be split into words: {str(e).lower()}",
            hint="close the quotes, or write a list of words",
        ) from e


def _nodes(written: Any) -> tuple[str, ...]:
    names = [name for word in _words(written) for name in _BETWEEN_NODES.split(word) if name]
    return tuple(_option(name) for name in names)


def _option(text: str) -> str:
    try:
        return str(quote_directive(text)) if text else text
    except UserError as e:
        raise QuantityError(e.message, hint=e.hint) from e


_LIST = WithJsonSchema({"type": ["string", "array"]})
_AMOUNT = WithJsonSchema({"type": ["string", "number"]})

Seconds = Annotated[float, BeforeValidator(_seconds)]
#: A time that may be none.
Span = Annotated[float, BeforeValidator(parse_seconds)]
Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Share = Annotated[float, BeforeValidator(_share(0, "from 0% to below 100%"))]
Level = Annotated[float, BeforeValidator(_share(0.5, "from 50% to below 100%"))]
#: A number above 0.
Amount = Annotated[float, BeforeValidator(_amount), _AMOUNT]
#: The value of one of sbatch's options.
Option = Annotated[Text, AfterValidator(_option)]
#: A list of words, or text that is split as the shell splits it.
Words = Annotated[tuple[str, ...], BeforeValidator(_words), _LIST]
#: Names of nodes, also as n[1-3].
Nodes = Annotated[tuple[str, ...], BeforeValidator(_nodes), _LIST]
