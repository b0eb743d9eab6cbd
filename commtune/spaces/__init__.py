"""Search spaces: which variables there are, their legal values, conditions and dangers."""

from commtune.documents.nearest import find_nearest, suggest
from commtune.documents.quantities import (
    QuantityError,
    format_seconds,
    parse_bytes,
    parse_percent,
    parse_seconds,
)
from commtune.documents.validation import validate_document, validate_part
from commtune.documents.yaml_document import (
    AmbiguousWord,
    Document,
    exact_text,
    load_document,
    parse_document,
    require_kind,
)
from commtune.spaces.conditions import idle_under
from commtune.spaces.cutting import remove_parameters
from commtune.spaces.loading import build_space, list_presets, load_space
from commtune.spaces.parameter import Kind, Parameter, Risk, Size, Value
from commtune.spaces.schema import (
    IN_DIGITS,
    CustomizationDocument,
    Text,
    Truth,
    VersionOne,
    Whole,
)
from commtune.spaces.space import Space, condition_text
from commtune.spaces.version_cuts import cut_space_to_versions

__all__ = [
    "IN_DIGITS",
    "AmbiguousWord",
    "CustomizationDocument",
    "Document",
    "Kind",
    "Parameter",
    "QuantityError",
    "Risk",
    "Size",
    "Space",
    "Text",
    "Truth",
    "Value",
    "VersionOne",
    "Whole",
    "build_space",
    "condition_text",
    "cut_space_to_versions",
    "exact_text",
    "find_nearest",
    "format_seconds",
    "idle_under",
    "list_presets",
    "load_document",
    "load_space",
    "parse_bytes",
    "parse_document",
    "parse_percent",
    "parse_seconds",
    "remove_parameters",
    "require_kind",
    "suggest",
    "validate_document",
    "validate_part",
]
