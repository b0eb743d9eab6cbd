"""The catalogue: what the environment variables of communication libraries are."""

from commtune.spaces.catalogue.loading import (
    after,
    before,
    build_catalogue,
    is_of_vendor,
    libraries,
    load_catalogue,
    names_in,
    read_catalogue,
)
from commtune.spaces.catalogue.lookup import (
    Answer,
    Known,
    NotRead,
    look_up,
    nearest_names,
    prefixes,
)
from commtune.spaces.catalogue.schema import (
    Catalogue,
    Interaction,
    Need,
    NotVariable,
    Range,
    Variable,
)
from commtune.spaces.catalogue.words import (
    Danger,
    KnownFrom,
    Level,
    Operations,
    Role,
    Scope,
    Wrong,
)

__all__ = [
    "Answer",
    "Catalogue",
    "Danger",
    "Interaction",
    "Known",
    "KnownFrom",
    "Level",
    "Need",
    "NotRead",
    "NotVariable",
    "Operations",
    "Range",
    "Role",
    "Scope",
    "Variable",
    "Wrong",
    "after",
    "before",
    "build_catalogue",
    "is_of_vendor",
    "libraries",
    "load_catalogue",
    "look_up",
    "names_in",
    "nearest_names",
    "prefixes",
    "read_catalogue",
]
