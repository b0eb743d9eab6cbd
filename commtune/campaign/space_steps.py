"""The space of a campaign, from the one that its file names to the one that is searched.

The steps, in their order:

1. from the file, in ``load_campaign``: ``FILE_STEPS`` below. What is wrong is refused, with its
   line;
2. on the machine, in ``space_fitting.fit_campaign``, once: what sets a protected variable goes
   (``campaign.protected.apply_protected``), then what the versions of the libraries found don't
   read (``spaces.cut_space_to_versions``).

A step that leaves something out says so in a remark.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from commtune.campaign import reference_settings
from commtune.campaign.reference_settings import TriedFirst
from commtune.campaign.schema import REFERENCE_KEYS, CampaignFile
from commtune.campaign.slurm import pin_by_system
from commtune.documents.yaml_document import Document, is_path
from commtune.errors import UnknownName
from commtune.model import Configuration
from commtune.spaces.customizing import customize_space
from commtune.spaces.growing import GrownSpace
from commtune.spaces.loading import load_space
from commtune.spaces.space import Space
from commtune.systems.reference_settings import ReferenceSettings
from commtune.systems.schema import System


@dataclass(frozen=True)
class SpaceSource:
    """What the space of a campaign is made from."""

    document: Document
    file: CampaignFile
    folder: Path
    system: System | None


@dataclass(frozen=True)
class CampaignSpace:
    """A campaign's space, as far as the steps have come.

    Attributes:
        first: configurations to try before the search proposes its own.
        sets: reference settings that the file asks for.
        grown: what came into the space for them, and why the rest did not.
        reference_settings: what is tried of them.
        remarks: what was left out, and why.
    """

    space: Space
    first: tuple[Configuration, ...] = ()
    sets: tuple[ReferenceSettings, ...] = ()
    grown: GrownSpace | None = None
    reference_settings: tuple[TriedFirst, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def build_campaign_space(source: SpaceSource) -> CampaignSpace:
    """The space that a file describes, with what is tried first in it.

    Raises:
        DocumentError: what is wrong, with file and line.
    """
    built = CampaignSpace(_load_named(source))
    for step in FILE_STEPS:
        built = step(built, source)
    return built


def _load_named(source: SpaceSource) -> Space:
    document, name, folder = source.document, source.file.space, source.folder
    if is_path(name):
        if not (folder / name).exists():
            raise document.error(
                f"there is no space file {folder / name}",
                ("space",),
                hint="paths start at the campaign file's folder; presets: commtune spaces list",
            )
        return load_space(folder / name)
    try:
        return load_space(name)
    except UnknownName as error:
        raise document.error(error.message, ("space",), hint=error.hint) from error


def _extend(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    extend = source.file.extend
    space = customize_space(built.space, extend=extend, document=source.document)
    return replace(built, space=space)


def _grow_for_reference_settings(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    file, space = source.file, built.space
    if file.reference_settings is None:
        return built
    key = source.document.written_key(REFERENCE_KEYS)
    sets = reference_settings.choose_sets(
        source.document, file.reference_settings, source.system, space.library, key
    )
    one_node = file.workload.nodes == 1 and not file.workload.emulate_nodes
    grown = reference_settings.grow_for_sets(
        sets, space, source.system, file.protected_variables, one_node=one_node
    )
    return replace(built, space=grown.space, sets=sets, grown=grown)


def _opt_in_narrow_and_pin(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    file = source.file
    space = customize_space(
        built.space, narrow=file.narrow, pin=file.pin, opt_in=file.opt_in, document=source.document
    )
    return replace(built, space=space)


def _unset_what_has_no_effect(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    file, space = source.file, built.space
    named = {*file.narrow, *(name for entry in file.first for name in entry)}
    idle = [n for n in space.without_effect_on(file.workload.operation) if n not in named]
    return replace(built, space=customize_space(space, pin=dict.fromkeys(idle, "unset")))


def _pin_by_system(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    return replace(built, space=pin_by_system(source.document, built.space, source.system))


def _list_first(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    """What the file lists itself."""
    first = tuple(Configuration(entry) for entry in source.file.first)
    for index, configuration in enumerate(first):
        problems = built.space.check(configuration)
        if problems:
            raise source.document.error(
                f"this configuration is not in the space: {problems[0]}",
                ("first", index),
                hint=f"see 'commtune spaces show {built.space.name}', or add the value by "
                "'extend'",
            )
    return replace(built, first=first)


def _try_reference_settings(built: CampaignSpace, source: SpaceSource) -> CampaignSpace:
    """Reference settings after them, each configuration once, never the default."""
    if built.grown is None:
        return built
    space, system = built.space, source.system
    tried = reference_settings.fit_sets(
        built.sets, space, system, source.file.protected_variables, built.grown
    )
    remarks = reference_settings.set_remarks(built.sets, tried, system, space.library)
    words = built.grown.words(space)
    known = [one.configuration for one in tried if one.configuration]
    return replace(
        built,
        first=(*built.first, *(c for c in dict.fromkeys(known) if c not in built.first)),
        reference_settings=tried,
        remarks=(*remarks, words) if words else remarks,
    )


#: The order counts: a set may bring a variable that the file then narrows, and a system's pins
#: hold whatever the file says.
FILE_STEPS = (
    _extend,
    _grow_for_reference_settings,
    _opt_in_narrow_and_pin,
    _unset_what_has_no_effect,
    _pin_by_system,
    _list_first,
    _try_reference_settings,
)
