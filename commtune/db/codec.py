"""Encodes values for columns, and decodes them."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from commtune.errors import DatabaseFault

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_T = TypeVar("_T")

#: A cache, because creating an adapter takes milliseconds.
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def pack_samples(samples_s: Sequence[float]) -> bytes:
    """Packs samples (seconds) as zlib-compressed little-endian 32-bit floats.

    These keep seven digits, which is more than the resolution of clocks on such times.
    """
    return zlib.compress(struct.pack(f"<{len(samples_s)}f", *samples_s))


def unpack_samples(blob: bytes) -> tuple[float, ...]:
    """Unpacks the samples (seconds) of ``pack_samples``; no bytes mean that they were pruned."""
    values = zlib.decompress(blob) if blob else b""
    return struct.unpack(f"<{len(values) // 4}f", values)


def to_json_value(value: Any) -> Any:
    """Returns a value as JSON data that every database accepts.

    Mappings become objects with text keys, sequences lists, and paths text. NaN and infinities
    become null. NUL characters, which PostgreSQL refuses, become U+FFFD.
    """
    if isinstance(value, str | PurePath):
        return _clean_text(str(value))
    if isinstance(value, Mapping):
        return {_clean_text(str(name)): to_json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _clean_text(text: str) -> str:
    """Returns text that every database accepts: without NUL and surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def dump_model(value: Any) -> dict[str, Any]:
    """Returns a dataclass of the model as JSON data that every database accepts."""
    plain = _adapter(type(value)).dump_python(value, mode="json", by_alias=True)
    found: dict[str, Any] = to_json_value(plain)
    return found


def load_model(kind: type[_T], stored: Mapping[str, Any]) -> _T:
    """Restores a dataclass from the data of ``dump_model``; fields not stored get their default.

    Raises:
        DatabaseFault: the data doesn't fit the dataclass.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(_without_nulls(stored))
    except ValidationError as error:
        raise DatabaseFault(f"the database holds no readable {kind.__name__}: {error}") from error


def load_plain(kind: type[_T], plain: Any) -> _T:
    """Restores a dataclass from the data of ``dataclasses.asdict``; unknown keys are ignored.

    Raises:
        ValueError: the data doesn't fit the dataclass.
    """
    return _adapter(kind).validate_python(plain, by_name=True)


def _without_nulls(value: Any) -> Any:
    """Returns data without the keys whose value is null, so that they get their default."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _adapter(kind: type[_T]) -> TypeAdapter[_T]:
    # Imported here, because reading the best configuration must start without pydantic.
    from pydantic import TypeAdapter

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


#: A sentinel for a key that one side lacks.
_ABSENT = object()


def list_differences(stored: Any, now: Any, prefix: str = "") -> list[str]:
    """Returns the differences between two plain values, as ``dotted.key: stored -> now`` lines."""
    if isinstance(stored, Mapping) and isinstance(now, Mapping):
        lines = []
        for name in sorted({*stored, *now}):
            place = f"{prefix}.{name}" if prefix else name
            lines += list_differences(stored.get(name, _ABSENT), now.get(name, _ABSENT), place)
        return lines
    return [] if stored == now else [f"{prefix}: {_show(stored)} -> {_show(now)}"]


def _show(value: Any) -> str:
    text = "(none)" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= 200 else f"{text[:90]} ... {text[-90:]}"
