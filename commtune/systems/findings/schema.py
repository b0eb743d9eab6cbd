"""The shape of a file of findings, version 1; the JSON Schema for editors comes from here.

A finding is what a paper says that it measured on machines: the effect of a setting, which a
campaign may see again, or an observation without one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from commtune.documents.nearest import quote_value, suggest
from commtune.documents.quantities import QuantityError
from commtune.model import Operation
from commtune.spaces.schema import IN_DIGITS, Text, Truth, VersionOne
from commtune.systems.schema import Count, Model, Name, Size, Variable


def _operation(word: object) -> object:
    if word not in list(Operation):
        raise QuantityError(
            f"{quote_value(word)} is no operation", hint=suggest(str(word), Operation)
        )
    return word


_OperationWord = Annotated[
    str, BeforeValidator(_operation), WithJsonSchema({"enum": [str(word) for word in Operation]})
]


class Expected(Model):
    """What a setting did, against the default."""

    of: Literal["bandwidth", "latency", "time"]
    """What got better; a gain is a ratio of times in any case."""
    factor: Annotated[float, Field(gt=0), IN_DIGITS]
    """So many times as fast; below 1, slower."""
    up_to: Truth = False
    """Whether that is the most that was seen, and not what is to be expected everywhere."""


class Finding(Model):
    """What a paper says that it measured."""

    says: str
    """What was found, in words."""
    systems: list[Name]
    """Where, as descriptions call them; empty where it is of no one in particular."""
    libraries: list[Name]
    """With which libraries, as search spaces call them; empty for none in particular."""
    operations: list[_OperationWord] = Field(default_factory=list)
    """In which operations; empty where none is named."""
    least_bytes: Size | None = None
    """From this size on; without it, no least size is named."""
    most_bytes: Size | None = None
    """Up to this size; without it, no greatest size is named."""
    least_nodes: Count | None = None
    """From so many nodes on."""
    most_nodes: Count | None = None
    """Up to so many nodes."""
    setting: dict[Variable, Text] = Field(default_factory=dict)
    """The variables that were set; empty for an observation."""
    also: list[dict[Variable, Text]] = Field(default_factory=list)
    """The same setting, written otherwise."""
    expected: Expected | None = None
    """What the setting did; only beside a setting."""
    source: Name
    """Name of an entry in `sources`."""
    section: Text
    """Where in it."""
    note: str = ""
    """What else to know."""


class FindingFile(Model):
    """The findings of one paper."""

    findings: VersionOne
    """Version of this format."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """The paper: a name, and what and where it is."""
    found: Annotated[dict[Name, Finding], Field(min_length=1)]
    """The findings by name."""
