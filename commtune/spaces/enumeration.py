"""Counts, lists and numbers the legal assignments of a space, exactly.

The parameters are taken one after the other, each after those that its condition names. What
the first ones can still mean for the rest is a small state: the values of those that a later
condition or constraint looks at. Completions are counted once a state, so a space of 10^15
configurations is counted at once, as long as few parameters hang together. The counts number
all assignments from 0; drawing a number uniformly draws an assignment uniformly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from commtune.spaces.parameter import Constraint, Lookup, Parameter, Value

_Assignment = dict[str, Value]


class Enumeration:
    """The legal assignments of parameters under constraints.

    Args:
        parameters: each after all that its condition depends on.
        constraints: over these parameters and the fixed ones.
        fixed: parameters that conditions and constraints may name but that don't vary.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        constraints: Sequence[Constraint],
        fixed: Mapping[str, Value],
    ) -> None:
        self._parameters = tuple(parameters)
        self._fixed = fixed
        place = {parameter.name: i for i, parameter in enumerate(parameters)}
        self._checks = _by_last_name(constraints, place, len(self._parameters))
        self._states = _live_names(self._parameters, self._checks)
        # Parameters at whose value something later looks; the others have equal completions.
        self._matters = {
            i for i, p in enumerate(parameters) if any(p.name in s for s in self._states[i + 1 :])
        }
        self._found: dict[tuple[int, tuple[Value, ...]], tuple[tuple[Value, int], ...]] = {}

    def count(self) -> int:
        """How many legal assignments there are."""
        return self._completions(0, {}) if self._root_allowed() else 0

    def nth(self, number: int) -> _Assignment:
        """The assignment with a number, from 0 to count() - 1; number 0 leaves all unset."""
        if not 0 <= number < self.count():
            raise IndexError(number)
        chosen: _Assignment = {}
        for index, parameter in enumerate(self._parameters):
            options = self._options(index, chosen)
            # All values have as many completions, so that division finds the one that is meant.
            if index not in self._matters:
                completions = options[0][1]
                chosen[parameter.name] = options[number // completions][0]
                number %= completions
                continue
            for value, completions in options:
                if number < completions:
                    chosen[parameter.name] = value
                    break
                number -= completions
        return chosen

    def __iter__(self) -> Iterator[_Assignment]:
        """All assignments, in the order of their numbers, made as they are asked for."""
        if self._root_allowed():
            yield from self._extend(0, {})

    def _extend(self, index: int, chosen: _Assignment) -> Iterator[_Assignment]:
        if index == len(self._parameters):
            yield chosen
            return
        name = self._parameters[index].name
        for value in self._legal(index, chosen):
            extended = chosen | {name: value}
            if self._completions(index + 1, extended):
                yield from self._extend(index + 1, extended)

    def _completions(self, index: int, chosen: _Assignment) -> int:
        if index == len(self._parameters):
            return 1
        return sum(completions for _, completions in self._options(index, chosen))

    def _options(self, index: int, chosen: _Assignment) -> tuple[tuple[Value, int], ...]:
        """The values that a parameter may have, each with its completions; found once a state."""
        key = (index, tuple(chosen[name] for name in self._states[index]))
        if key not in self._found:
            name = self._parameters[index].name
            legal = list(self._legal(index, chosen))
            # Where nothing later looks, the first stands for all.
            asked = legal if index in self._matters else legal[:1]
            counts = [self._completions(index + 1, chosen | {name: value}) for value in asked]
            counts *= len(legal) // max(1, len(counts))
            self._found[key] = tuple(zip(legal, counts, strict=True))
        return self._found[key]

    def _legal(self, index: int, chosen: _Assignment) -> Iterator[Value]:
        parameter = self._parameters[index]
        values: tuple[Value, ...] = (None,)
        if parameter.active(self._lookup(chosen)):
            values = parameter.values
        if not self._checks[index + 1]:
            yield from values
            return
        for value in values:
            lookup = self._lookup(chosen | {parameter.name: value})
            if not any(check.broken(lookup) for check in self._checks[index + 1]):
                yield value

    def _root_allowed(self) -> bool:
        return not any(check.broken(self._lookup({})) for check in self._checks[0])

    def _lookup(self, chosen: Mapping[str, Value]) -> Lookup:
        return lambda name: chosen[name] if name in chosen else self._fixed.get(name)


def _by_last_name(
    constraints: Sequence[Constraint], place: Mapping[str, int], size: int
) -> list[list[Constraint]]:
    # Entry i + 1 holds what can be decided once parameter i has a value; entry 0 what is fixed.
    checks: list[list[Constraint]] = [[] for _ in range(size + 1)]
    for constraint in constraints:
        last = max((place[name] for name in constraint.names if name in place), default=-1)
        checks[last + 1].append(constraint)
    return checks


def _live_names(
    parameters: Sequence[Parameter], checks: Sequence[Sequence[Constraint]]
) -> list[tuple[str, ...]]:
    # Which earlier parameters still matter when parameter i is about to get its value.
    live: list[tuple[str, ...]] = []
    later: set[str] = set()
    for index in range(len(parameters) - 1, -1, -1):
        later |= parameters[index].depends_on
        later |= {name for check in checks[index + 1] for name in check.names}
        live.append(tuple(p.name for p in parameters[:index] if p.name in later))
    return live[::-1]
