"""A campaign file's ``baselines``: named sets that are tried first, as far as its space has them.

Nothing is changed silently: each variable of a set that is left out is said, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from commtune.errors import UnknownName
from commtune.model import Configuration
from commtune.nearest import quoted
from commtune.quantities import QuantityError
from commtune.spaces import Document, Parameter, Space, Value, condition_text
from commtune.systems import System
from commtune.systems.baselines import PREFIX, NamedSet, baseline, baselines

#: Takes the sets that are for the campaign's system and library.
AUTO = "auto"


@dataclass(frozen=True)
class TriedFirst:
    """A set as a campaign tries it.

    Attributes:
        configuration: what is left of it; the default where nothing is.
        left_out: settings that are not tried, as ``NAME=VALUE``, and why.
    """

    name: str
    configuration: Configuration
    left_out: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """As it is stored with the campaign."""
        tried = dict(self.configuration)
        return {"name": self.name, "tried": tried, "left_out": dict(self.left_out)}

    @property
    def words(self) -> str:
        """What becomes of it, for people."""
        what = "is tried first" if self.configuration else "is not tried"
        if not self.left_out:
            return f"baseline {self.name} {what}, as it stands"
        by_reason: dict[str, list[str]] = {}
        for setting, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(setting)
        lines = [f"  {', '.join(settings)}: {reason}" for reason, settings in by_reason.items()]
        joined = "without" if self.configuration else "for nothing is left of it"
        return "\n".join([f"baseline {self.name} {what}, {joined}", *lines])


def as_listed(written: object) -> object:
    """``auto`` as a list of one word; a list as it is.

    Raises:
        QuantityError: one word that is something else.
    """
    if written == AUTO:
        return (AUTO,)
    if isinstance(written, str) or written is None:
        raise QuantityError(
            f"{quoted(written)} is no list of baselines", hint="write auto, or [NAME, NAME]"
        )
    return written


def chosen(
    document: Document, names: tuple[str, ...], system: System | None, library: str
) -> tuple[NamedSet, ...]:
    """The sets that the file asks for.

    Raises:
        DocumentError: ``auto`` without a system, no such set, or one that is not fit to try.
    """
    if names == (AUTO,):
        if system is None:
            raise document.error(
                "baselines: auto needs to know the system",
                ("baselines",),
                hint="add `system: NAME`, or name sets: commtune systems baselines",
            )
        return tuple(one for one in baselines().values() if one.is_for(system.name, library))
    found = {name.removeprefix(PREFIX): _named(document, i, name) for i, name in enumerate(names)}
    return tuple(found.values())


def _named(document: Document, index: int, name: str) -> NamedSet:
    where = ("baselines", index)
    try:
        found = baseline(name)
    except UnknownName as error:
        raise document.error(error.message, where, hint=error.hint) from error
    if found.baseline.unfit:
        raise document.error(
            f"{found.name} is not to be tried as it stands: {found.baseline.unfit}",
            where,
            hint="write what you want of it under `first`",
        )
    return found


def fitted(
    sets: tuple[NamedSet, ...], space: Space, system: System | None, guards: Collection[str]
) -> tuple[TriedFirst, ...]:
    """What a campaign can try of each set.

    Args:
        guards: variables that pass unchanged from the environment to every run.
    """
    kept_from_us = dict.fromkeys(guards, "passes unchanged from your environment")
    if system is not None:
        kept_from_us |= dict.fromkeys(system.guard, f"guarded on {system.name}")
    return tuple(fit(one.name, one.settings, space, kept_from_us) for one in sets)


def fit(
    name: str, settings: Mapping[str, str], space: Space, barred: Mapping[str, str]
) -> TriedFirst:
    """The largest part of a set that is a configuration of a space, as its variables come.

    Args:
        barred: variables that no configuration may set, and why.
    """
    reasons: dict[str, str] = {}
    for variable, wanted_value in settings.items():
        reason = barred.get(variable) or _undeclared(space, variable, wanted_value)
        if reason:
            reasons[variable] = reason
    kept: dict[str, Value] = {}
    for parameter in space.parameters:
        wanted = {v: settings[v] for v in parameter.variables if v in settings.keys() - reasons}
        if not wanted:
            continue
        value = next((v for v in parameter.values if parameter.environment(v) == wanted), None)
        if value is None:
            reasons |= dict.fromkeys(wanted, _refused(space, parameter))
        elif not space.active(parameter, kept):
            reasons |= dict.fromkeys(wanted, f"it needs {condition_text(parameter)}")
        else:
            kept[parameter.name] = value
    configuration = space.configuration(kept)
    if problems := space.check(configuration):
        reasons |= dict.fromkeys(configuration, problems[0])
        configuration = Configuration()
    left_out = {f"{v}={settings[v]}": reasons[v] for v in settings if v in reasons}
    return TriedFirst(name, configuration, left_out)


def _undeclared(space: Space, variable: str, value: str) -> str:
    """Why no parameter that is searched has a variable; nothing where one has."""
    if variable in space.pinned:
        same = space.pinned[variable] == value
        to = "this value" if same else quoted(space.pinned[variable])
        return f"pinned to {to} in every run, the default's too"
    if any(variable in parameter.variables for parameter in space.parameters):
        return ""
    for parameter in space.left_out.values():
        if variable in parameter.variables:
            return f"needs an opt-in: opt_in: [{parameter.name}]"
    if any(variable in parameter.variables for parameter in space.declared.values()):
        return "not searched by this campaign"
    return f"not in the space {space.name}"


def _refused(space: Space, parameter: Parameter) -> str:
    if len(parameter.variables) > 1:
        return f"not among the choices of {parameter.name} in the space {space.name}"
    legal = ", ".join(value for value in parameter.values if value is not None)
    return f"the space {space.name} has other values of {parameter.name}: {legal}"


def remarks(
    sets: tuple[NamedSet, ...], tried: tuple[TriedFirst, ...], system: System | None, library: str
) -> tuple[str, ...]:
    """What is to be said of the sets before the campaign runs."""
    if not sets:
        where = system.name if system else "no system"
        return (f"note: no baseline that is fit to try is known for {where} with {library}",)
    said = []
    for one, part in zip(sets, tried, strict=True):
        said += [f"note: {line}" for line in (part.words, *_warnings(one, system, library))]
    return tuple(said)


def _warnings(one: NamedSet, system: System | None, library: str) -> list[str]:
    found = one.baseline
    said = [
        f"baseline {one.name}: {v} is yours to set: {what}" for v, what in found.fill_in.items()
    ]
    if library not in found.libraries:
        said.append(f"baseline {one.name} is for {', '.join(found.libraries)}, not for {library}")
    if system and found.systems and system.name not in found.systems:
        said.append(f"baseline {one.name} is for {', '.join(found.systems)}, not {system.name}")
    return said
