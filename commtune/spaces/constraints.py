"""What configurations a space forbids, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from commtune.spaces.parameter import Clause, Lookup


class Constraint(Protocol):
    """Rules out some assignments."""

    @property
    def names(self) -> frozenset[str]:
        """The parameters that it looks at."""
        ...

    def broken(self, lookup: Lookup) -> bool:
        """Whether an assignment of all named parameters is ruled out."""
        ...

    def explain(self, lookup: Lookup) -> str:
        """The rule and the offending values, for a person."""
        ...


def _shown(names: tuple[str, ...], lookup: Lookup) -> str:
    return ", ".join(f"{name}={lookup(name) or '(unset)'}" for name in names)


@dataclass(frozen=True)
class Forbidden:
    """A combination of values that must not occur."""

    clause: Clause
    why: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.clause.allowed)

    def broken(self, lookup: Lookup) -> bool:
        return self.clause.holds(lookup)

    def explain(self, lookup: Lookup) -> str:
        shown = _shown(tuple(self.clause.allowed), lookup)
        return f"{shown} is forbidden: {self.why}"


@dataclass(frozen=True)
class AtMost:
    """The first parameter's number, some times, is at most the second's, where both are set."""

    lower: str
    upper: str
    numbers: Mapping[str, Mapping[str, int]]
    why: str
    times: int = 1

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.lower, self.upper))

    def broken(self, lookup: Lookup) -> bool:
        low = self.numbers[self.lower].get(lookup(self.lower) or "")
        high = self.numbers[self.upper].get(lookup(self.upper) or "")
        return low is not None and high is not None and low * self.times > high

    def explain(self, lookup: Lookup) -> str:
        shown = _shown((self.lower, self.upper), lookup)
        lower = self.lower if self.times == 1 else f"{self.times} * {self.lower}"
        return f"{shown}: {lower} must be at most {self.upper}: {self.why}"


@dataclass(frozen=True)
class ProductAtMost:
    """The product of the parameters' numbers has a limit, where all are set to numbers."""

    of: tuple[str, ...]
    limit: int
    numbers: Mapping[str, Mapping[str, int]]
    why: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.of)

    def broken(self, lookup: Lookup) -> bool:
        factors = [self.numbers[name].get(lookup(name) or "") for name in self.of]
        known = [factor for factor in factors if factor is not None]
        return len(known) == len(factors) and math.prod(known) > self.limit

    def explain(self, lookup: Lookup) -> str:
        shown = _shown(self.of, lookup)
        return f"{shown}: the product must be at most {self.limit}: {self.why}"
