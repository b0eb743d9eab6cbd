"""Turns what a variable needs, by its catalogue, into conditions of a space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commtune.errors import DocumentError
from commtune.spaces.catalogue_facts import CatalogueFact
from commtune.spaces.parameter import Clause, Parameter, Value

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Need, Variable
    from commtune.spaces.space import Space

_TRUE, _FALSE = ("1", "true", "yes", "on", "y"), ("0", "false", "no", "off", "n")

_Allowed = dict[str, frozenset[Value]]


@dataclass(frozen=True)
class KnownParameters:
    """What conditions may refer to.

    Attributes:
        parameters: those of the space, also the ones that need an opt-in.
        pinned: variables set in every run.
    """

    parameters: Mapping[str, Parameter]
    pinned: Mapping[str, str]


def with_needs(
    parameter: Parameter,
    facts: Mapping[str, CatalogueFact],
    known: KnownParameters,
    fail: Callable[[str, str], DocumentError],
) -> Parameter:
    """The parameter, active only where what it needs holds; one with a condition keeps that.

    Args:
        fail: makes the error from a message and a hint.

    Raises:
        DocumentError: it needs what no configuration of the space has.
    """
    fact = facts.get(parameter.name)
    if parameter.when or fact is None:
        return parameter
    always = _all(fact.variable.needs, facts, known)
    choices = [_all([need], facts, known) for need in fact.variable.needs_any] or [{}]
    clauses = [_joined(always, choice) for choice in choices if choice is not None]
    if always is None or not clauses:
        needs = [*fact.variable.needs, *fact.variable.needs_any]
        raise fail(
            f"{parameter.name} has no effect: {'; '.join(map(str, needs))}",
            "add that variable, pin it, or leave this one out",
        )
    if any(not clause for clause in clauses):
        return parameter
    return replace(parameter, when=tuple(Clause(clause) for clause in clauses if clause))


def idle_under(space: Space, name: str, value: str) -> tuple[str, ...]:
    """The parameters that have no effect where a variable has a value, by the catalogues.

    Those that need an opt-in are among them.
    """
    from commtune.spaces.catalogue.lookup import look_up  # reads files

    catalogues = sorted(
        (known.catalogue for known in look_up(name).known),
        key=lambda catalogue: catalogue.library != space.library,
    )
    variables: dict[str, Variable] = {}
    for catalogue in catalogues:
        variables = {**catalogue.variables, **variables}
    return tuple(
        parameter.name
        for parameter in (*space.parameters, *space.left_out.values())
        if all(_is_idle(variables.get(v), name, value) for v in parameter.variables)
    )


def _is_idle(variable: Variable | None, name: str, value: str) -> bool:
    """Whether a variable needs another value of the one with this name."""
    if variable is None:
        return False
    always, choices = (
        [need.variable == name and not _meets(need, value) for need in needs]
        for needs in (variable.needs, variable.needs_any)
    )
    return any(always) or (bool(choices) and all(choices))


def _all(
    needs: Sequence[Need], facts: Mapping[str, CatalogueFact], known: KnownParameters
) -> _Allowed | None:
    """What must hold for all of some needs; nothing for ever, ``None`` for never."""
    allowed: _Allowed = {}
    for need in needs:
        fact = facts.get(need.variable)
        default = fact.variable.default if fact is not None else None
        pinned = known.pinned.get(need.variable)
        target = known.parameters.get(need.variable)
        if target is None:
            if not _meets(need, pinned if pinned is not None else default):
                return None
            continue
        values: set[Value] = {value for value in target.settings if _meets(need, value)}
        if _meets(need, default):
            values.add(None)
        if values == {None, *target.settings}:
            continue
        if not values:
            return None
        allowed[need.variable] = frozenset(values) & allowed.get(need.variable, frozenset(values))
    return allowed


def _joined(always: _Allowed | None, choice: _Allowed) -> _Allowed:
    joined = dict(always or {})
    for name, values in choice.items():
        joined[name] = values & joined.get(name, values)
    return joined


def _meets(need: Need, value: str | None) -> bool:
    """Whether a value of the other variable is what is needed; an unknown default is not."""
    if value is None:
        return need.none_of is not None
    if need.above is not None:
        number = value.lstrip("-")
        return number.isdigit() and int(value) > need.above
    if need.none_of is not None:
        return not any(_same(value, other) for other in need.none_of)
    return any(_same(value, other) for other in need.one_of or ())


def _same(one: str, other: str) -> bool:
    one, other = one.casefold(), other.casefold()
    return one == other or any(one in words and other in words for words in (_TRUE, _FALSE))
