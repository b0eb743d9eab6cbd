"""Conditions and constraints of a space, when one of its parameters gets a further value.

They are stored with the values that they were made for. Of a number, its neighbours decide; a rule
that holds for every value holds for the new one. In doubt, nothing becomes legal by it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from commtune.spaces.constraints import AtMost, Constraint, Forbidden, ProductAtMost
from commtune.spaces.parameter import Clause, Parameter, Value
from commtune.spaces.space import Space


def with_value_in_rules(space: Space, parameter: Parameter, value: str) -> Space:
    """The space with rules that know a value which a parameter has got."""
    return replace(
        space,
        parameters=tuple(_dependent(p, parameter, value) for p in space.parameters),
        left_out={n: _dependent(p, parameter, value) for n, p in space.left_out.items()},
        constraints=tuple(_constraint(c, parameter, value) for c in space.constraints),
    )


def _dependent(dependent: Parameter, parameter: Parameter, value: str) -> Parameter:
    if parameter.name not in dependent.depends_on:
        return dependent
    clauses = tuple(_clause(c, parameter, value, strict=False) for c in dependent.when)
    return replace(dependent, when=clauses)


def _constraint(constraint: Constraint, parameter: Parameter, value: str) -> Constraint:
    if parameter.name not in constraint.names:
        return constraint
    match constraint:
        case Forbidden():
            clause = _clause(constraint.clause, parameter, value, strict=True)
            return replace(constraint, clause=clause)
        case AtMost() | ProductAtMost():
            numbers = {**constraint.numbers, parameter.name: parameter.numbers}
            return replace(constraint, numbers=numbers)
    return constraint


def _clause(clause: Clause, parameter: Parameter, value: str, *, strict: bool) -> Clause:
    """A clause with the value where it belongs into it.

    Args:
        strict: whether one neighbour in it is enough; else all of them must be.
    """
    allowed = clause.allowed.get(parameter.name)
    if allowed is None or not _belongs(allowed, parameter, value, strict=strict):
        return clause
    return Clause({**clause.allowed, parameter.name: allowed | {value}})


def _belongs(
    allowed: Collection[Value], parameter: Parameter, value: str, *, strict: bool
) -> bool:
    others = [v for v in parameter.settings if v != value]
    if all(v in allowed for v in others):
        return True
    if value not in parameter.numbers:
        return False
    number = parameter.numbers[value]
    below = [v for v in others if v in parameter.numbers and parameter.numbers[v] < number]
    above = [v for v in others if v in parameter.numbers and parameter.numbers[v] > number]
    near = [v in allowed for v in (*below[-1:], *above[:1])]
    return bool(near) and (any(near) if strict else all(near))
