"""The shape of a catalogue file, version 1; the JSON Schema for editors comes from here.

A catalogue says what a library's environment variables are; a space says which to search.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from commtune.spaces import schema
from commtune.spaces.catalogue.words import (
    Danger,
    KnownFrom,
    Level,
    Operations,
    Role,
    Scope,
    Wrong,
)

_Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")]
#: A name, or several with ``*`` for any letters.
_Pattern = Annotated[str, Field(pattern=r"^[A-Za-z_*][A-Za-z0-9_*]*$")]


def _as_places(value: object) -> object:
    """Sources as a mapping from key to places: ``a``, ``[a, b]`` and ``{a: file}`` are taken."""
    if isinstance(value, dict):
        return {key: schema.as_list(places) for key, places in value.items()}
    return {key: [] for key in value} if isinstance(value, list) else {value: []}


#: Keys of ``sources``, each with the files, pages or lines in it.
_Places = Annotated[
    dict[_Name, list[str]],
    BeforeValidator(_as_places),
    Field(min_length=1),
    WithJsonSchema(
        {
            "anyOf": [
                *schema.one_or_list({"type": "string"})["anyOf"],
                {
                    "type": "object",
                    "additionalProperties": schema.one_or_list({"type": "string"}, 0),
                },
            ]
        }
    ),
]


class Range(schema.Model):
    """Numbers proposed for a search; not what is legal, unless the entry says so."""

    least: schema.Text
    """The least number or size (64KiB)."""
    greatest: schema.Text
    """The greatest number or size."""
    scale: Literal["linear", "log2"] = "linear"
    """Whether to go in equal steps or by factors of 2."""
    powers_of_two: schema.Truth = False
    """Whether the library takes powers of two only."""
    also: list[schema.Text] = []
    """Special values outside it: 0, -1, auto, inf."""


class Need(schema.Model):
    """Another variable without whose value this one has no effect."""

    variable: schema.VariableName
    """The other variable."""
    one_of: schema.OneOrMore | None = None
    """It has one of these values; its default counts where it is unset."""
    none_of: schema.OneOrMore | None = None
    """It has none of these values."""
    above: Annotated[float, schema.IN_DIGITS] | None = None
    """It is a number above this one."""

    @model_validator(mode="after")
    def _one_test(self) -> Need:
        if sum(test is not None for test in (self.one_of, self.none_of, self.above)) != 1:
            raise ValueError("a need has one of one_of, none_of and above")
        return self

    def __str__(self) -> str:
        if self.above is not None:
            return f"{self.variable} is above {self.above:g}"
        if self.none_of is not None:
            return f"{self.variable} is not {' or '.join(self.none_of)}"
        return f"{self.variable} is {' or '.join(self.one_of or ())}"


class Variable(schema.Model):
    """An environment variable."""

    type: Literal["bool", "choice", "integer", "bytes", "number", "text", "path"]
    """What its values are: a switch, one of several words, a whole number, a size, a number with
    a fraction, free text, or a file."""
    part: _Name | None = None
    """The part of the library that reads it, one of `parts`."""
    values: list[schema.Text] = []
    """The legal values; where the library takes lists of words, useful ones."""
    form: str = ""
    """How free text is written."""
    range: Range | None = None
    """Numbers proposed for a search."""
    restricted: list[schema.Text] = []
    """Real values that a site must ask for, because of what they may do."""
    read_as: dict[schema.Text, schema.Text] = {}
    """Other spellings that the library takes for one of these values, such as numbers of old
    releases: for a spelling, the value. They may be set, and are never proposed."""
    default: schema.Text | None = None
    """What holds when it is unset; left out where the library decides by itself."""
    history: dict[schema.Text, schema.Text] = {}
    """Earlier defaults: for a version, the default from there on."""
    seen: schema.Text | None = None
    """The oldest version looked at that has it, where it may be older than that."""
    since: schema.Text | None = None
    """The version that it came with."""
    until: schema.Text | None = None
    """The last version known to have it; left out while it is still there."""
    values_since: dict[schema.Text, list[schema.Text]] = {}
    """Values that came later: for a version, those that are new in it."""
    aliases: list[schema.VariableName] = []
    """Other names that the library reads as well."""
    replaced_by: list[schema.VariableName] = []
    """Variables that do the same in newer versions."""
    meaning: str
    """What it does, and what it trades."""
    condition: str = ""
    """When it has an effect."""
    needs: list[Need] = []
    """Other variables that it depends on, for programs: all must hold."""
    needs_any: list[Need] = []
    """The same: one of them must hold."""
    operations: Annotated[list[Operations], Field(min_length=1)]
    """On what it has an effect."""
    scope: Scope
    """Where it has an effect."""
    level: Level = Level.SAFE
    """How much care it needs."""
    dangers: list[Danger] = []
    """What can go wrong."""
    caution: str = ""
    """What can go wrong, in words."""
    note: str = ""
    """What else to know, of versions above all."""
    role: Role
    """What it is for: tune, site, guard or diagnose."""
    known_from: Annotated[
        list[KnownFrom],
        BeforeValidator(schema.as_list),
        Field(min_length=1),
        WithJsonSchema(schema.one_or_list({"enum": list(KnownFrom)})),
    ]
    """What the entry rests on."""
    documented: schema.Truth
    """Whether the library's own documentation names it."""
    source: _Places
    """Keys of `sources`, each with the files or pages in it."""


class Interaction(schema.Model):
    """What holds between variables."""

    variables: Annotated[list[_Pattern], Field(min_length=1)]
    """The variables; `*` stands for any letters."""
    rule: str
    """What holds, in words."""
    dangers: list[Danger] = []
    """What happens otherwise."""


class NotVariable(schema.Model):
    """A name that people set and that the library doesn't read."""

    what: Wrong
    """Why it isn't one."""
    truth: str
    """What holds instead, in words."""
    use: list[schema.VariableName] = []
    """The right names."""


class _Checked(schema.Model):
    """What the entries were compared with."""

    oldest: schema.Text | None = None
    """The oldest version that was looked at."""
    newest: schema.Text
    """The newest version that was looked at; defaults are its own."""
    how: str
    """How, and what was not looked at."""


class _Part(schema.Model):
    """A part of a library that has variables of its own."""

    title: str
    """What it is, in few words."""
    newest: schema.Text | None = None
    """The newest version of it that was looked at; left out where it is that of the library."""


class Catalogue(schema.Model):
    """The environment variables of a library."""

    catalogue: schema.VersionOne
    """Version of this format."""
    library: _Name
    """Name of the library, in small letters."""
    title: str
    """Name of the library, as people write it."""
    summary: str
    """One or two sentences on what the library is and what its variables are like."""
    prefixes: Annotated[list[schema.VariableName], Field(min_length=1)]
    """What its variables begin with."""
    other_prefixes: dict[schema.VariableName, list[schema.VariableName]] = {}
    """Prefixes that the library takes for another: those in the list work as the key does."""
    numbers: str
    """How it reads numbers and sizes."""
    suffixes: schema.Truth | None = None
    """Whether it takes K, M and G behind a number; left out where nobody says."""
    files: list[str] = []
    """Files from which it takes settings, besides the environment."""
    checked: _Checked
    """What the entries were compared with."""
    sources: Annotated[dict[_Name, str], Field(min_length=1)]
    """Where facts are from: a short key, and what and where it is, with its version."""
    parts: dict[_Name, _Part] = {}
    """Parts of the library with variables of their own."""
    variables: Annotated[dict[schema.VariableName, Variable], Field(min_length=1)]
    """The variables by name."""
    interactions: dict[_Name, Interaction] = {}
    """What holds between variables, by a name of its own."""
    not_variables: dict[_Pattern, NotVariable] = {}
    """Names that people set and that aren't read."""
    others: list[schema.VariableName] = []
    """Further names that it reads, and that have no entry."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every name that the library is known to read, described or not."""
        aliases = (alias for variable in self.variables.values() for alias in variable.aliases)
        return (*self.variables, *aliases, *self.others)

    def list_sources(self, variable: Variable) -> str:
        """The sources of a variable's entry, each with the files or pages in it."""
        named = (f"{self.sources[key]}: {', '.join(of)}" for key, of in variable.source.items())
        return "; ".join(one.removesuffix(": ") for one in named)

    def newest_of(self, variable: Variable) -> str:
        """The newest version that was looked at for a variable."""
        part = self.parts[variable.part].newest if variable.part is not None else None
        return part or self.checked.newest
