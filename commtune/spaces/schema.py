"""Pydantic models of search-space files, version 1; the JSON Schema is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from commtune.documents.exact_values import exact_text
from commtune.documents.quantities import parse_bytes
from commtune.errors import InvalidValue
from commtune.model import Operation
from commtune.spaces.parameter import Risk, Size


def _exact_number(value: object) -> object:
    """Returns the value of a number field, but refuses booleans, which Python counts as 0 and 1.

    Raises:
        InvalidValue: the value is a boolean.
    """
    if isinstance(value, bool):
        raise InvalidValue(
            f"{str(value).lower()} is a truth value, not a number", hint="write it in digits"
        )
    return value


def _exact_truth(value: object) -> object:
    """Returns the value of a boolean field, but refuses numbers, as Python counts 1 as true.

    Raises:
        InvalidValue: the value is a number, quoted or not.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) or (isinstance(value, str) and value in ("0", "1")):
        raise InvalidValue(f"{value} is a number, not a truth value", hint="write true or false")
    return value


_WORDS: dict[str, Any] = {"type": ["string", "number"]}

#: Text exactly as written; a number is taken as its text, an unquoted yes or no is refused.
Text = Annotated[str, BeforeValidator(exact_text), WithJsonSchema(_WORDS)]

#: Refuses truth values as numbers. It must follow limits, or the JSON Schema lacks them.
IN_DIGITS = BeforeValidator(_exact_number)
Whole = Annotated[int, IN_DIGITS]
#: A truth value; numbers are refused.
Truth = Annotated[bool, BeforeValidator(_exact_truth)]
#: The version of the file format, with which a file begins.
VersionOne = Annotated[Literal[1], IN_DIGITS]

#: A size in bytes: 4096 or 64KiB.
_Bytes = Annotated[
    int, BeforeValidator(parse_bytes), WithJsonSchema({"type": ["string", "integer"]})
]


def as_list(value: object) -> object:
    return value if isinstance(value, list | dict) else [value]


def _as_clauses(value: object) -> object:
    return [value] if isinstance(value, dict) else value


def one_or_list(item: dict[str, Any], least: int = 1) -> dict[str, Any]:
    """Returns the JSON Schema of a list that may also be written as its only entry."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": least}]}


#: One value or several: legal values, or the keywords `set` and `unset`.
OneOrMore = Annotated[
    list[Text],
    BeforeValidator(as_list),
    Field(min_length=1),
    WithJsonSchema(one_or_list(_WORDS)),
]
_COMBINATION = {
    "type": "object",
    "additionalProperties": one_or_list(_WORDS),
    "minProperties": 1,
}
_Combination = Annotated[dict[str, OneOrMore], Field(min_length=1)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
_ChoiceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

#: A condition: a combination, or a list of combinations of which any may hold.
_Condition = Annotated[
    list[_Combination], BeforeValidator(_as_clauses), WithJsonSchema(one_or_list(_COMBINATION))
]
_Words = Annotated[
    list[str], BeforeValidator(as_list), WithJsonSchema(one_or_list({"type": "string"}))
]


class Model(BaseModel):
    """Base: unknown keys are errors, everything is read-only."""

    # JSON schemas, which editors read, carry the titles.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,  # halves the import time
        model_title_generator=lambda model: model.__name__.strip("_"),
    )


class _Restricted(Model):
    """A real value that is left out of the search unless a site opts in."""

    value: Text
    """The value, as in `values`."""
    risks: Annotated[list[Risk], Field(min_length=1)]
    """What can go wrong with it."""
    why: str = ""
    """When it goes wrong, and where that is known from."""


class _Parameter(Model):
    unset: Truth = True
    """Whether leaving it unset is legal while it is active."""
    when: _Condition = []
    """Active only when these parameters have these values; a list of mappings: any of them."""
    source: str = ""
    """Where the facts come from: documentation or source file, with version."""
    risks: list[Risk] = []
    """What can go wrong; all but abort need `opt_in: true`."""
    opt_in: Truth = False
    """Left out of the search unless a site asks for it by name."""
    restricted: list[_Restricted] = []
    """Values left out of the search unless a site asks for them as NAME=VALUE."""
    note: str = ""
    """What else to know."""
    default: Text = ""
    """What the library does when it is unset."""
    applies_to: _Words = []
    """Operations, transports or hardware on which it has an effect."""
    size: Size = Size.STANDARD
    """The smallest size of the space that has it: quick, standard or thorough."""


class _VariableParameter(_Parameter):
    name: VariableName
    """The environment variable."""


class BoolParameter(_VariableParameter):
    """A switch."""

    kind: Literal["bool"]
    spelling: Literal["0/1", "n/y", "no/yes", "false/true", "off/on", "disable/enable"] = "0/1"
    """How the library spells false and true."""


class ChoiceParameter(_VariableParameter):
    """One word out of several."""

    kind: Literal["choice"]
    values: Annotated[list[Text], Field(min_length=1)]
    """The legal words, exactly as the library reads them."""


class IntegerParameter(_VariableParameter):
    """A whole number: a range with a step, or a list."""

    kind: Literal["integer"]
    values: Annotated[list[Whole], Field(min_length=1)] | None = None
    """The legal numbers."""
    range: tuple[Whole, Whole] | None = None
    """The least and the greatest number, both legal."""
    step: Annotated[int, Field(ge=1), IN_DIGITS] = 1
    """Distance between the numbers of a range."""
    also: list[Text] = []
    """Special values outside the range: 0, -1, auto, inf."""


class PowerOfTwoParameter(_VariableParameter):
    """A power of two."""

    kind: Literal["power-of-two"]
    range: tuple[Whole, Whole]
    """The least and the greatest, both powers of two, both legal."""
    also: list[Text] = []
    """Special values outside the range: 0, -1, auto, inf."""


class BytesParameter(_VariableParameter):
    """A size in bytes: a list, or a range from one size to another by a factor."""

    kind: Literal["bytes"]
    values: Annotated[list[_Bytes], Field(min_length=1)] | None = None
    """The legal sizes, like 64KiB."""
    range: tuple[_Bytes, _Bytes] | None = None
    """The least and the greatest size, both legal."""
    factor: Annotated[int, Field(ge=2), IN_DIGITS] = 2
    """Ratio of neighbouring sizes of a range."""
    written: Literal["plain", "K", "k"] = "plain"
    """How the library reads sizes: plain bytes, or 64K and 1M, or 64k and 1m."""
    also: list[Text] = []
    """Special values: 0, -1, auto, inf."""


class GroupParameter(_Parameter):
    """Several variables set together, by named choices."""

    kind: Literal["group"]
    name: _Name
    """A name for the group; not a variable."""
    choices: Annotated[
        dict[_ChoiceName, Annotated[dict[VariableName, Text], Field(min_length=1)]],
        Field(min_length=1),
    ]
    """For each choice, the variables that it sets."""


ParameterDocument = Annotated[
    BoolParameter
    | ChoiceParameter
    | IntegerParameter
    | PowerOfTwoParameter
    | BytesParameter
    | GroupParameter,
    Field(discriminator="kind"),
]


class ForbiddenDocument(Model):
    """A combination that must not occur."""

    when: _Combination
    """Parameters with their values: legal ones, `set` or `unset`; all must hold."""
    why: str
    """What happens then."""


class _Product(Model):
    """A product with a limit."""

    of: Annotated[list[str], Field(min_length=2)]
    """Parameters with numbers."""
    limit: Whole
    """The greatest legal product."""


class RelationDocument(Model):
    """A rule between numbers; it holds wherever one of them is unset or not a number."""

    at_most: tuple[str, str] | None = None
    """The first parameter is at most the second."""
    times: Annotated[int, Field(ge=1), IN_DIGITS] = 1
    """With at_most: so many times the first is at most the second."""
    product_at_most: _Product | None = None
    """The product of the parameters is at most the limit."""
    why: str
    """What happens otherwise."""


class SpaceDocument(Model):
    """A search space: environment variables with legal values and conditions."""

    space: VersionOne
    """Version of this format."""
    name: _Name
    """Name of the space."""
    version: Text = "1"
    """Version of the space itself; raise it when you change it."""
    summary: str = ""
    """One sentence on what the space is for."""
    library: str
    """The library that reads the variables."""
    versions: Text = ""
    """Library versions for which it holds, like ">=4.3,<6"; empty for all."""
    operations: list[Operation] = []
    """Operations for which it is meant; empty for all."""
    facts: list[str] = []
    """Catalogues that say what parameters leave unsaid: kind, values, default, needs, risks."""
    include: list[str] = []
    """Other space files, whose parameters and rules are part of this one."""
    pin: dict[VariableName, Text] = {}
    """Variables set in every run, in the baseline's too; not searched, not part of a profile."""
    parameters: Annotated[list[ParameterDocument], Field(min_length=1)]
    """The dimensions of the space."""
    forbidden: list[ForbiddenDocument] = []
    """Combinations that must not occur."""
    relations: list[RelationDocument] = []
    """Rules between numbers."""


class CustomizationDocument(Model):
    """What a campaign changes in a space."""

    narrow: dict[str, OneOrMore] = {}
    """Parameters with the only values to search; leaving it unset stays legal where it was."""
    pin: dict[str, Text] = {}
    """Parameters with the one value to use in every run, the baseline's too; or `unset`."""
    extend: list[ParameterDocument] = []
    """Further parameters."""
    opt_in: list[Text] = []
    """Parameters, or values as NAME=VALUE, that are searched only if a site asks for them."""
