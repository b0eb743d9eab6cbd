"""Adds a value to the domain of a parameter, and adapts conditions and constraints to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from commtune.spaces.parameter import Clause, Constraint, Forbidden, Parameter, Restricted, Value
from commtune.spaces.space import Space


def add_value(
    space: Space,
    parameter: Parameter,
    value: str,
    number: int | None,
    restricted: Restricted | None = None,
) -> Space:
    """Returns the space with a further value of a parameter that sets one variable.

    Args:
        number: the value as a number (bytes for sizes); ``None`` for a word.
        restricted: why the value needs an opt-in, and so isn't searched; ``None`` if it is.
    """
    (name,) = parameter.variables
    numbers = {**parameter.numbers, **({} if number is None else {value: number})}
    settings = {**parameter.settings, value: {name: value}}
    # Words first, then numbers ascending, as a space file has them.
    order = sorted(settings, key=lambda v: (v in numbers, numbers.get(v, 0)))
    legal = {*parameter.values, *([] if restricted else [value])}
    changed = replace(
        parameter,
        settings={v: settings[v] for v in order},
        values=tuple(v for v in (None, *order) if v in legal),
        numbers={v: numbers[v] for v in order if v in numbers},
        restricted=(*parameter.restricted, *([restricted] if restricted else [])),
    )

    def adapted(old: Parameter) -> Parameter:
        return changed if old.name == changed.name else _dependent(old, changed, value)

    # Conditions and constraints list the values that they were written for. The new value joins a
    # list that has all other values, or as a number one that has its neighbours: both of them in
    # conditions, one in constraints. So in doubt, a combination stays illegal.
    return replace(
        space,
        parameters=tuple(adapted(p) for p in space.parameters),
        left_out={name: adapted(p) for name, p in space.left_out.items()},
        constraints=tuple(_with_value_in_constraint(c, changed, value) for c in space.constraints),
    )


def _dependent(dependent: Parameter, parameter: Parameter, value: str) -> Parameter:
    if parameter.name not in dependent.depends_on:
        return dependent
    clauses = tuple(_clause(c, parameter, value, strict=False) for c in dependent.when)
    return replace(dependent, when=clauses)


def _with_value_in_constraint(
    constraint: Constraint, parameter: Parameter, value: str
) -> Constraint:
    if parameter.name not in constraint.names:
        return constraint
    if isinstance(constraint, Forbidden):
        clause = _clause(constraint.clause, parameter, value, strict=True)
        return replace(constraint, clause=clause)
    return replace(constraint, numbers={**constraint.numbers, parameter.name: parameter.numbers})


def _clause(clause: Clause, parameter: Parameter, value: str, *, strict: bool) -> Clause:
    """Returns a clause that also allows the value, if its other values imply that.

    Args:
        strict: whether one neighbour in the clause is enough; otherwise both must be in it.
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
