"""Search spaces: which variables there are, their legal values, conditions and dangers."""

from commtune.nearest import nearest, suggestion
from commtune.quantities import (
    QuantityError,
    format_bytes,
    format_seconds,
    parse_bytes,
    parse_percent,
    parse_seconds,
)
from commtune.spaces.cutting import cut
from commtune.spaces.document import (
    AmbiguousWord,
    Document,
    exact_text,
    load_document,
    parse_document,
    require_kind,
)
from commtune.spaces.explaining import validated, validated_part
from commtune.spaces.loading import build_space, load_space, presets
from commtune.spaces.needs import idle_under
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
from commtune.spaces.versions import cut_to

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
    "cut",
    "cut_to",
    "exact_text",
    "format_bytes",
    "format_seconds",
    "idle_under",
    "load_document",
    "load_space",
    "nearest",
    "parse_bytes",
    "parse_document",
    "parse_percent",
    "parse_seconds",
    "presets",
    "require_kind",
    "suggestion",
    "validated",
    "validated_part",
]
