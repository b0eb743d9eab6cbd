"""One dimension of a space: an environment variable, or several that are set together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: A value of a parameter; ``None`` leaves its variables unset.
Value = str | None

#: Gives the value of a parameter by name; ``None`` for one that is unset.
Lookup = Callable[[str], Value]


class Kind(StrEnum):
    """How a parameter's values are written down in a space."""

    BOOL = "bool"
    CHOICE = "choice"
    INTEGER = "integer"
    POWER_OF_TWO = "power-of-two"
    BYTES = "bytes"
    GROUP = "group"


class Risk(StrEnum):
    """What can go wrong with a parameter; all but ABORT need an opt-in."""

    HANG = "hang"
    WRONG_RESULT = "wrong-result"
    ABORT = "abort"
    HARM_TO_OTHERS = "harm-to-others"

    @property
    def needs_opt_in(self) -> bool:
        """Whether a benchmark can't be relied on to show it, so that a site must decide."""
        return self is not Risk.ABORT


class Size(StrEnum):
    """How much of a space is searched; each size holds the ones before it."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"

    def holds(self, other: Size) -> bool:
        """Whether what begins at another size is in this one."""
        return list(Size).index(other) <= list(Size).index(self)


@dataclass(frozen=True)
class Clause:
    """Parameters that must have one of the named values, all of them at once."""

    allowed: Mapping[str, frozenset[Value]]

    def holds(self, lookup: Lookup) -> bool:
        """Whether every named parameter has one of its values."""
        return all(lookup(name) in values for name, values in self.allowed.items())


@dataclass(frozen=True)
class Restricted:
    """A real value that stays out of the search until a site opts in."""

    value: str
    risks: tuple[Risk, ...]
    why: str = ""


@dataclass(frozen=True)
class Parameter:
    """One dimension of a space. Its values are finite and in order, unset first.

    Attributes:
        name: the environment variable; for a group, the name of the group.
        values: the legal values as text; ``None``, where legal, comes first.
        settings: what each value but ``None`` sets: environment variables with exact text;
            restricted and narrowed-away values are still in it.
        numbers: the values that are numbers (bytes for sizes); the others are absent.
        unset: whether it may be left unset when it is active.
        when: it is active when any of these clauses holds; always, without clauses.
        restricted: values that were left out because they need an opt-in.
        default: what the library does when it is unset, for people; empty where not known.
        applies_to: operations, transports or hardware on which it has an effect, for people.
        size: the smallest size of its space that has it.
    """

    name: str
    kind: Kind
    values: tuple[Value, ...]
    settings: Mapping[str, Mapping[str, str]]
    numbers: Mapping[str, int] = field(default_factory=dict)
    unset: bool = True
    when: tuple[Clause, ...] = ()
    source: str = ""
    risks: tuple[Risk, ...] = ()
    opt_in: bool = False
    restricted: tuple[Restricted, ...] = ()
    note: str = ""
    default: str = ""
    applies_to: tuple[str, ...] = ()
    size: Size = Size.STANDARD

    @property
    def ordered(self) -> bool:
        """Whether all values but unset are numbers, ascending."""
        return all(value in self.numbers for value in self.values if value is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it may set, in order of first mention."""
        names = dict.fromkeys(name for setting in self.settings.values() for name in setting)
        return tuple(names)

    def environment(self, value: Value) -> dict[str, str]:
        """What a value sets; nothing for unset."""
        return {} if value is None else dict(self.settings[value])

    def active(self, lookup: Lookup) -> bool:
        """Whether its condition holds, given the parameters that the condition names."""
        return not self.when or any(clause.holds(lookup) for clause in self.when)

    @property
    def depends_on(self) -> frozenset[str]:
        """Names of the parameters in its condition."""
        return frozenset(name for clause in self.when for name in clause.allowed)
