"""Takes parameters and values out of a space, with all that hangs on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from commtune.spaces.parameter import (
    AtMost,
    Clause,
    Constraint,
    Forbidden,
    Parameter,
    ProductAtMost,
)
from commtune.spaces.space import Space


def remove_parameters(
    space: Space,
    names: Collection[str],
    values: Mapping[str, Collection[str]] | None = None,
) -> Space:
    """The space without some parameters, and without some values of others.

    Those without stay unset for ever: what needs them set goes too, and conditions and rules that
    hold of themselves then are gone, so that the result is as if it had been written like that.
    """
    gone, without = set(names), dict(values or {})
    everything = {**space.by_name, **space.left_out}
    # What goes may take others along, so that all are looked at again until none is left.
    while True:
        left: dict[str, Parameter] = {}
        for name, parameter in everything.items():
            if name not in gone:
                changed = _changed(parameter, gone, without)
                if changed is None:
                    gone.add(name)
                else:
                    left[name] = changed
        if not any(gone & p.depends_on for p in left.values()):
            break
    return replace(
        space,
        parameters=tuple(left[p.name] for p in space.parameters if p.name in left),
        left_out={name: left[name] for name in space.left_out if name in left},
        constraints=tuple(_constraints(space.constraints, gone, without)),
    )


def _changed(
    parameter: Parameter, gone: Collection[str], without: Mapping[str, Collection[str]]
) -> Parameter | None:
    """A parameter as it is then; ``None`` where nothing is left of it."""
    lost = without.get(parameter.name, ())
    values = tuple(value for value in parameter.values if value not in lost)
    if not any(value is not None for value in values):
        return None
    parameter = replace(
        parameter,
        values=values,
        settings={v: s for v, s in parameter.settings.items() if v not in lost},
        restricted=tuple(r for r in parameter.restricted if r.value not in lost),
    )
    if not parameter.when:
        return parameter
    clauses = [_clause(clause, gone, without) for clause in parameter.when]
    possible = [clause for clause in clauses if clause is not None]
    if not possible:
        return None
    always = any(not clause.allowed for clause in possible)
    return replace(parameter, when=() if always else tuple(possible))


def _clause(
    clause: Clause, gone: Collection[str], without: Mapping[str, Collection[str]]
) -> Clause | None:
    """A condition as it is then, empty where it always holds; ``None`` where it never does."""
    allowed = {}
    for name, values in clause.allowed.items():
        # It is unset for ever: what allows that holds, anything else never does.
        if name in gone:
            if None not in values:
                return None
            continue
        allowed[name] = values - set(without.get(name, ()))
        if not allowed[name]:
            return None
    return Clause(allowed)


def _constraints(
    constraints: Iterable[Constraint],
    gone: Collection[str],
    without: Mapping[str, Collection[str]],
) -> Iterable[Constraint]:
    for constraint in constraints:
        match constraint:
            case Forbidden():
                clause = _clause(constraint.clause, gone, without)
                if clause is not None:
                    yield replace(constraint, clause=clause)
            case AtMost() | ProductAtMost():
                if not constraint.names & set(gone):
                    yield constraint
