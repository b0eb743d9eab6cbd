"""The catalogue: what the environment variables of communication libraries are."""

from commtune.spaces.catalogue.loading import (
    build_catalogue,
    is_after_version,
    is_before_version,
    is_of_vendor,
    list_libraries,
    load_catalogue,
    names_in,
    read_catalogue,
)
from commtune.spaces.catalogue.lookup import (
    KnownVariable,
    LookupResult,
    NotRead,
    look_up,
    nearest_names,
    variable_prefixes,
)
from commtune.spaces.catalogue.schema import (
    Catalogue,
    Interaction,
    Need,
    NotVariable,
    Range,
    Variable,
)
from commtune.spaces.catalogue.vocabulary import (
    Danger,
    KnownFrom,
    Level,
    Operations,
    Role,
    Scope,
    Wrong,
)

__all__ = [
    "Catalogue",
    "Danger",
    "Interaction",
    "KnownFrom",
    "KnownVariable",
    "Level",
    "LookupResult",
    "Need",
    "NotRead",
    "NotVariable",
    "Operations",
    "Range",
    "Role",
    "Scope",
    "Variable",
    "Wrong",
    "build_catalogue",
    "is_after_version",
    "is_before_version",
    "is_of_vendor",
    "list_libraries",
    "load_catalogue",
    "look_up",
    "names_in",
    "nearest_names",
    "read_catalogue",
    "variable_prefixes",
]
