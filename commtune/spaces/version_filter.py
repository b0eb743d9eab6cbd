"""Leaves out of a space what versions of the libraries don't know, by their catalogues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from commtune.spaces.removal import remove_parameters
from commtune.spaces.space import Space

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Catalogue


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
        if version and library in list_libraries():
            space = _cut_to(space, load_catalogue(library), version, said)
    return space, tuple(said)


def _cut_to(space: Space, catalogue: Catalogue, version: str, said: list[str]) -> Space:
    """The same for one library."""
    from commtune.spaces.catalogue.loading import KnownVersion

    known = KnownVersion(catalogue, version)
    names, values = {}, {}
    for parameter in (*space.parameters, *space.left_out.values()):
        lost = {}
        for value, setting in parameter.settings.items():
            why = next(filter(None, (known.lacks_setting(*item) for item in setting.items())), "")
            if why:
                lost[value] = why
        # Without any value left, it is the parameter that is unknown.
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
