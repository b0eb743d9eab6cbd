"""A search space: which configurations are legal."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from commtune.documents.nearest import quote_value, suggest
from commtune.errors import SpaceError
from commtune.model import Configuration, Operation, content_key
from commtune.spaces.building import nearest_value
from commtune.spaces.enumeration import Enumeration
from commtune.spaces.parameter import Constraint, Lookup, Parameter, Value

#: Words of `Parameter.applies_to` that are operations; other words are transports or hardware.
_OPERATIONS = set(Operation)


@dataclass(frozen=True)
class Space:
    """Variables with their legal values, conditions and forbidden combinations.

    An assignment gives every parameter a value, ``None`` for unset. It is legal when each
    parameter has one of its values if it is active, and is unset if it is not, and no constraint
    is broken. Legal assignments and legal configurations correspond one to one; the default,
    empty configuration is always one of them.

    Attributes:
        version: the version that the author declared; `key` is the version by content.
        versions: the library versions for which it holds, as text like ``>=4.3,<6``.
        operations: the operations for which it is meant; empty for all.
        pinned: variables set in every run, the baseline's too. Not part of any configuration.
        parameters: the dimensions, each after all that its condition names.
        fixed: parameters that no longer vary, with their values.
        left_out: parameters that need an opt-in that was not given.
    """

    name: str
    version: str
    library: str
    parameters: tuple[Parameter, ...]
    versions: str = ""
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
        """All parameters that conditions may name: searched, left out and pinned ones."""
        return {**self.by_name, **self.left_out, **self.retired}

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Every environment variable that a run may get from this space, pinned ones included."""
        names = dict.fromkeys(self.pinned)
        names.update(dict.fromkeys(v for p in self.parameters for v in p.variables))
        return tuple(sorted(names))

    @cached_property
    def key(self) -> str:
        """The content of the space: equal keys mean the same legal configurations and pins.

        Names, order of parameters, notes and sources don't count.
        """
        return content_key(_content(self))

    @cached_property
    def _enumeration(self) -> Enumeration:
        return Enumeration(self.parameters, self.constraints, self.fixed)

    def count(self) -> int:
        """Number of distinct legal configurations, exact; the default is one of them."""
        return self._enumeration.count()

    def configurations(self) -> Iterator[Configuration]:
        """All legal configurations, each once, made as they are asked for; the default first."""
        return (self.configuration(assignment) for assignment in self._enumeration)

    def nth(self, number: int) -> Configuration:
        """The configuration with a number, from 0 (the default) to count() - 1.

        Raises:
            IndexError: no such number.
        """
        return self.configuration(self._enumeration.nth(number))

    def sample(self, rng: random.Random) -> Configuration:
        """A configuration drawn uniformly from all legal ones, whatever the conditions."""
        return self.nth(rng.randrange(self.count()))

    def configuration(self, assignment: Mapping[str, Value]) -> Configuration:
        """What an assignment sets; parameters that it doesn't name are unset.

        Raises:
            SpaceError: an unknown parameter or value. Conditions are not checked; see `check`.
        """
        environment: dict[str, str] = {}
        for name, value in assignment.items():
            parameter = self.by_name.get(name)
            if parameter is None:
                raise SpaceError(
                    f"{quote_value(name)} is not a parameter of space {self.name}",
                    hint=suggest(name, self.by_name),
                )
            if value is not None and value not in parameter.values:
                raise SpaceError(
                    f"{quote_value(value)} is not a value of {name}",
                    hint=nearest_value(parameter, value),
                )
            environment |= parameter.environment(value)
        return Configuration(environment)

    def assignment(self, configuration: Mapping[str, str]) -> dict[str, Value]:
        """The value of every parameter in a legal configuration; inverse of `configuration`.

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
        """What is wrong with a configuration, in words with the nearest legal value.

        Empty for a configuration of the space.
        """
        return self._examine(configuration)[1]

    def _examine(self, configuration: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
        """The value of every parameter, and what is wrong with it."""
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
        known = {v for p in self.parameters for v in p.variables}
        waiting = {v: p for p in self.left_out.values() for v in p.variables}
        problems = []
        for name in configuration:
            if name in known:
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
                hint = suggest(name, sorted(known))
                problems.append(f"{quote_value(name)} is not in the space ({hint})")
        return problems

    def active(self, parameter: Parameter, assignment: Mapping[str, Value]) -> bool:
        """Whether a parameter's condition holds, given at least the parameters before it.

        Go through `parameters` in their order: each stands after all that its condition names.
        An inactive parameter must be left unset.
        """
        return parameter.active(self.lookup(assignment))

    def consistent(self, assignment: Mapping[str, Value]) -> dict[str, Value]:
        """The assignment with those parameters unset whose condition does not hold."""
        kept: dict[str, Value] = {}
        lookup = self.lookup(kept)
        for parameter in self.parameters:
            if parameter.active(lookup):
                kept[parameter.name] = assignment.get(parameter.name)
        return kept

    def is_allowed(self, assignment: Mapping[str, Value]) -> bool:
        """Whether a whole assignment breaks no forbidden combination and no relation."""
        lookup = self.lookup(assignment)
        return not any(constraint.broken(lookup) for constraint in self.constraints)

    def without_effect_on(self, operation: Operation) -> tuple[str, ...]:
        """Parameters that say of themselves that they are for other operations only."""
        # Nobody knows what a user's own benchmark calls: all may have an effect on it.
        if operation.is_own:
            return ()
        # Spaces call all that is made of messages between two ranks by the name of the plainest.
        meant = {operation} if operation.is_collective else {operation, Operation.PING_PONG}
        return tuple(
            p.name
            for p in self.parameters
            if p.applies_to
            and meant.isdisjoint(p.applies_to)
            and _OPERATIONS.issuperset(p.applies_to)
        )

    def parameter_units(self, configuration: Configuration) -> dict[str, Configuration]:
        """Each parameter that the configuration sets, with the configuration that lacks it.

        A parameter whose absence is not legal by itself has no entry.
        """
        lacking = {
            name: self.without_parameters(configuration, [name])
            for name, value in self.assignment(configuration).items()
            if value is not None
        }
        return {name: rest for name, rest in lacking.items() if rest is not None}

    def without_parameters(
        self, configuration: Configuration, names: Sequence[str]
    ) -> Configuration | None:
        """A configuration without parameters, and without those that need them; if legal."""
        kept = self.unset_parameters(self.assignment(configuration), names)
        lacking = configuration if kept is None else self.configuration(kept)
        return lacking if lacking != configuration else None

    def unset_parameters(
        self, assignment: Mapping[str, Value], names: Sequence[str]
    ) -> dict[str, Value] | None:
        """As ``without_parameters``, of an assignment."""
        kept = self.consistent({**assignment, **dict.fromkeys(names)})
        unset = (name for name, value in kept.items() if value is None)
        is_legal = self.is_allowed(kept) and all(self.by_name[name].unset for name in unset)
        return kept if is_legal else None

    def neighbour_configurations(self, configuration: Configuration) -> list[Configuration]:
        """The legal configurations with another value of one parameter that is set, nearest first.

        Near is by the order of the values; nothing is unset, for that is what ablation tries.
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
        """The variables that a parameter sets in a configuration."""
        return self.by_name[name].environment(self.assignment(configuration)[name])

    def lookup(self, assignment: Mapping[str, Value]) -> Lookup:
        """The value of a parameter in an assignment, or the one that it is fixed to."""
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


# Stored campaigns are compared by this: in another form, all of them would be another question.
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
