"""Reference settings: named sets of variables that sites, vendors and studies set or recommend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, list_shipped, load_shipped
from commtune.errors import UnknownName
from commtune.spaces.schema import Model, Text, Truth, VariableName, VersionOne
from commtune.systems.findings import all_findings
from commtune.systems.schema import Name

_FOLDER = "systems/reference_settings"
#: Prefix of a set's name where a command line takes a configuration.
REFERENCE = "reference:"


class _Entry(Model):
    """A named set of environment variables, with its source."""

    summary: str
    """One sentence."""
    systems: list[Name]
    """Names of systems, as in descriptions; empty for none in particular."""
    machine: str = ""
    """The machine or instance type, if there is no description of it."""
    libraries: Annotated[list[Name], Field(min_length=1)]
    """Names of libraries, as in search spaces."""
    stack: str
    """The libraries with version and network, as far as the source names them."""
    purpose: str = ""
    """Its purpose: programs, operations, an error."""
    kind: Literal["documented", "injected", "workaround", "study", "measured", "user", "example"]
    """Who sets it: the site's documentation, the plugin itself (injected), a remedy for an error
    (workaround), a study, somebody who measured it, a user, an example."""
    evidence: Literal["repository", "excerpt", "notes"]
    """How it was read: every value in the repository, in an excerpt, or in notes only, which
    must be checked against the source before they are quoted."""
    source: Name
    """Name of an entry in `sources`."""
    dated: Text = ""
    """Date of the source, as precisely as is known."""
    assembled: Truth = False
    """Whether the values were collected from several places of the source."""
    on_top_of: Name | None = None
    """The set of the same file that it extends."""
    unfit: str = ""
    """Why it can't be tried unchanged; empty if it can."""
    launcher: str = ""
    """The launcher that the ranks need."""
    note: str = ""
    """Remarks."""
    environment: Annotated[dict[VariableName, Text], Field(min_length=1)]
    """The variables with their values."""
    fill_in: dict[VariableName, str] = Field(default_factory=dict)
    """Variables whose value only the user knows, with a description of it."""


class ReferenceSettingsFile(Model):
    """The sets of one site or vendor."""

    reference_settings: VersionOne
    """Version of this format."""
    site: str
    """The site or vendor."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """Citations with version, by name."""
    elsewhere: dict[VariableName, str] = Field(default_factory=dict)
    """Variables that are in no catalogue, with the software that reads them."""
    sets: Annotated[dict[Name, _Entry], Field(min_length=1)]
    """The sets by name."""


@dataclass(frozen=True)
class ReferenceSettings:
    """A set with its name."""

    name: str
    site: str
    source: str  # citation of its source
    entry: _Entry
    settings: Mapping[str, str]  # its variables, including those of the set that it extends
    #: Its variables that are in no catalogue, with the software that reads them.
    elsewhere: Mapping[str, str]

    def is_for(self, system: str, library: str) -> bool:
        """Returns whether it may be tried unchanged on a system, with a library."""
        found = self.entry
        return not found.unfit and system in found.systems and library in found.libraries


@cache
def all_reference_settings() -> Mapping[str, ReferenceSettings]:
    """Returns all shipped sets by name, in the order of files and of sets in them."""
    found: dict[str, ReferenceSettings] = {}
    for site in list_shipped(_FOLDER):
        found |= _sets(load_shipped(_FOLDER, site))
    return found


def find_reference_settings(name: str) -> ReferenceSettings:
    """Returns a shipped set by name, with or without ``reference:``; or raises an UnknownName."""
    word = name.removeprefix(REFERENCE)
    if word not in all_reference_settings():
        raise UnknownName(
            f"no reference settings are called {quote_value(word)}",
            hint=suggest_nearest(word, all_reference_settings())
            + "; all: commtune systems reference-settings",
        )
    return all_reference_settings()[word]


def _sets(document: Document) -> dict[str, ReferenceSettings]:
    file = validate_document(document, ReferenceSettingsFile)
    found: dict[str, ReferenceSettings] = {}
    for name, entry in file.sets.items():
        below = file.sets[entry.on_top_of].environment if entry.on_top_of else {}
        settings = {**below, **entry.environment}
        elsewhere = {v: file.elsewhere[v] for v in settings if v in file.elsewhere}
        source = file.sources[entry.source]
        found[name] = ReferenceSettings(name, file.site, source, entry, settings, elsewhere)
    return found


#: Kinds of reference settings that a site itself recommends to its users.
_BY_THE_SITE = ("documented", "injected")


@cache
def used_settings(system: str, library: str) -> Mapping[tuple[str, str], bool]:
    """Returns the settings that sources name for a system and a library.

    The value is whether the site itself recommends it; such a setting needs no opt-in there.
    """
    found: dict[tuple[str, str], bool] = {}
    for named in all_findings():
        finding = named.finding
        if system in finding.systems and library in finding.libraries:
            for setting in (finding.setting, *finding.also):
                found |= dict.fromkeys(setting.items(), False)
    for one in all_reference_settings().values():
        if system in one.entry.systems and library in one.entry.libraries:
            by_site = not one.entry.unfit and one.entry.kind in _BY_THE_SITE
            for item in one.settings.items():
                found[item] = by_site or found.get(item, False)
    return found
