"""Parameters of a space with their domains and conditions, and constraints between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from commtune.model import content_key

#: A value of a parameter; ``None`` leaves its variables unset.
Value = str | None

#: A function that returns the value of a parameter by name; ``None`` for unset.
Lookup = Callable[[str], Value]


class Kind(StrEnum):
    """The type of a parameter, by which its values are written in a space file."""

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
        """Whether a site must allow it, since a benchmark may not reveal that it occurred."""
        return self is not Risk.ABORT


class Size(StrEnum):
    """How much of a space is searched; each size holds the ones before it."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"

    def __lt__(self, other: str) -> bool:
        """Whether a size is smaller, by the order above rather than alphabetically."""
        return list(Size).index(self) < list(Size).index(Size(other))


@dataclass(frozen=True)
class Clause:
    """A conjunction: each named parameter has one of its allowed values."""

    allowed: Mapping[str, frozenset[Value]]

    def holds(self, lookup: Lookup) -> bool:
        """Whether every named parameter has one of its allowed values."""
        # A search calls this a million times, and a generator takes twice as long.
        for name, values in self.allowed.items():  # noqa: SIM110
            if lookup(name) not in values:
                return False
        return True

    @property
    def key(self) -> str:
        """A key that is equal for equivalent clauses."""
        # Sorting needs text, so unset sorts as an empty value; a flag tells the two apart.
        return content_key(
            {n: [*sorted(v or "" for v in vs), None in vs] for n, vs in self.allowed.items()}
        )


@dataclass(frozen=True)
class Restricted:
    """A legal value that isn't searched unless a site opts in."""

    value: str
    risks: tuple[Risk, ...]
    why: str


@dataclass(frozen=True)
class Parameter:
    """One dimension of a space, with a finite, ordered domain.

    Attributes:
        name: the environment variable; or the name of a group of variables.
        values: the domain, as text; ``None`` (unset) comes first if it is legal.
        settings: the environment variables, with exact text, of each value but ``None``. It also
            has values that are restricted or were excluded by narrowing.
        numbers: the numbers (bytes for sizes) of those values that are numbers.
        unset: whether it may be left unset while it is active.
        restricted: values that need an opt-in and had none.
        default: what the library does if it is unset, as text for users; empty if unknown.
        applies_to: operations, transports or hardware on which it has an effect, for users.
        size: the smallest size of the space that includes it.
        when: its condition: it is active if any clause holds, or if there is none.
    """

    name: str
    kind: Kind
    values: tuple[Value, ...]
    settings: Mapping[str, Mapping[str, str]]
    numbers: Mapping[str, int]
    unset: bool
    source: str
    risks: tuple[Risk, ...]
    opt_in: bool
    restricted: tuple[Restricted, ...]
    note: str
    default: str
    applies_to: tuple[str, ...]
    size: Size
    when: tuple[Clause, ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether all values but unset are numbers, in ascending order."""
        return all(value in self.numbers for value in self.values if value is not None)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it may set, in order of first mention by its values."""
        names = dict.fromkeys(name for setting in self.settings.values() for name in setting)
        return tuple(names)

    def environment(self, value: Value) -> dict[str, str]:
        """Returns the environment variables that a value sets; none for unset."""
        return {} if value is None else dict(self.settings[value])

    def active(self, lookup: Lookup) -> bool:
        """Whether its condition holds, given values of the parameters that the condition names."""
        for clause in self.when:
            if clause.holds(lookup):
                return True
        return not self.when

    @property
    def depends_on(self) -> frozenset[str]:
        """Names of the parameters in its condition."""
        return frozenset(name for clause in self.when for name in clause.allowed)

    @property
    def condition(self) -> str:
        """Its condition in words; empty if it is always active."""
        clauses = []
        for clause in self.when:
            parts = []
            for name, values in clause.allowed.items():
                words = sorted(value for value in values if value is not None)
                parts.append(
                    f"{name} {' or '.join([*(['unset'] if None in values else []), *words])}"
                )
            clauses.append(" and ".join(parts))
        return "; or ".join(clauses)


def _shown(names: Iterable[str], lookup: Lookup) -> str:
    return ", ".join(f"{name}={lookup(name) or '(unset)'}" for name in names)


@dataclass(frozen=True)
class Forbidden:
    """A combination of values that must not occur."""

    clause: Clause
    why: str

    @property
    def names(self) -> frozenset[str]:
        """The parameters that the constraint depends on."""
        return frozenset(self.clause.allowed)

    @property
    def key(self) -> str:
        """A key that is equal for equivalent constraints."""
        return f"forbidden {self.clause.key}"

    def broken(self, lookup: Lookup) -> bool:
        """Whether the values of all its parameters violate the constraint."""
        return self.clause.holds(lookup)

    def progress(self, known: Collection[str], lookup: Lookup) -> object:
        """Summarizes what the known parameters mean for whether the others can violate it.

        Summaries are equal if the rest of the constraint is.
        """
        return all(lookup(n) in values for n, values in self.clause.allowed.items() if n in known)

    def explain(self, lookup: Lookup) -> str:
        """Returns the constraint and the values that violate it, in words."""
        return f"{_shown(self.clause.allowed, lookup)} is forbidden: {self.why}"


@dataclass(frozen=True)
class AtMost:
    """A constraint: ``times`` x lower <= upper, where both are set to numbers."""

    lower: str
    upper: str
    numbers: Mapping[str, Mapping[str, int]]
    why: str
    times: int

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.lower, self.upper))

    @property
    def _multiple(self) -> str:
        return self.lower if self.times == 1 else f"{self.times} * {self.lower}"

    @property
    def key(self) -> str:
        return f"{self._multiple} <= {self.upper}"

    def broken(self, lookup: Lookup) -> bool:
        low = self.numbers[self.lower].get(lookup(self.lower) or "")
        high = self.numbers[self.upper].get(lookup(self.upper) or "")
        return low is not None and high is not None and low * self.times > high

    def progress(self, known: Collection[str], lookup: Lookup) -> object:
        return tuple(self.numbers[n].get(lookup(n) or "") for n in self.numbers if n in known)

    def explain(self, lookup: Lookup) -> str:
        shown = _shown((self.lower, self.upper), lookup)
        return f"{shown}: {self._multiple} must be at most {self.upper}: {self.why}"


@dataclass(frozen=True)
class ProductAtMost:
    """A constraint: the product of some parameters has a limit, where all are set to numbers."""

    of: tuple[str, ...]
    limit: int
    numbers: Mapping[str, Mapping[str, int]]
    why: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.of)

    @property
    def key(self) -> str:
        return f"{' * '.join(sorted(self.of))} <= {self.limit}"

    def broken(self, lookup: Lookup) -> bool:
        factors = [self.numbers[name].get(lookup(name) or "") for name in self.of]
        known = [factor for factor in factors if factor is not None]
        return len(known) == len(factors) and math.prod(known) > self.limit

    def progress(self, known: Collection[str], lookup: Lookup) -> object:
        factors = [self.numbers[name].get(lookup(name) or "") for name in self.of if name in known]
        if None in factors:
            return None
        product = math.prod(factor for factor in factors if factor is not None)
        return min(product, self.limit + 1) if self._only_grows else product

    @cached_property
    def _only_grows(self) -> bool:
        return all(number >= 1 for numbers in self.numbers.values() for number in numbers.values())

    def explain(self, lookup: Lookup) -> str:
        shown = _shown(self.of, lookup)
        return f"{shown}: the product must be at most {self.limit}: {self.why}"


#: A constraint, which makes some assignments illegal.
Constraint = Forbidden | AtMost | ProductAtMost
