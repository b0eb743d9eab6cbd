"""Cuts a space to what the versions of the libraries know, by their catalogues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from commtune.spaces.cutting import remove_parameters
from commtune.spaces.parameter import Parameter
from commtune.spaces.space import Space

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Catalogue, Variable


def cut_space_to_versions(
    space: Space, versions: Mapping[str, str]
) -> tuple[Space, tuple[str, ...]]:
    """The space with what the versions of its libraries read, and what is to say of that.

    Args:
        versions: of libraries, by name; without a catalogue or a version, one is passed over.
    """
    # Read only where a version is known: catalogues are long.
    from commtune.spaces.catalogue.loading import list_libraries, load_catalogue

    said: list[str] = []
    for library, version in versions.items():
        if not version or library not in list_libraries():
            continue
        space = _cut_to(space, load_catalogue(library), version, said)
    return space, tuple(said)


def _cut_to(space: Space, catalogue: Catalogue, version: str, said: list[str]) -> Space:
    """The same for one library."""
    known = _Known(catalogue, version)
    names, values = {}, {}
    for parameter in (*space.parameters, *space.left_out.values()):
        lost = {v: why for v in parameter.settings if (why := known.lacks(parameter, v))}
        if not lost:
            continue
        if lost.keys() >= parameter.settings.keys():
            names[parameter.name] = next(iter(lost.values()))
        else:
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
    """What a person must know of a cut: only what would have been searched."""
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
        yield f"note: not searched, since it hangs on what {title} lacks: {', '.join(hanging)}"


class _Known:
    """What a version of a library reads."""

    def __init__(self, catalogue: Catalogue, version: str) -> None:
        self._catalogue = catalogue
        self._version = version

    @property
    def is_newer(self) -> bool:
        """Whether it is a newer series than any that was looked at."""
        from commtune.spaces.catalogue.loading import is_after_version

        series = ".".join(self._catalogue.checked.newest.split(".")[:2])
        return is_after_version(self._version, series)

    def lacks(self, parameter: Parameter, value: str) -> str:
        """Why the version doesn't take a value of a parameter; empty where it does."""
        for name, written in parameter.settings[value].items():
            if why := self.lacks_name(name) or self._lacks_value(name, written):
                return why
        return ""

    def lacks_name(self, name: str) -> str:
        """Why the version doesn't read a variable; empty where it does."""
        from commtune.spaces.catalogue.loading import is_after_version, is_before_version

        variable = self._catalogue.variables.get(name)
        if variable is None or self._is_of_another(variable):
            return ""
        if variable.since is not None and is_before_version(self._version, variable.since):
            return f"since {variable.since}"
        if variable.until is not None and is_after_version(self._version, variable.until):
            instead = f", now {', '.join(variable.replaced_by)}" if variable.replaced_by else ""
            return f"until {variable.until}{instead}"
        return ""

    def _lacks_value(self, name: str, value: str) -> str:
        from commtune.spaces.catalogue.loading import is_before_version

        variable = self._catalogue.variables.get(name)
        if variable is None or self._is_of_another(variable):
            return ""
        came = [since for since, new in variable.values_since.items() if value in new]
        if came and all(is_before_version(self._version, since) for since in came):
            return f"since {came[0]}"
        return ""

    def _is_of_another(self, variable: Variable) -> bool:
        """Whether it belongs to a part with versions of its own, or of a vendor's own."""
        from commtune.spaces.catalogue.loading import is_of_vendor

        if variable.part is None:
            return False
        if is_of_vendor(self._catalogue, variable, self._version):
            return True
        newest = self._catalogue.parts[variable.part].newest
        return newest is not None and newest != self._catalogue.checked.newest
