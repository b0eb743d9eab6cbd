"""Declares, parses and documents (OpenAPI) the parameters of endpoints and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from commtune.documents.nearest import quote_value, require_known, suggest_nearest
from commtune.documents.quantities import parse_bytes, whole_number
from commtune.errors import InvalidValue, UserError
from commtune.model import Backend, Operation, Outcome, Phase
from commtune.wording import LEAST_STRENGTH

#: The longest value, in characters: longer than any stored name.
_LONGEST = 300
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Parameter:
    """A parameter of an endpoint."""

    name: str
    help: str
    read: Callable[[str], Any] = str  # parses its text, or raises UserError
    required: bool = False
    #: Its OpenAPI schema.
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})

    def document(self, place: str = "query") -> dict[str, Any]:
        """Returns its part of the OpenAPI document."""
        return {
            "name": self.name, "in": place, "required": self.required or place == "path",
            "description": self.help, "schema": dict(self.schema),
        }  # fmt: skip


def word_parameter(name: str, help: str, words: Sequence[str]) -> Parameter:
    """Returns a parameter that is one of these words."""
    schema = {"type": "string", "enum": list(words)}
    return Parameter(name, help, partial(require_known, name, known=words), schema=schema)


def _number_parameter(name: str, help: str, low: int, high: int = _LARGEST) -> Parameter:
    """Returns a parameter that is an integer from ``low`` to ``high``."""

    def read(written: str) -> int:
        number = whole_number(written)
        if number is None or not low <= number <= high:
            raise UserError(
                f"{name}: {quote_value(written)} is not a number from {low} to {high}",
                hint=f"{name}={low}",
            )
        return number

    return Parameter(name, help, read, schema={"type": "integer", "minimum": low, "maximum": high})


def text_parameter(name: str, help: str, *, required: bool = False) -> Parameter:
    """Returns a parameter that is any text, up to the length of names."""
    schema = {"type": "string", "maxLength": _LONGEST}
    return Parameter(name, help, required=required, schema=schema)


def _operation_parameter(*, required: bool = False) -> Parameter:
    """Returns a parameter that is an operation, also that of a user's own benchmark."""

    def read(written: str) -> str:
        try:
            return Operation(written)
        except ValueError:
            return require_known("operation", written, list(Operation))

    schema = {"anyOf": [{"enum": list(Operation)}, {"pattern": "^own:"}], "type": "string"}
    return Parameter("operation", "the operation", read, required, schema)


def _size_parameter(name: str, help: str) -> Parameter:
    """Returns a parameter that is a message size, bytes."""

    def read(written: str) -> int:
        try:
            return min(parse_bytes(written), _LARGEST)
        except InvalidValue as error:
            raise UserError(f"{name}={written}: {error}", hint="write 8, 64KiB or 1MiB") from error

    return Parameter(name, help, read)


#: A path parameter.
NUMBER = _number_parameter("number", "a profile's number (id)", 1)
NAME = text_parameter(
    "name", "CAMPAIGN/PROFILE, its name where only one has it, or its number", required=True
)
CAMPAIGN = text_parameter("campaign", "only from this campaign")
_RANKS = _number_parameter("ranks", "measured with this many ranks", 1)
_NODES = _number_parameter("nodes", "measured on this many nodes", 1)
#: The conditions of ``find_profiles``, beside the campaign, and of ``require_strength``.
LEAST = tuple(_number_parameter(name, help, 1) for name, help in LEAST_STRENGTH.items())
#: The conditions of ``find_candidates``.
FILTERS = (
    _RANKS,
    _NODES,
    text_parameter("system", "part of a system's name, or its fingerprint"),
    word_parameter("backend", "what ranks communicated by", list(Backend)),
    CAMPAIGN,
    *LEAST,
)
BEST = (
    _operation_parameter(required=True),
    _size_parameter("bytes", "message size: 8, 64KiB, 1MiB; without it, all sizes"),
    text_parameter("stack", "part of the software's name, or its fingerprint"),
    word_parameter("others", "explained: they come with what explains them", ["explained"]),
    *FILTERS,
)

#: The range of sizes that tables show.
ZOOM = (
    _size_parameter("from", "only sizes from here up"),
    _size_parameter("to", "only up to here"),
)
_SIDE = "campaign:NAME, or system:FINGERPRINT"
COMPARE = (
    text_parameter("left", _SIDE),
    text_parameter("right", _SIDE),
    _operation_parameter(),
    _RANKS,
    _NODES,
    *ZOOM,
)

#: Runs or trials of a page without ``limit``.
ROWS_A_PAGE = 100
_LIMIT = _number_parameter("limit", f"at most so many; {ROWS_A_PAGE} by default", 1, 1000)
RUNS = (
    _number_parameter("before", "only runs older than the one of this id: the next page", 1),
    _LIMIT,
    word_parameter("phase", "only runs of this phase", list(Phase)),
    word_parameter("outcome", "only runs that ended so", list(Outcome)),
)
TRIALS = (
    _number_parameter("first", "from this number on; 0, the default, is the default's", 0),
    _LIMIT,
)
RESULTS = (
    _number_parameter("after", "only runs behind this number: the `next` of a page", 0),
    _number_parameter("newest", "only runs up to this number: that of the first page", 0),
    _number_parameter("limit", "of at most so many runs; 200 by default", 1, 1000),
)
EXPORT = (
    word_parameter("accept", "likely: write it though its speedup is not proven", ["likely"]),
    word_parameter("allow_unguarded", "true: a module file without guard operations", ["true"]),
    *LEAST,
)


def read_parameters(
    declared: Sequence[Parameter], given: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Returns the values of all declared parameters; ``None`` for missing and empty ones.

    Raises:
        UserError: a parameter is unknown, repeated, too long or invalid, or one is missing.
    """
    known = {one.name: one for one in declared}
    found: dict[str, Any] = dict.fromkeys(known)
    for name, written in given:
        if name not in known:
            raise UserError(
                f"unknown parameter {quote_value(name)}", hint=suggest_nearest(name, list(known))
            )
        if found[name] is not None:
            raise UserError(f"{name} is given twice", hint="give it once")
        if len(written) > _LONGEST:
            raise UserError(f"{name} is too long", hint=f"at most {_LONGEST} characters")
        # A form also sends its empty fields.
        found[name] = known[name].read(_plain(name, written)) if written else None
    missing = [one.name for one in declared if one.required and found[one.name] is None]
    if missing:
        raise UserError(f"{missing[0]} is missing", hint=known[missing[0]].help)
    return found


def _plain(name: str, written: str) -> str:
    # No name contains NUL or surrogates, and PostgreSQL refuses them.
    if "\0" in written or any("\ud800" <= letter <= "\udfff" for letter in written):
        raise UserError(f"{name} is no plain text", hint="UTF-8 without NUL characters")
    return written
