"""The words of a catalogue: dangers, roles, operations."""

from __future__ import annotations

from enum import StrEnum


class Danger(StrEnum):
    """What can go wrong with a variable."""

    HANG = "hang"
    WRONG_RESULT = "wrong-result"
    LOST_DATA = "lost-data"
    HARM_TO_OTHERS = "harm-to-others"
    ABORT = "abort"
    FAILS_TO_START = "fails-to-start"
    IGNORED = "ignored"
    ROUNDING = "rounding"
    MEMORY = "memory"
    SLOWER = "slower"

    @property
    def meaning(self) -> str:
        """What the word says, for people."""
        return _DANGERS[self]


_DANGERS = {
    Danger.HANG: "runs may stop for ever",
    Danger.WRONG_RESULT: "data may arrive wrong, without a message",
    Danger.LOST_DATA: "data may be lost",
    Danger.HARM_TO_OTHERS: "other users of the machine may suffer",
    Danger.ABORT: "runs may end with an error",
    Danger.FAILS_TO_START: "the library may not start",
    Danger.IGNORED: "values may be ignored or changed without a message",
    Danger.ROUNDING: "the order of summation, and so the rounding, changes",
    Danger.MEMORY: "more memory may be taken",
    Danger.SLOWER: "a wrong value costs time, nothing else",
}


class Level(StrEnum):
    """How much care a variable needs."""

    SAFE = "safe"
    CAUTION = "caution"
    DANGER = "danger"
    FORBIDDEN = "forbidden"

    @property
    def meaning(self) -> str:
        """What the word says, for people."""
        return _LEVELS[self]


_LEVELS = {
    Level.SAFE: "a wrong value costs time or memory, or does nothing",
    Level.CAUTION: "try a value before relying on it",
    Level.DANGER: "a wrong value may do harm that a benchmark does not show",
    Level.FORBIDDEN: "only with the consent of those who run the machine",
}


class Role(StrEnum):
    """What a variable is for, seen from a search."""

    TUNE = "tune"
    SITE = "site"
    GUARD = "guard"
    DIAGNOSE = "diagnose"

    @property
    def meaning(self) -> str:
        """What the word says, for people."""
        return _ROLES[self]


_ROLES = {
    Role.TUNE: "may be searched",
    Role.SITE: "the site fixes it for the machine",
    Role.GUARD: "leave it as it is",
    Role.DIAGNOSE: "shows what happens, tunes nothing",
}


class KnownFrom(StrEnum):
    """What an entry rests on."""

    SOURCE = "source"
    DOCUMENTATION = "documentation"
    DUMP = "dump"

    @property
    def meaning(self) -> str:
        """What the word says, for people."""
        return _KNOWN_FROM[self]


_KNOWN_FROM = {
    KnownFrom.SOURCE: "the library's source code",
    KnownFrom.DOCUMENTATION: "documentation of the library or of a site",
    KnownFrom.DUMP: "what the library printed on a machine",
}


class Operations(StrEnum):
    """Kinds of operations on which a variable has an effect."""

    COLLECTIVES = "collectives"
    POINT_TO_POINT = "point-to-point"
    ONE_SIDED = "one-sided"
    START = "start"
    ALL = "all"


class Scope(StrEnum):
    """Where a variable has an effect."""

    INSIDE = "inside-node"
    BETWEEN = "between-nodes"
    BOTH = "both"

    @property
    def words(self) -> str:
        """For people."""
        return _SCOPES[self]


_SCOPES = {
    Scope.INSIDE: "inside a node",
    Scope.BETWEEN: "between nodes",
    Scope.BOTH: "inside a node and between nodes",
}


class Wrong(StrEnum):
    """Why a name is not a variable of the library."""

    MISSPELLED = "misspelled"
    RENAMED = "renamed"
    REMOVED = "removed"
    ELSEWHERE = "elsewhere"
    NEVER = "never"

    @property
    def meaning(self) -> str:
        """What the word says, for people."""
        return _WRONG[self]


_WRONG = {
    Wrong.MISSPELLED: "misspelled",
    Wrong.RENAMED: "renamed",
    Wrong.REMOVED: "removed",
    Wrong.ELSEWHERE: "read by something else, not by this library",
    Wrong.NEVER: "never read by any release that was looked at",
}
