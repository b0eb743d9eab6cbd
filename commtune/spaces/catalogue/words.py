"""The words of catalogue files, each with what it says to people."""

from __future__ import annotations

from enum import StrEnum


class _Word(StrEnum):
    """A word of the format, with what it says to people."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> _Word:
        # str would take the second word for the name of an encoding.
        made = str.__new__(cls, word)
        made._value_, made.meaning = word, meaning
        return made


class Danger(_Word):
    """What can go wrong with a variable."""

    HANG = "hang", "runs may hang"
    WRONG_RESULT = "wrong-result", "data may be wrong, without an error message"
    LOST_DATA = "lost-data", "data may be lost"
    HARM_TO_OTHERS = "harm-to-others", "other users of the machine may suffer"
    ABORT = "abort", "runs may end with an error"
    FAILS_TO_START = "fails-to-start", "the library may not start"
    IGNORED = "ignored", "values may be ignored or changed without a message"
    ROUNDING = "rounding", "the order of summation, and so the rounding, changes"
    MEMORY = "memory", "more memory may be taken"
    SLOWER = "slower", "a wrong value costs time, nothing else"


class Level(_Word):
    """How much care a variable needs."""

    SAFE = "safe", "a wrong value costs time or memory, or does nothing"
    CAUTION = "caution", "try a value before relying on it"
    DANGER = "danger", "a wrong value may do harm that a benchmark does not show"
    FORBIDDEN = "forbidden", "only with the consent of the machine's administrators"


class Role(_Word):
    """What a variable is for, seen from a search."""

    TUNE = "tune", "may be searched"
    SITE = "site", "the site fixes it for the machine"
    GUARD = "guard", "leave it as it is"
    DIAGNOSE = "diagnose", "shows what happens, tunes nothing"


class KnownFrom(_Word):
    """What an entry rests on."""

    SOURCE = "source", "the library's source code"
    DOCUMENTATION = "documentation", "documentation of the library or of a site"
    DUMP = "dump", "what the library printed on a machine"


class Operations(StrEnum):
    """Kinds of operations on which a variable has an effect."""

    COLLECTIVES = "collectives"
    POINT_TO_POINT = "point-to-point"
    ONE_SIDED = "one-sided"
    START = "start"
    ALL = "all"


class Scope(_Word):
    """Where a variable has an effect."""

    INSIDE = "inside-node", "inside a node"
    BETWEEN = "between-nodes", "between nodes"
    BOTH = "both", "inside a node and between nodes"


class Wrong(_Word):
    """Why a name is not a variable of the library."""

    MISSPELLED = "misspelled", "misspelled"
    RENAMED = "renamed", "renamed"
    REMOVED = "removed", "removed"
    ELSEWHERE = "elsewhere", "read by something else, not by this library"
    NEVER = "never", "never read by any release that was looked at"
