"""Removes protected variables, and what they make ineffective, from a campaign's space."""

from __future__ import annotations

from collections.abc import Mapping

from commtune.campaign.loading import CampaignSpec
from commtune.campaign.protected import check_pins, protected_settings
from commtune.spaces.catalogue_facts import idle_under
from commtune.spaces.customizing import customize_space
from commtune.spaces.space import Space
from commtune.spaces.version_filter import remove_parameters

#: Values that depend on what a protected setting switches off: by that setting, parameters with a
#: lower-case word that such values contain. For whole parameters, the catalogues have conditions.
_ABOUT = {("NCCL_NVLS_ENABLE", "0"): (("NCCL_ALGO", "nvls"), ("RCCL_ALGO", "nvls"))}


def apply_protected(spec: CampaignSpec, environment: Mapping[str, str]) -> CampaignSpec:
    """Returns the campaign with its space restricted by protected variables, and remarks on it.

    Raises:
        CampaignError: the campaign pins a protected variable to another value.
    """
    said: list[str] = []
    space = spec.plan.space
    guards = protected_settings(spec.protected_variables, environment)
    check_pins(space.pinned, guards, spec.file)
    for name, value in guards.items():
        space = _without(space, name, value, said)
        for parameter, word in _ABOUT.get((name, value), ()):
            space = _without_values(space, parameter, word, f"{name}={value}", said)
        space = _without_idle(space, name, value, said)
    return spec.with_space(space, said, "this environment's protected variables rule it out")


def _without(space: Space, variable: str, value: str, said: list[str]) -> Space:
    owner = next((p for p in space.parameters if variable in p.variables), None)
    if owner is None:
        return space
    said.append(
        f"note: {variable}={value} is set in this environment to keep hardware safe: it passes "
        f"unchanged, and {owner.name} is not searched"
    )
    return customize_space(space, pin={owner.name: "unset"})


def _without_values(space: Space, name: str, word: str, guard: str, said: list[str]) -> Space:
    parameter = space.by_name.get(name)
    if parameter is None:
        return space
    values = [value for value in parameter.values if value is not None]
    kept = [value for value in values if word not in value.lower()]
    if len(kept) == len(values):
        return space
    gone = ", ".join(f"'{value}'" for value in values if value not in kept)
    said.append(f"note: {guard} is set in this environment: {name} is searched without {gone}")
    if not kept:
        return customize_space(space, pin={name: "unset"})
    return customize_space(space, narrow={name: kept})


def _without_idle(space: Space, guard: str, value: str, said: list[str]) -> Space:
    """Removes parameters that have no effect under a protected setting, by the catalogues."""
    idle = idle_under(space, guard, value) if value else ()  # an empty value counts as unset
    smaller = remove_parameters(space, idle) if idle else space
    gone = [name for name in space.by_name if name not in smaller.by_name]
    if gone:
        said.append(
            f"note: {guard}={value} is set in this environment: not searched, since without "
            f"effect then: {', '.join(gone)}"
        )
    return smaller
