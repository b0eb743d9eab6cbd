"""Counts, lists and indexes the legal assignments of a space exactly, by dynamic programming.

The parameters are assigned in an order in which each follows those that its condition names. What
a partial assignment means for the rest is a small state: the values of parameters that later
conditions read, and the progress of each constraint. Completions are counted once per state, so a
space of 10^15 configurations is counted in no time as long as few parameters depend on each other.
The counts give each assignment an index from 0; a uniform index gives a uniform assignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from commtune.errors import SpaceError
from commtune.formatting import list_first
from commtune.spaces.parameter import Constraint, Lookup, Parameter, Value

_Assignment = dict[str, Value]
_State = tuple[object, ...]
#: The legal values of a parameter in a state, each with its number of completions and next state.
_Options = tuple[tuple[Value, int, _State], ...]
#: The most work: values tried over all states, times the parameters that conditions and
#: constraints look up for each. It takes a second or two.
_MOST_WORK = 1_500_000


class Enumeration:
    """The legal assignments of parameters under constraints.

    Its methods raise `SpaceError` if too many parameters depend on each other for an exact count.

    Args:
        parameters: sorted so that each follows those that its condition names.
        constraints: over these and the fixed parameters; all unset must meet every constraint.
        fixed: values of further parameters that conditions and constraints may name.
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
        self._needed = _needed_names(self._parameters)
        self._begun = _begun_constraints(self._checks, place)

    def count(self) -> int:
        """Returns the number of legal assignments, including the one that leaves all unset."""
        return self._table[1]

    def nth(self, number: int) -> _Assignment:
        """Returns the assignment with an index from 0, which leaves all unset, to count() - 1."""
        if not 0 <= number < self.count():
            raise IndexError(number)
        chosen: _Assignment = {}
        state = self._first_state
        for index, parameter in enumerate(self._parameters):
            for value, completions, after in self._table[0][index][state]:
                if number < completions:
                    chosen[parameter.name], state = value, after
                    break
                number -= completions
        return chosen

    def __iter__(self) -> Iterator[_Assignment]:
        """Yields all assignments lazily, in the order of their indices."""
        return map(self.nth, range(self.count()))

    @cached_property
    def _first_state(self) -> _State:
        return self._state(0, {})

    @cached_property
    def _table(self) -> tuple[list[dict[_State, _Options]], int]:
        """The options of each parameter in every reachable state, and the total count."""
        # A forward pass finds the reachable states, a backward pass counts their completions.
        ways = list(self._reachable())
        completions: dict[_State, int] = {}
        table: list[dict[_State, _Options]] = []
        for found in reversed(ways):
            options = {
                # After the last parameter there is one completion.
                state: tuple((value, completions.get(after, 1), after) for value, after in each)
                for state, each in found.items()
            }
            completions = {state: sum(n for _, n, _ in each) for state, each in options.items()}
            table.append(options)
        return table[::-1], completions.get(self._first_state, 1)

    def _reachable(self) -> Iterator[dict[_State, list[tuple[Value, _State]]]]:
        before: dict[_State, _Assignment] = {self._first_state: {}}
        work = 0
        for index, parameter in enumerate(self._parameters):
            after: dict[_State, _Assignment] = {}
            found = {}
            looked_up = sum(len(check.names) for check in self._checks[index + 1])
            looked_up += sum(len(names) for _, names in self._begun[index + 1])
            for state, chosen in before.items():
                work += len(parameter.values) * (1 + looked_up)
                if work > _MOST_WORK:
                    raise _too_entangled(self._begun[index])
                found[state] = self._ways(index, chosen, after)
            yield found
            before = after

    def _ways(
        self, index: int, chosen: _Assignment, after: dict[_State, _Assignment]
    ) -> list[tuple[Value, _State]]:
        """Returns the legal values in a state with the next states, which it adds to ``after``."""
        name = self._parameters[index].name
        live = set(self._needed[index + 1]).union(*(names for _, names in self._begun[index + 1]))
        found: list[tuple[Value, _State]] = []
        for value in self._legal(index, chosen):
            extended = chosen | {name: value}
            state = self._state(index + 1, extended)
            if state not in after:
                after[state] = {n: v for n, v in extended.items() if n in live}
            found.append((value, state))
        return found

    def _state(self, index: int, chosen: _Assignment) -> _State:
        """Returns the state before a parameter: all that it and later ones depend on."""
        lookup = self._lookup(chosen)
        values = [chosen[name] for name in self._needed[index]]
        return (*values, *(c.progress(names, lookup) for c, names in self._begun[index]))

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

    def _lookup(self, chosen: Mapping[str, Value]) -> Lookup:
        return lambda name: chosen[name] if name in chosen else self._fixed.get(name)


def _too_entangled(begun: Sequence[_Begun]) -> SpaceError:
    names = sorted({name for constraint, _ in begun for name in constraint.names})
    return SpaceError(
        f"rules between {list_first(names)} leave too many cases to count",
        hint="give these fewer values, or relate fewer of them",
    )


def _by_last_name(
    constraints: Sequence[Constraint], place: Mapping[str, int], size: int
) -> list[list[Constraint]]:
    # Entry i + 1 holds the constraints that can be checked once parameter i has a value; entry 0
    # those over fixed parameters only.
    checks: list[list[Constraint]] = [[] for _ in range(size + 1)]
    for constraint in constraints:
        last = max((place[name] for name in constraint.names if name in place), default=-1)
        checks[last + 1].append(constraint)
    return checks


#: A constraint, and those of its parameters that have a value by now.
_Begun = tuple[Constraint, frozenset[str]]


def _needed_names(parameters: Sequence[Parameter]) -> list[tuple[str, ...]]:
    # Entry i holds the earlier parameters that conditions from parameter i on read.
    needed: list[tuple[str, ...]] = [()]
    later: set[str] = set()
    for index in range(len(parameters) - 1, -1, -1):
        later |= parameters[index].depends_on
        needed.append(tuple(p.name for p in parameters[:index] if p.name in later))
    return needed[::-1]


def _begun_constraints(
    checks: Sequence[Sequence[Constraint]], place: Mapping[str, int]
) -> list[list[_Begun]]:
    # Entry i holds the constraints that are partly assigned before parameter i gets its value.
    # Fixed parameters count as assigned from the beginning.
    begun: list[list[_Begun]] = []
    for index in range(len(checks)):
        waiting = [constraint for later in checks[index + 1 :] for constraint in later]
        pairs = [
            (constraint, frozenset(n for n in constraint.names if place.get(n, -1) < index))
            for constraint in waiting
        ]
        begun.append([(constraint, names) for constraint, names in pairs if names])
    return begun
