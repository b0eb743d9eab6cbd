"""The shape of a file of baselines, version 1; the JSON Schema for editors comes from here.

A baseline is a set of variables that somebody sets or recommends on a machine: worth trying
before a search proposes its own, and worth measuring again after an update.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from commtune.spaces.schema import Text, Truth, VersionOne
from commtune.systems.schema import Model, Name, Variable

#: How a command line names a set in the place of a configuration.
REFERENCE, _FORMERLY = "reference:", "baseline:"


def is_reference(word: str) -> bool:
    """Whether somebody means a named set: ``reference:NAME``, or ``baseline:NAME`` as before."""
    return word.startswith((REFERENCE, _FORMERLY))


def strip_prefix(word: str) -> str:
    """The name of a set without what may stand before it."""
    return word.removeprefix(REFERENCE).removeprefix(_FORMERLY)


class Origin(StrEnum):
    """Who sets it, and what for."""

    DOCUMENTED = "documented"
    INJECTED = "injected"
    WORKAROUND = "workaround"
    STUDY = "study"
    MEASURED = "measured"
    USER = "user"
    EXAMPLE = "example"


class Seen(StrEnum):
    """How the values were read."""

    REPOSITORY = "repository"
    EXCERPT = "excerpt"
    NOTES = "notes"


class Baseline(Model):
    """A named set of environment variables, and where it is from."""

    summary: str
    """One sentence on what it is."""
    systems: list[Name]
    """Systems that it is for, as descriptions call them; empty for no one in particular."""
    machine: str = ""
    """The machine or instance, where no description says what it is."""
    libraries: Annotated[list[Name], Field(min_length=1)]
    """Libraries that it is for, as search spaces call them."""
    stack: str
    """The libraries with version and network, as far as the source says."""
    purpose: str = ""
    """What it is meant for: programs, operations, an error."""
    kind: Origin
    """Who sets it: the site's documentation, the plugin itself (injected), a remedy for an error
    (workaround), a study, somebody who measured it, a user, an example."""
    evidence: Seen
    """How it was read: every value in the repository, in an excerpt, or in notes only, which
    should be read again before they are quoted."""
    source: Name
    """Name of an entry in `sources`."""
    dated: Text = ""
    """When the source said so, as exactly as is known."""
    assembled: Truth = False
    """Whether the values stand in several places of the source, and nowhere together."""
    on_top_of: Name | None = None
    """The set of the same file that it is set beside."""
    unfit: str = ""
    """Why it is not to be tried as it stands; empty where it is fit to try."""
    launcher: str = ""
    """What the ranks have to be started with."""
    note: str = ""
    """What else to know."""
    environment: Annotated[dict[Variable, Text], Field(min_length=1)]
    """The variables with their values."""
    fill_in: dict[Variable, str] = Field(default_factory=dict)
    """Variables whose value only the user knows, and what it is."""

    @property
    def fit(self) -> bool:
        """Whether it may be tried as it stands."""
        return not self.unfit


class BaselineFile(Model):
    """The sets of one site or vendor."""

    baselines: VersionOne
    """Version of this format."""
    site: str
    """Who the sets are from."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """Where sets are from: a name, and what and where it is, with its version."""
    elsewhere: dict[Variable, str] = Field(default_factory=dict)
    """Variables that are in no catalogue, and what reads them."""
    sets: Annotated[dict[Name, Baseline], Field(min_length=1)]
    """The sets by name."""
