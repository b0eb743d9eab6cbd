"""Removes parameters and values from a space, such as those a library version doesn't read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from commtune.spaces.catalogue.loading import KnownVersion, list_libraries, load_catalogue
from commtune.spaces.parameter import Clause, Constraint, Forbidden, Parameter
from commtune.spaces.space import Space

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Catalogue


def remove_parameters(
    space: Space,
    names: Collection[str],
    values: Mapping[str, Collection[str]] | None = None,
) -> Space:
    """Returns the space without some parameters, and without some values of others.

    A removed parameter counts as unset: parameters that need it set are removed too. Conditions
    and constraints are simplified, so the result is as if the space had been written like that.
    """
    gone, without = set(names), dict(values or {})
    everything = {**space.by_name, **space.left_out}
    # A removal may make others necessary, so this repeats until there are no further ones.
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
    """Returns a parameter after the removal; ``None`` if it is removed itself."""
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
    """Simplifies a clause: empty if it always holds, ``None`` if it never does."""
    allowed = {}
    for name, values in clause.allowed.items():
        # A removed parameter is always unset, so the clause holds only if it allows that.
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
        if isinstance(constraint, Forbidden):
            clause = _clause(constraint.clause, gone, without)
            if clause is not None:
                yield replace(constraint, clause=clause)
        elif constraint.names.isdisjoint(gone):
            yield constraint


def cut_space_to_versions(
    space: Space, versions: Mapping[str, str]
) -> tuple[Space, tuple[str, ...]]:
    """Returns the space with what its libraries' versions read, and notes for the user.

    Args:
        versions: by library. One without a version or a catalogue is ignored.
    """
    said: list[str] = []
    for library, version in versions.items():
        if version and library in list_libraries():
            space = _cut_to_version(space, load_catalogue(library), version, said)
    return space, tuple(said)


def _cut_to_version(space: Space, catalogue: Catalogue, version: str, said: list[str]) -> Space:
    known = KnownVersion(catalogue, version)
    names, values = {}, {}
    for parameter in (*space.parameters, *space.left_out.values()):
        lost = {}
        for value, setting in parameter.settings.items():
            why = next(filter(None, (known.lacks_setting(*item) for item in setting.items())), "")
            if why:
                lost[value] = why
        # A parameter with no values left is unknown to this version as a whole.
        if lost and lost.keys() >= parameter.settings.keys():
            names[parameter.name] = next(iter(lost.values()))
        elif lost:
            values[parameter.name] = lost
    smaller = remove_parameters(space, names, values) if names or values else space
    title = f"{catalogue.library} {version}"
    said += _remarks(space, smaller, names, values, title)
    said += [
        f"note: {name} is pinned, and {title} does not read it ({why})"
        for name in space.pinned
        if (why := known.lacks_name(name))
    ]
    if known.is_newer:
        said.append(
            f"note: {title} is newer than what the catalogue was compared with "
            f"({catalogue.checked.newest}): what is new in it is not searched"
        )
    return smaller


def _remarks(
    space: Space,
    smaller: Space,
    names: Mapping[str, str],
    values: Mapping[str, Mapping[str, str]],
    title: str,
) -> Iterable[str]:
    """Yields notes for the user on removals of what would have been searched."""
    gone = {name: why for name, why in names.items() if name in space.by_name}
    if gone:
        listed = ", ".join(f"{name} ({why})" for name, why in gone.items())
        yield f"note: not searched, since {title} does not read it: {listed}"
    for name, lost in values.items():
        searched = [v for v in lost if name in space.by_name and v in space.by_name[name].values]
        if searched:
            listed = ", ".join(f"{value} ({lost[value]})" for value in searched)
            yield f"note: {name} is searched without what {title} does not take: {listed}"
    hanging = [n for n in space.by_name if n not in smaller.by_name and n not in names]
    if hanging:
        yield f"note: not searched, since it depends on what {title} lacks: {', '.join(hanging)}"
