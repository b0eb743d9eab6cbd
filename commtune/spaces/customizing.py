"""Customizes a search space for a campaign: extends, opts in, narrows and pins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from commtune.documents.nearest import find_nearest, quote_value, suggest_nearest
from commtune.documents.validation import validate_part
from commtune.documents.yaml_document import Document, Place
from commtune.errors import DocumentError, SpaceError
from commtune.spaces import building, schema
from commtune.spaces.added_values import add_value
from commtune.spaces.catalogue_facts import declare_variable
from commtune.spaces.parameter import Kind, Parameter, Value
from commtune.spaces.space import Space

#: Keys that an entry of ``extend`` may have if it adds values to a parameter of the space.
_ABOUT_VALUES = {
    "name",
    "kind",
    "values",
    "range",
    "also",
    "step",
    "factor",
    "written",
    "spelling",
}


def customize_space(
    space: Space,
    *,
    narrow: Mapping[str, Sequence[str]] | None = None,
    pin: Mapping[str, str] | None = None,
    extend: Sequence[Mapping[str, Any] | schema.ParameterDocument] = (),
    opt_in: Sequence[str] = (),
    document: Document | None = None,
) -> Space:
    """Returns a space with a campaign's changes: extended, opted in, narrowed, then pinned.

    Args:
        narrow: the only values to search, by parameter. Unset stays legal where it was.
        pin: the value in every run, including the baseline's, by parameter; or ``unset``.
        extend: further parameters, as in a space file.
        opt_in: parameters, or single values as NAME=VALUE, that need an opt-in.
        document: the document with these keys, so that errors name file and line.

    Raises:
        DocumentError: of the document's class (SpaceError without one): a name or value is
            unknown, with the nearest legal one; or the default would not be legal any more.
    """
    work = SpaceEditor(space, Place(document or Document(None, error_class=SpaceError)))
    work.extend(extend)
    work.opt_in(opt_in)
    work.narrow(narrow or {})
    work.pin(pin or {})
    return work.space


class _Extension(schema.Model):
    extend: list[schema.ParameterDocument]


class SpaceEditor:
    """Changes a space step by step; `space` is the result so far.

    Args:
        at: the place of the mapping with the keys extend, opt_in, narrow and pin.
    """

    def __init__(self, space: Space, at: Place) -> None:
        self.space = space
        self._at = at
        # Parameters that need an opt-in and got one for some of their values only.
        self._named: dict[str, Parameter] = {}

    def extend(self, additions: Sequence[Mapping[str, Any] | schema.ParameterDocument]) -> None:
        """Adds parameters, and values to those that the space has."""
        if not additions:
            return
        added = {"extend": list(additions)}
        models = validate_part(self._at.document, added, _Extension, self._at.where).extend
        at = self._at / "extend"
        known = self._unpinned
        for i, model in enumerate(models):
            if model.name in known:
                self._add_values(model, at / i)
        new = [(i, m) for i, m in enumerate(models) if m.name not in known]
        self.add([model for _, model in new], at, [i for i, _ in new])

    def _add_values(self, model: schema.ParameterDocument, at: Place) -> None:
        """Adds values to a parameter of the space, which keeps its conditions and risks."""
        name, known = model.name, self.space.declared[model.name]
        added = building.build_parameter(model, at)
        if known.kind is not added.kind and not (known.numbers and added.numbers):
            raise (at / "kind").error(
                f"{name} is of the kind {known.kind} in space {self.space.name}",
                hint=f"write `kind: {known.kind}`",
            )
        more = sorted(model.model_fields_set - _ABOUT_VALUES)
        values = [value for value in added.settings if value not in known.settings]
        if more or not values or known.kind is Kind.GROUP:
            raise (at / (more[0] if more else "name")).error(
                f"{name} is in space {self.space.name} already"
                + (f", so {quote_value(more[0])} can't be said of it" if more else ""),
                hint="`extend` gives it further values; `narrow` and `pin` choose among them",
            )
        for value in values:
            number = added.numbers.get(value)
            self.space = add_value(self.space, self.space.declared[name], value, number)

    def add(
        self, models: Sequence[schema.ParameterDocument], at: Place, places: Sequence[int] = ()
    ) -> None:
        """Adds validated parameters from a list in a document; conditions may name any of them.

        Args:
            places: their indices in that list; empty if they are the whole list.
        """
        built: dict[str, Parameter] = {}
        numbered = list(zip(places or range(len(models)), models, strict=True))
        for i, model in numbered:
            parameter = building.build_parameter(model, at / i)
            self._refuse_overlap(parameter, built.values(), at / i)
            built[parameter.name] = parameter
        known = {**self.space.declared, **built}
        for i, model in numbered:
            clauses = [
                building.resolve_clause(when, known, _clause_place(at / i, n))
                for n, when in enumerate(model.when)
            ]
            built[model.name] = replace(built[model.name], when=tuple(clauses))
        waiting = {n: p for n, p in built.items() if p.opt_in}
        joining = [p for p in built.values() if not p.opt_in]
        self._become(
            [*self.space.parameters, *joining],
            left_out={**self.space.left_out, **waiting},
            at=at,
        )

    def opt_in(self, names: Sequence[str]) -> None:
        """Adds parameters or single values to the search that need an opt-in."""
        for i, written in enumerate(names):
            self._opt_in_one(written, self._at / "opt_in" / i)

    def _opt_in_one(self, written: str, at: Place) -> None:
        name, _, value = written.partition("=")
        if name in self.space.left_out and not value:
            left_out = dict(self.space.left_out)
            parameter = left_out.pop(name)
            self._become([*self.space.parameters, parameter], left_out=left_out, at=at)
            return
        if value and self._opens(name, value):
            self._open(name, value, at)
            return
        known = self._unpinned
        offered = {n: {r.value for r in p.restricted} for n, p in known.items() if p.restricted}
        if name not in offered or (value and value not in offered[name]):
            words = [f"{n}={v}" for n, values in offered.items() for v in sorted(values)]
            raise at.error(
                f"{quote_value(written)} does not need an opt-in",
                hint=suggest_nearest(written, [*self.space.left_out, *words]),
            )
        wanted = {value} if value else offered[name]
        self._replace(_with_restricted(known[name], wanted), at)

    def _opens(self, name: str, value: str) -> bool:
        """Whether a value's parameter needs an opt-in and has at most one for single values."""
        known = self.space.left_out.get(name) or self._named.get(name)
        return known is not None and value in known.values

    def _open(self, name: str, value: str, at: Place) -> None:
        """Adds an allowed value of a parameter that needs an opt-in, or the parameter with it."""
        whole = self._named.setdefault(name, self._unpinned[name])
        current = self.space.by_name.get(name)
        wanted = {value, *(current.values if current is not None else (None,))}
        kept = tuple(v for v in whole.values if v in wanted)
        changed = replace(whole, values=kept)
        left_out = {n: p for n, p in self.space.left_out.items() if n != name}
        others = [p for p in self.space.parameters if p.name != name]
        self._become([*others, changed], left_out=left_out, at=at)

    @property
    def _unpinned(self) -> dict[str, Parameter]:
        return {**self.space.by_name, **self.space.left_out}

    def narrow(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Reduces the domains of parameters to some values; unset stays legal where it was."""
        for name, words in wanted.items():
            at = self._at / "narrow" / name
            parameter = self._searched(name, at)
            kept = {self._value(parameter, w, at / i) for i, w in enumerate(words)}
            # The default, which leaves the parameter unset, must stay in the space.
            if parameter.unset:
                kept.add(None)
            values = tuple(value for value in parameter.values if value in kept)
            if not any(value is not None for value in values):
                raise at.error(
                    f"{name} has no value left", hint=f"to leave it unset: pin: {{{name}: unset}}"
                )
            self._replace(replace(parameter, values=values), at)

    def pin(self, wanted: Mapping[str, str]) -> None:
        """Takes parameters out of the search and fixes their values for every run."""
        for name, word in wanted.items():
            if self.space.pinned.get(name) == word:
                continue
            at = self._at / "pin" / name
            parameter = self._searched(name, at)
            value = self._value(parameter, word, at)
            self._become(
                [p for p in self.space.parameters if p.name != name],
                pinned={**self.space.pinned, **parameter.environment(value)},
                fixed={**self.space.fixed, name: value},
                retired={**self.space.retired, name: parameter},
                at=at,
                check=False,
            )
        # Pins may depend on each other, so the default is checked after the last one.
        if wanted:
            self.require_default(self._at / "pin")

    def _searched(self, name: str, at: Place) -> Parameter:
        if name in self.space.by_name:
            return self.space.by_name[name]
        if name in self.space.left_out:
            raise at.error(f"{quote_value(name)} needs an opt-in", hint=f"add `opt_in: [{name}]`")
        near = find_nearest(name, self.space.by_name, cutoff=0.8)
        raise at.error(
            f"{quote_value(name)} is not a parameter of space {self.space.name}",
            hint=f"nearest: {near}" if near else f"declare it: `{declare_variable(name)}`",
        )

    def _value(self, parameter: Parameter, word: str, at: Place) -> Value:
        if word == building.UNSET:
            return None
        value = building.as_read(parameter, word)
        if value in {r.value for r in parameter.restricted}:
            raise at.error(
                f"{parameter.name}={value} needs an opt-in",
                hint=f'add `opt_in: ["{parameter.name}={value}"]`',
            )
        if value is None or value not in parameter.values:
            raise building.illegal_value(parameter, word, at)
        return value

    def _refuse_overlap(
        self, parameter: Parameter, others: Iterable[Parameter], at: Place
    ) -> None:
        taken = {p.name: p for p in (*self.space.declared.values(), *others)}
        if parameter.name in taken:
            raise (at / "name").error(
                f"parameter {quote_value(parameter.name)} occurs twice",
                hint="keep one of them; a campaign changes a parameter with `narrow`",
            )
        for variable in parameter.variables:
            owner = next((p.name for p in taken.values() if variable in p.variables), None)
            if variable in self.space.pinned:
                owner = "a pin"
            if owner:
                raise at.error(
                    f"variable {variable} of {parameter.name} is already set by {owner}",
                    hint="one variable belongs to one parameter, group or pin",
                )

    def _replace(self, parameter: Parameter, at: Place) -> None:
        if parameter.name in self.space.left_out:
            left_out = {**self.space.left_out, parameter.name: parameter}
            self.space = replace(self.space, left_out=left_out)
            return
        changed = [parameter if p.name == parameter.name else p for p in self.space.parameters]
        self._become(changed, at=at)

    def _become(
        self,
        parameters: Sequence[Parameter],
        *,
        at: Place,
        check: bool = True,
        **changes: Any,
    ) -> None:
        ordered = in_order(parameters, at)
        self.space = replace(self.space, parameters=ordered, **changes)
        if check:
            self.require_default(at)

    def require_default(self, at: Place) -> None:
        """Checks that the empty configuration is in the space.

        Raises:
            DocumentError: it is not. The error names the place of the parameter or constraint.
        """
        space = self.space
        for i, parameter in enumerate(space.parameters):
            if not parameter.unset and space.active(parameter, {}):
                raise (at / i / "unset").error(
                    f"the default is not in the space: {parameter.name} must not be unset",
                    hint=f"leave out `unset: false`, give {parameter.name} a condition, or pin it",
                )
        for constraint in space.constraints:
            if constraint.broken(space.lookup({})):
                raise at.error(
                    f"the default is not in the space: {constraint.explain(space.lookup({}))}",
                    hint="a forbidden combination must name at least one value that is set",
                )


def _clause_place(at: Place, number: int) -> Place:
    # `when` is a mapping or a list of mappings; a single one has no index.
    listed = at / "when" / number
    return listed if listed.where in at.document.lines else at / "when"


def _with_restricted(parameter: Parameter, wanted: set[str]) -> Parameter:
    legal = {*parameter.values, *wanted}
    values = tuple(value for value in (None, *parameter.settings) if value in legal)
    restricted = tuple(r for r in parameter.restricted if r.value not in wanted)
    return replace(parameter, values=values, restricted=restricted)


def in_order(parameters: Sequence[Parameter], at: Place) -> tuple[Parameter, ...]:
    """Sorts parameters so that each follows those that its condition names (a stable sort).

    Raises:
        DocumentError: conditions are circular.
    """
    waiting = {p.name: p for p in parameters}
    ordered: list[Parameter] = []
    while waiting:
        ready = next((p for p in waiting.values() if not (p.depends_on & waiting.keys())), None)
        if ready is None:
            raise _circle(waiting, parameters, at)
        ordered.append(waiting.pop(ready.name))
    return tuple(ordered)


def _circle(
    waiting: Mapping[str, Parameter],
    parameters: Sequence[Parameter],
    at: Place,
) -> DocumentError:
    names = [next(iter(waiting))]
    while names.count(names[-1]) == 1:
        names.append(min(waiting[names[-1]].depends_on & waiting.keys()))
    names = names[names.index(names[-1]) :]
    position = [p.name for p in parameters].index(names[0])
    return (at / position / "when").error(
        f"conditions are circular: {' -> '.join(names)}",
        hint="remove one of these conditions",
    )
