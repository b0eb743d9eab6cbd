"""The space of a campaign, from the one that its file names to the one that is searched.

The steps in their order are ``build_campaign_space``, for what the file says, and then
``space_fitting.fit_campaign``, once, for what the machine has: what sets a protected variable goes
(``campaign.protected.apply_protected``), then what the versions of the libraries found don't
read (``spaces.version_filter``). A step that leaves something out says so in a remark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commtune.campaign.reference_settings import CampaignSets, TriedFirst, choose_sets
from commtune.campaign.schema import REFERENCE_KEYS, CampaignFile
from commtune.campaign.slurm import pin_by_system
from commtune.campaign.values import load_named
from commtune.documents.yaml_document import Document
from commtune.model import Configuration
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import load_space
from commtune.spaces.reference_additions import ExtendedSpace
from commtune.spaces.space import Space
from commtune.systems.schema import System


@dataclass(frozen=True)
class CampaignSpace:
    """A campaign's space.

    Attributes:
        first: configurations to try before the search proposes its own.
        reference_settings: what is tried of the sets that the file asks for.
        remarks: what was left out, and why.
    """

    space: Space
    first: tuple[Configuration, ...] = ()
    reference_settings: tuple[TriedFirst, ...] = ()
    remarks: tuple[str, ...] = ()


def build_campaign_space(
    document: Document, file: CampaignFile, folder: Path, system: System | None
) -> CampaignSpace:
    """The space that a file describes, with what is tried first in it."""
    hint = "presets: commtune spaces list"
    space = load_named(document, ("space", "space file"), file.space, folder, load_space, hint)
    space = customize_space(space, extend=file.extend, document=document)
    # Before the file narrows and pins: a set may bring the variable that is meant.
    sets = _choose_sets(document, file, space, system)
    extended = ExtendedSpace(space)
    if sets:
        one_node = file.workload.nodes == 1 and not file.workload.emulate_nodes
        extended = sets.extend_space(space, one_node=one_node)
    space = customize_space(
        extended.space, narrow=file.narrow, pin=file.pin, opt_in=file.opt_in, document=document
    )
    space = _unset_what_has_no_effect(file, space)
    # Last, since a system's pins hold whatever the file says.
    space = pin_by_system(document, space, system)
    first = _list_first(document, file, space)
    if not sets:
        return CampaignSpace(space, first)
    tried = sets.fit(space, extended)
    # After what the file lists, each once; the default is measured anyway.
    known = dict.fromkeys(one.configuration for one in tried if one.configuration)
    remarks = [*sets.list_remarks(tried, space.library), extended.words(space)]
    return CampaignSpace(
        space,
        (*first, *(configuration for configuration in known if configuration not in first)),
        tried,
        tuple(filter(None, remarks)),
    )


def _choose_sets(
    document: Document, file: CampaignFile, space: Space, system: System | None
) -> CampaignSets | None:
    if file.reference_settings is None:
        return None
    key = document.written_key(REFERENCE_KEYS)
    sets = choose_sets(document, file.reference_settings, system, space.library, key)
    return CampaignSets(sets, system, file.protected_variables)


def _unset_what_has_no_effect(file: CampaignFile, space: Space) -> Space:
    named = {*file.narrow, *(name for entry in file.first for name in entry)}
    idle = [n for n in space.without_effect_on(file.workload.operation) if n not in named]
    return customize_space(space, pin=dict.fromkeys(idle, "unset"))


def _list_first(document: Document, file: CampaignFile, space: Space) -> tuple[Configuration, ...]:
    first = tuple(Configuration(entry) for entry in file.first)
    for index, configuration in enumerate(first):
        problems = space.check(configuration)
        if problems:
            raise document.error(
                f"this configuration is not in the space: {problems[0]}",
                ("first", index),
                hint=f"see 'commtune spaces show {space.name}', or add the value by 'extend'",
            )
    return first
