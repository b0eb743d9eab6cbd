"""Reference settings: named sets of variables that sites, vendors and studies set or recommend."""

from commtune.systems.reference_settings.loading import (
    ReferenceSettings,
    all_reference_settings,
    build_reference_settings,
    find_reference_settings,
    list_sites,
    read_reference_settings,
)
from commtune.systems.reference_settings.schema import (
    REFERENCE,
    Baseline,
    BaselineFile,
    Origin,
    Seen,
    is_reference,
    strip_prefix,
)

__all__ = [
    "REFERENCE",
    "Baseline",
    "BaselineFile",
    "Origin",
    "ReferenceSettings",
    "Seen",
    "all_reference_settings",
    "build_reference_settings",
    "find_reference_settings",
    "is_reference",
    "list_sites",
    "read_reference_settings",
    "strip_prefix",
]
