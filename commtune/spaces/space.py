"""A search space, which defines the legal configurations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import SpaceError
from commtune.model import Configuration, Operation, content_key
from commtune.spaces.building import nearest_value
from commtune.spaces.enumeration import Enumeration
from commtune.spaces.parameter import Constraint, Lookup, Parameter, Value

#: Words of `Parameter.applies_to` that are operations; other words are transports or hardware.
_OPERATIONS = set(Operation)


@dataclass(frozen=True)
class Space:
    """A search space: parameters with domains and conditions, and constraints between them.

    An assignment gives every parameter a value, ``None`` for unset. It is legal if each active
    parameter has a value of its domain, each inactive one is unset, and no constraint is
    violated. Legal assignments and legal configurations correspond one to one; the default, which
    is the empty configuration, is always legal.

    Attributes:
        version: the version that the author declared; `key` identifies the content.
        versions: the library versions that it is for, as text like ``>=4.3,<6``.
        operations: those that it is meant for, for people; empty for all.
        pinned: variables set in every run, including the baseline's; never in a configuration.
        parameters: the dimensions, sorted so that each follows those that its condition names.
        fixed: parameters that no longer vary, with their values.
        left_out: parameters that need an opt-in and had none.
    """

    name: str
    version: str
    library: str
    parameters: tuple[Parameter, ...]
    versions: str = ""
    operations: tuple[str, ...] = ()
    summary: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    fixed: Mapping[str, Value] = field(default_factory=dict)
    left_out: Mapping[str, Parameter] = field(default_factory=dict)
    retired: Mapping[str, Parameter] = field(default_factory=dict, repr=False)

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def declared(self) -> Mapping[str, Parameter]:
        """All parameters that conditions may name: searched, left out and pinned."""
        return {**self.by_name, **self.left_out, **self.retired}

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All environment variables that this space may set in a run, including pinned ones."""
        return tuple(sorted({*self.pinned, *self._searched}))

    @cached_property
    def _searched(self) -> frozenset[str]:
        """The environment variables that a configuration may set."""
        return frozenset(v for p in self.parameters for v in p.variables)

    @cached_property
    def key(self) -> str:
        """A hash of the content: spaces with equal keys have equal legal configurations and pins.

        Names, the order of parameters, notes and sources don't affect it.
        """
        return content_key(_content(self))

    @cached_property
    def _enumeration(self) -> Enumeration:
        return Enumeration(self.parameters, self.constraints, self.fixed)

    def count(self) -> int:
        """Returns the exact number of legal configurations, including the default."""
        return self._enumeration.count()

    def configurations(self) -> Iterator[Configuration]:
        """Yields every legal configuration once, lazily, the default first."""
        return (self.configuration(assignment) for assignment in self._enumeration)

    def nth(self, number: int) -> Configuration:
        """Returns the configuration with an index from 0 (the default) to count() - 1.

        Raises:
            IndexError: the index is out of range.
        """
        return self.configuration(self._enumeration.nth(number))

    def sample(self, rng: random.Random) -> Configuration:
        """Draws a configuration uniformly from all legal ones, whatever the conditions."""
        return self.nth(rng.randrange(self.count()))

    def configuration(self, assignment: Mapping[str, Value]) -> Configuration:
        """Returns the configuration of an assignment; parameters that it doesn't name are unset.

        Raises:
            SpaceError: a parameter or value is unknown. Conditions are not checked (see `check`).
        """
        environment: dict[str, str] = {}
        for name, value in assignment.items():
            parameter = self.by_name.get(name)
            if parameter is None:
                raise SpaceError(
                    f"{quote_value(name)} is not a parameter of space {self.name}",
                    hint=suggest_nearest(name, self.by_name),
                )
            if value is None:
                continue
            if value not in parameter.values:
                raise SpaceError(
                    f"{quote_value(value)} is not a value of {name}",
                    hint=nearest_value(parameter, value),
                )
            environment |= parameter.settings[value]
        return Configuration(environment)

    def assignment(self, configuration: Mapping[str, str]) -> dict[str, Value]:
        """Returns the assignment of a legal configuration, the inverse of `configuration`.

        Raises:
            SpaceError: the configuration is not in the space.
        """
        assignment, problems = self._examine(configuration)
        if problems:
            raise SpaceError(
                f"not a configuration of space {self.name}: {problems[0]}",
                hint="\n".join(problems[1:]),
            )
        return assignment

    def check(self, configuration: Mapping[str, str]) -> list[str]:
        """Lists the problems of a configuration in words, with the nearest legal values.

        The list is empty for a legal configuration.
        """
        return self._examine(configuration)[1]

    def _examine(self, configuration: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
        """Returns the assignment of a configuration, and its problems."""
        values, problems = dict(configuration), self._unknown(configuration)
        assignment: dict[str, Value] = {}
        for parameter in self.parameters:
            try:
                assignment[parameter.name] = _decoded(parameter, values)
            except SpaceError as e:
                problems.append(f"{e.message} ({e.hint})" if e.hint else e.message)
        if problems:
            return assignment, problems
        lookup = {**self.fixed, **assignment}.get
        for parameter in self.parameters:
            problems += _misplaced(parameter, lookup)
        problems += [c.explain(lookup) for c in self.constraints if c.broken(lookup)]
        return assignment, problems

    def _unknown(self, configuration: Mapping[str, str]) -> list[str]:
        waiting = {v: p for p in self.left_out.values() for v in p.variables}
        problems = []
        for name in configuration:
            if name in self._searched:
                continue
            if name in self.pinned:
                problems.append(
                    f"{name} is pinned to {quote_value(self.pinned[name])} in every run"
                )
            elif name in waiting:
                owner = waiting[name]
                risks = ", ".join(owner.risks) or "see its note"
                problems.append(f"{name} needs an opt-in ({risks}): opt_in: [{owner.name}]")
            else:
                hint = suggest_nearest(name, sorted(self._searched))
                problems.append(f"{quote_value(name)} is not in the space ({hint})")
        return problems

    def active(self, parameter: Parameter, assignment: Mapping[str, Value]) -> bool:
        """Whether a parameter's condition holds, given values of the parameters before it.

        Assign `parameters` in their order, in which each follows those that its condition names.
        An inactive parameter must be left unset.
        """
        return parameter.active(self.lookup(assignment))

    def consistent(self, assignment: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the assignment with all inactive parameters unset."""
        known, kept = dict(self.fixed), dict[str, Value]()
        for parameter in self.parameters:
            name = parameter.name
            if parameter.active(known.get):
                known[name] = kept[name] = assignment.get(name)
        return kept

    def is_allowed(self, assignment: Mapping[str, Value]) -> bool:
        """Whether a complete assignment violates no constraint."""
        lookup = self.lookup(assignment)
        return not any(constraint.broken(lookup) for constraint in self.constraints)

    def without_effect_on(self, operation: Operation) -> tuple[str, ...]:
        """Lists the parameters that are declared to apply to other operations only."""
        # It is unknown what a user's own benchmark calls, so any parameter may affect it.
        if operation.is_own:
            return ()
        # Space files name the ping-pong for all operations made of point-to-point messages.
        meant = {operation} if operation.is_collective else {operation, Operation.PING_PONG}
        return tuple(
            p.name
            for p in self.parameters
            if p.applies_to
            and meant.isdisjoint(p.applies_to)
            and _OPERATIONS.issuperset(p.applies_to)
        )

    def parameter_units(self, configuration: Configuration) -> dict[str, Configuration]:
        """Returns the configuration without each parameter that it sets, by parameter.

        A parameter that can't be removed by itself has no entry.
        """
        whole = self.assignment(configuration)
        kept = {n: self.unset_parameters(whole, [n]) for n, v in whole.items() if v is not None}
        return {name: self.configuration(left) for name, left in kept.items() if left is not None}

    def without_parameters(
        self, configuration: Configuration, names: Sequence[str]
    ) -> Configuration | None:
        """Removes parameters and those that depend on them; ``None`` if that isn't legal."""
        kept = self.unset_parameters(self.assignment(configuration), names)
        lacking = None if kept is None else self.configuration(kept)
        return lacking if lacking != configuration else None

    def unset_parameters(
        self, assignment: Mapping[str, Value], names: Sequence[str]
    ) -> dict[str, Value] | None:
        """Does the same as ``without_parameters`` for an assignment."""
        kept = self.consistent({**assignment, **dict.fromkeys(names)})
        unset = (name for name, value in kept.items() if value is None)
        is_legal = self.is_allowed(kept) and all(self.by_name[name].unset for name in unset)
        return kept if is_legal else None

    def connected_to(self, name: str) -> list[str]:
        """Lists the parameters that decide what is unset along with this one; it is among them."""
        changed, read = {name}, {name}
        for parameter in self.parameters:
            named = {n for clause in parameter.when for n in clause.allowed}
            if not changed.isdisjoint(named):
                changed.add(parameter.name)
                read |= {parameter.name, *named}
        for constraint in self.constraints:
            if not changed.isdisjoint(constraint.names):
                read |= constraint.names
        return [parameter.name for parameter in self.parameters if parameter.name in read]

    def neighbour_configurations(self, configuration: Configuration) -> list[Configuration]:
        """Lists legal configurations with another value of one set parameter, nearest first.

        The distance is in positions of the domain. No parameter is unset, as ablation does that.
        """
        whole = self.assignment(configuration)
        found: dict[Configuration, int] = {}
        for name, value in whole.items():
            if value is None:
                continue
            values = [v for v in self.by_name[name].values if v is not None]
            for other in values:
                changed = self.configuration(self.consistent({**whole, name: other}))
                if changed != configuration and not self.check(changed):
                    found.setdefault(changed, abs(values.index(other) - values.index(value)))
        return sorted(found, key=lambda changed: (found[changed], changed.key))

    def values_of(self, configuration: Configuration, name: str) -> dict[str, str]:
        """Returns the variables that a parameter sets in a configuration, with their values."""
        return self.by_name[name].environment(self.assignment(configuration)[name])

    def lookup(self, assignment: Mapping[str, Value]) -> Lookup:
        """Returns a function that looks up a parameter in an assignment, or its fixed value."""
        return lambda name: assignment[name] if name in assignment else self.fixed.get(name)


def _decoded(parameter: Parameter, configuration: Mapping[str, str]) -> Value:
    setting = {name: configuration[name] for name in parameter.variables if name in configuration}
    if not setting:
        return None
    for value in parameter.values:
        if value is not None and parameter.settings[value] == setting:
            return value
    if len(parameter.variables) == 1:
        (written,) = setting.values()
        raise SpaceError(
            f"{quote_value(written)} is not a value of {parameter.name}",
            hint=_value_hint(parameter, written),
        )
    shown = " ".join(f"{name}={value}" for name, value in setting.items())
    raise SpaceError(
        f"{quote_value(shown)} is not a choice of group {parameter.name}",
        hint=f"nearest: {_nearest_choice(parameter, setting)}",
    )


def _value_hint(parameter: Parameter, written: str) -> str:
    for restricted in parameter.restricted:
        if parameter.settings[restricted.value].get(parameter.variables[0]) == written:
            return f"it needs an opt-in: opt_in: [{parameter.name}={restricted.value}]"
    return nearest_value(parameter, written)


def _nearest_choice(parameter: Parameter, setting: Mapping[str, str]) -> str:
    def agreeing(value: str) -> int:
        return len(set(parameter.settings[value].items()) & set(setting.items()))

    best = max((v for v in parameter.values if v is not None), key=agreeing)
    return " ".join(f"{name}={value}" for name, value in parameter.settings[best].items())


def _misplaced(parameter: Parameter, lookup: Lookup) -> list[str]:
    value, active = lookup(parameter.name), parameter.active(lookup)
    if not active and value is not None:
        return [f"{parameter.name}={value} has no effect here: it needs {parameter.condition}"]
    if active and value is None and not parameter.unset:
        legal = ", ".join(v for v in parameter.values if v is not None)
        return [f"{parameter.name} must be set here, to one of {legal}"]
    return []


# The key of stored campaigns depends on this form: with a change, none could be continued.
def _content(space: Space) -> dict[str, Any]:
    return {
        "library": space.library,
        "pinned": dict(space.pinned),
        "fixed": dict(space.fixed),
        "parameters": {
            p.name: {
                "values": [[v, p.environment(v)] for v in sorted(p.values, key=lambda v: v or "")],
                "when": sorted(clause.key for clause in p.when),
            }
            for p in space.parameters
        },
        "constraints": sorted(constraint.key for constraint in space.constraints),
    }
