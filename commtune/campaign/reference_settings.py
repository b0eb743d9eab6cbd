"""Prepares the ``reference_settings`` of a campaign file: named sets that are tried first.

A set is tried as a whole if that is legal. Otherwise the user is told each variable that is left
out, with the reason; and also what is added to the space for a set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from commtune.campaign.value_types import AUTO
from commtune.documents.nearest import quote_value
from commtune.documents.yaml_document import Document, Where
from commtune.model import PROTECTED_NAMES, Configuration
from commtune.slurm_templates.job_request import pinned_variables
from commtune.spaces.building import as_read, as_value
from commtune.spaces.parameter import Parameter, Value
from commtune.spaces.reference_additions import ExtendedSpace, LeftOut, add_reference_settings
from commtune.spaces.space import Space
from commtune.systems.reference_settings import (
    REFERENCE,
    ReferenceSettings,
    all_reference_settings,
    find_reference_settings,
    used_settings,
)
from commtune.systems.schema import System

#: The reason for settings that are pinned, and so don't differ from the default's.
_EVERYWHERE = LeftOut("pinned to this value in every run, the default's too", matters=False)


@dataclass(frozen=True)
class TriedFirst:
    """A set of reference settings as a campaign tries it.

    Attributes:
        configuration: the part that is tried; the default if there is none.
        reasons: settings that are not tried, as ``NAME=VALUE``, with the reasons.
        meant: the value that is tried for settings in a legacy spelling, by ``NAME=VALUE``.
    """

    name: str
    configuration: Configuration
    reasons: Mapping[str, LeftOut]
    meant: Mapping[str, str]

    def plain(self) -> dict[str, object]:
        """Returns plain data, as it is stored with the campaign."""
        plain = {"name": self.name, "tried": dict(self.configuration), "left_out": self.left_out}
        return {**plain, **({"meant": dict(self.meant)} if self.meant else {})}

    @property
    def left_out(self) -> dict[str, str]:
        """Settings that are not tried, with the reasons in words."""
        return {setting: reason.words for setting, reason in self.reasons.items()}

    @property
    def missing(self) -> dict[str, str]:
        """Settings that are not tried although they matter, with the reasons in words."""
        return {what: why.words for what, why in self.reasons.items() if why.matters}

    @property
    def words(self) -> str:
        """A summary for users: how it is tried, the reasons, then legacy spellings."""
        if self.missing:
            what = "is tried first, without" if self.configuration else "is not tried"
        elif not self.reasons:
            what = "is tried first, as it stands"
        elif self.configuration:
            what = "is tried first, except for what changes nothing"
        else:
            what = "is not tried, since it changes nothing"
        meant = [
            f"  {setting} is tried as {value}, which is the same to the library"
            for setting, value in self.meant.items()
        ]
        return "\n".join([f"{REFERENCE}{self.name} {what}", *self._reasons(), *meant])

    def _reasons(self) -> list[str]:
        """Returns a line per reason with its settings; opt-ins as a list to copy."""
        settings: dict[str, list[str]] = {}
        opt_in: dict[str, list[str]] = {}
        for setting, reason in self.reasons.items():
            settings.setdefault(reason.why, []).append(setting)
            opt_in.setdefault(reason.why, []).extend(filter(None, [reason.opt_in]))
        return [
            f"  {LeftOut(why, ', '.join(opt_in[why])).words}: {', '.join(those)}"
            for why, those in settings.items()
        ]


def _named(document: Document, where: Where, name: str) -> ReferenceSettings:
    with document.placing(*where):
        found = find_reference_settings(name)
    if found.entry.unfit:
        raise document.error(
            f"{found.name} can't be tried as it stands: {found.entry.unfit}",
            where,
            hint="write the variables that you want under `first`",
        )
    return found


@dataclass(frozen=True)
class CampaignSets:
    """The sets of reference settings that a campaign uses, with its system.

    Attributes:
        guards: names of protected variables.
    """

    sets: tuple[ReferenceSettings, ...]
    system: System | None
    guards: Collection[str]

    @classmethod
    def choose(
        cls,
        document: Document,
        names: tuple[str, ...],
        system: System | None,
        library: str,
        guards: Collection[str],
    ) -> CampaignSets:
        """Finds the sets that a campaign file names.

        Args:
            names: names of sets, or ``AUTO`` for those of the system and library.

        Raises:
            DocumentError: ``auto`` without a system, an unknown set, or one that can't be tried.
        """
        if names != (AUTO,):
            sets = {
                name.removeprefix(REFERENCE): _named(document, ("reference_settings", i), name)
                for i, name in enumerate(names)
            }
            return cls(tuple(sets.values()), system, guards)
        if system is None:
            raise document.error(
                "reference_settings: auto needs to know the system",
                ("reference_settings",),
                hint="add `system: NAME`, or name sets: commtune systems reference-settings",
            )
        known = all_reference_settings().values()
        fit = tuple(one for one in known if one.is_for(system.name, library))
        return cls(fit, system, guards)

    @property
    def _barred(self) -> dict[str, str]:
        """Variables that no configuration may set, with the reasons."""
        found = dict.fromkeys(PROTECTED_NAMES, "keeps hardware safe, so it is never searched")
        found |= dict.fromkeys(self.guards, "passes unchanged from your environment")
        if self.system:
            found |= dict.fromkeys(self.system.guard, f"protected on {self.system.name}")
        return found

    def extend_space(
        self, space: Space, named: Iterable[tuple[str, str]] = (), *, one_node: bool
    ) -> ExtendedSpace:
        """Adds variables and values of the sets to the space, before the campaign customizes it.

        Args:
            named: settings that the campaign file names. They are added as well if a source for
                the system used them.
        """
        barred = {**self._barred, **pinned_variables(self.system, {space.library})}
        used = self._used(space.library)
        settings = [one.settings for one in self.sets]
        settings += [{name: value} for name, value in named if (name, value) in used]
        return add_reference_settings(space, settings, barred, one_node=one_node)

    def _used(self, library: str) -> Mapping[tuple[str, str], bool]:
        return used_settings(self.system.name, library) if self.system else {}

    def list_opened(
        self, space: Space, named: Iterable[tuple[str, str]], opt_in: Iterable[str]
    ) -> list[str]:
        """Lists settings that need no opt-in on this system, since the site documents them.

        Args:
            opt_in: the campaign's own opt-ins, which take precedence for their parameters.
        """
        used, named = self._used(space.library), list(named)
        decided = {word.partition("=")[0] for word in opt_in}
        # The file names a value that the site doesn't use. It needs an opt-in, which then decides
        # on all values of the parameter.
        decided |= {item[0] for item in named if not used.get(item)}
        wanted = [*(item for one in self.sets for item in one.settings.items()), *named]
        by_site = [item for item in wanted if used.get(item)]
        found: dict[str, None] = {}
        for name, word in by_site:
            owner = space.declared.get(name)
            if owner is None or name in decided or name in self._barred:
                continue
            value = as_read(owner, word)
            restricted = value in {one.value for one in owner.restricted}
            if value is not None and (restricted or name in space.left_out):
                found[f"{name}={value}"] = None
        return list(found)

    def list_opened_words(self, opened: Iterable[str]) -> list[str]:
        listed = ", ".join(opened)
        if not listed or self.system is None:
            return []
        return [f"note: searched without an opt-in, since {self.system.name}'s site sets {listed}"]

    def fit(self, space: Space, extended: ExtendedSpace) -> tuple[TriedFirst, ...]:
        """Returns the part of each set that a campaign can try.

        Args:
            extended: what was added to the space for the sets, and why the rest was not.
        """
        reasons = dict(extended.reasons)
        for one in self.sets:
            for variable, reader in one.elsewhere.items():
                setting = (variable, one.settings[variable])
                if setting in reasons:
                    reasons[setting] = LeftOut(f"in no catalogue ({reader})")
        unmet = replace(extended, reasons=reasons)
        return tuple(
            _fit_set(one.name, one.settings, space, self._barred, unmet) for one in self.sets
        )

    def list_remarks(self, tried: tuple[TriedFirst, ...], library: str) -> list[str]:
        if not self.sets:
            of = f"{self.system.name if self.system else 'no system'} with {library}"
            return [f"note: no reference settings that are fit to try are known for {of}"]
        said = []
        for one, part in zip(self.sets, tried, strict=True):
            if library not in one.entry.libraries and not part.configuration:
                meant = ", ".join(one.entry.libraries)
                said.append(f"note: {REFERENCE}{one.name} is not tried: it is for {meant}")
                continue
            lines = (part.words, *_warnings(one, self.system, library))
            said += [f"note: {line}" for line in lines]
        return said


def _warnings(one: ReferenceSettings, system: System | None, library: str) -> list[str]:
    found = one.entry
    said = [
        f"{REFERENCE}{one.name}: {v} is yours to set: {what}" for v, what in found.fill_in.items()
    ]
    if library not in found.libraries:
        said.append(
            f"{REFERENCE}{one.name} is for {', '.join(found.libraries)}, not for {library}"
        )
    if system and found.systems and system.name not in found.systems:
        said.append(f"{REFERENCE}{one.name} is for {', '.join(found.systems)}, not {system.name}")
    return said


def _fit_set(
    name: str,
    settings: Mapping[str, str],
    space: Space,
    barred: Mapping[str, str],
    larger: ExtendedSpace | None = None,
) -> TriedFirst:
    """Returns the part of a set that is legal in a space, chosen greedily in parameter order.

    Args:
        barred: variables that no configuration may set, with the reasons.
        larger: what was added to the space for the set, and why the rest was not.
    """
    larger = larger or ExtendedSpace(space)
    written, unmet = settings, larger.reasons
    # A value has one spelling in a space, so legacy spellings are replaced by it.
    settings = {v: larger.meant.get((v, value), value) for v, value in written.items()}
    reasons: dict[str, LeftOut] = {}
    for variable, value in settings.items():
        bar = LeftOut(barred[variable]) if variable in barred else None
        reason = bar or _undeclared(space, variable, value, unmet.get((variable, value)))
        if reason is not None:
            reasons[variable] = reason
    configuration = _legal_part(space, settings, unmet, reasons)
    left_out = {f"{v}={written[v]}": reasons[v] for v in written if v in reasons}
    meant = {
        f"{v}={value}": settings[v]
        for v, value in written.items()
        if v in configuration and settings[v] != value
    }
    return TriedFirst(name, configuration, left_out, meant)


def _legal_part(
    space: Space,
    settings: Mapping[str, str],
    unmet: Mapping[tuple[str, str], LeftOut],
    reasons: dict[str, LeftOut],
) -> Configuration:
    """Returns the settings that are legal together, and adds reasons for the others."""
    kept: dict[str, Value] = {}
    # In this order, since conditions depend on earlier parameters.
    for parameter in space.parameters:
        wanted = {v: settings[v] for v in parameter.variables if v in settings.keys() - reasons}
        if not wanted:
            continue
        value = _value_of(parameter, wanted)
        if value is None:
            for variable, word in wanted.items():
                refusal = unmet.get((variable, word)) or _refused(space, parameter, word)
                reasons[variable] = refusal
        elif not space.active(parameter, kept):
            condition = LeftOut(f"it needs {parameter.condition}")
            reasons |= dict.fromkeys(wanted, condition)
        else:
            kept[parameter.name] = value
    configuration = space.configuration(kept)
    problems = space.check(configuration)
    if not problems:
        return configuration
    reasons |= dict.fromkeys(configuration, LeftOut(problems[0]))
    return Configuration()


def _value_of(parameter: Parameter, wanted: Mapping[str, str]) -> Value:
    """Returns the value with these settings, sizes in any spelling; ``None`` if there is none."""
    same = next((v for v in parameter.values if parameter.environment(v) == wanted), None)
    if same is not None or len(parameter.variables) > 1:
        return same
    (word,) = wanted.values()
    value = as_value(parameter, word)
    return value if value in parameter.values else None


def _undeclared(space: Space, variable: str, value: str, why: LeftOut | None) -> LeftOut | None:
    """Returns why a variable is not searched; ``None`` if it is."""
    if variable in space.pinned:
        pinned = space.pinned[variable]
        same = pinned == value
        return _EVERYWHERE if same else LeftOut(f"pinned to {quote_value(pinned)} in every run")
    if any(variable in parameter.variables for parameter in space.parameters):
        return None
    for parameter in space.left_out.values():
        if variable in parameter.variables:
            return LeftOut("needs an opt-in", opt_in=parameter.name)
    if any(variable in parameter.variables for parameter in space.declared.values()):
        return LeftOut("not searched by this campaign")
    return why or LeftOut(f"not in the space {space.name}")


def _refused(space: Space, parameter: Parameter, wanted: str) -> LeftOut:
    if len(parameter.variables) > 1:
        return LeftOut(f"not among the choices of {parameter.name} in the space {space.name}")
    if wanted in {one.value for one in parameter.restricted}:
        return LeftOut("needs an opt-in", opt_in=f'"{parameter.name}={wanted}"')
    legal = ", ".join(value for value in parameter.values if value is not None)
    return LeftOut(f"the space {space.name} has other values of {parameter.name} ({legal})")


def first_within(
    first: tuple[Configuration, ...], space: Space, why: str, tried: tuple[TriedFirst, ...]
) -> tuple[tuple[Configuration, ...], list[str]]:
    """Returns what can still be tried first in a smaller space, and notes on the rest."""
    kept: list[Configuration] = []
    said = []
    for configuration in first:
        if not space.check(configuration):
            kept.append(configuration)
            continue
        name = next((one.name for one in tried if one.configuration == configuration), None)
        if name is None:
            said.append(f"note: {configuration} is not tried first: {why}")
            continue
        # The part of a named set that is still legal is kept.
        part = _fit_set(name, configuration, space, {})
        said.append(f"note: in the space that is left, {part.words}")
        kept += [part.configuration] if part.configuration else []
    return tuple(dict.fromkeys(kept)), said
