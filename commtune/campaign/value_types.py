"""Types of values that several sections of a campaign file use."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from commtune.documents.exact_values import exact_text
from commtune.documents.files import is_there
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import parse_duration, parse_percent
from commtune.documents.yaml_document import Document, is_path
from commtune.errors import InvalidValue

#: For reference settings: the sets for the campaign's system and library. For campaigns: all.
AUTO = "auto"
_Loaded = TypeVar("_Loaded")


def require_within(low: float, high: float, words: str = "") -> AfterValidator:
    """Returns a validator for a closed range; ``words`` replaces the hint of its error."""

    def check(value: float) -> float:
        if not low <= value <= high:
            shown = f"{value:.15g}" if abs(value) < 1e300 else quote_value(value)
            raise InvalidValue(f"{shown} is out of range", hint=words or f"from {low} to {high}")
        return value

    return AfterValidator(check)


def parse_share(low: float, words: str) -> Callable[[Any], float]:
    """Returns a parser of shares from ``low`` to below 1; ``words`` is the hint of its error."""

    def parse(written: Any) -> float:
        share = parse_percent(written)
        if not low <= share < 1:
            raise InvalidValue(f"{quote_value(written)} is out of range", hint=words)
        return share

    return parse


def parse_words(written: Any) -> tuple[str, ...]:
    """Returns the words of a list, or of text that is split by shell quoting rules."""
    if isinstance(written, list | tuple):
        return tuple(exact_text(word) for word in written)
    text = exact_text(written)
    try:
        return tuple(shlex.split(text))
    except ValueError as e:
        raise InvalidValue(
            f"{quote_value(text)} can't be split into words: {str(e).lower()}",
            hint="close the quotes, or write a list of words",
        ) from e


Seconds = Annotated[float, BeforeValidator(parse_duration)]
Share = Annotated[float, BeforeValidator(parse_share(0, "from 0% to below 100%"))]
WORDS_SCHEMA = WithJsonSchema({"type": ["string", "array"]})
#: A list of words, or text that is split by shell quoting rules.
Words = Annotated[tuple[str, ...], BeforeValidator(parse_words), WORDS_SCHEMA]


def load_named(
    document: Document,
    what: tuple[str, str],
    name: str,
    folder: Path,
    load: Callable[[str | Path], _Loaded],
    shipped: str,
) -> _Loaded:
    """Loads what a key names: something shipped, or a file.

    Args:
        what: the key, and in words what it names.
        folder: the folder that relative paths start from.
        shipped: a hint on how to list what is shipped.
    """
    key, kind = what
    with document.placing(key):
        if is_path(name) and not is_there(folder / name):
            raise document.error(
                f"there is no {kind} {folder / name}",
                (key,),
                hint=f"paths start at the campaign file's folder; {shipped}",
            )
        return load(folder / name if is_path(name) else name)
