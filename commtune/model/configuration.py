"""Configurations, which are assignments of environment variables, and keys of plain data."""

from __future__ import annotations

import json
import shlex
from collections.abc import ItemsView, Iterator, Mapping
from types import MappingProxyType
from typing import Any


def content_key(value: Any) -> str:
    """Returns a short stable key (16 hexadecimal digits of SHA-256) of any JSON-like value."""
    import hashlib  # not at the top: it loads OpenSSL, and fast commands compute no key

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Changes(dict[str, str | None]):
    """Variables of a shell with their new values; ``None`` unsets one."""

    def __str__(self) -> str:
        """The command line: ``export A=1; unset B C``; empty without any."""
        sets = [
            f"export {n}={shlex.quote(value)}" for n, value in self.items() if value is not None
        ]
        gone = [shlex.quote(name) for name, value in self.items() if value is None]
        return "; ".join([*sets, *([f"unset {' '.join(gone)}"] if gone else [])])


class Configuration(Mapping[str, str]):
    """One assignment of environment variables; the empty one is the default.

    Values are the exact strings that the process sees. A variable that is absent is left unset.
    Immutable, hashable, ordered by name, so that equal configurations have equal text and key.
    """

    __slots__ = ("_hash", "_key", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: Mapping[str, str] = MappingProxyType(dict(sorted((values or {}).items())))
        self._key, self._hash = "", 0

    @property
    def key(self) -> str:
        """The key of the content, computed on demand since that takes longer than all the rest."""
        if not self._key:
            self._key = content_key(dict(self._values))
        return self._key

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> ItemsView[str, str]:
        # Mapping's own looks up each value by a call.
        return self._values.items()

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __hash__(self) -> int:
        # Not that of the key: a search compares many configurations that it never runs.
        if not self._hash:
            self._hash = hash(tuple(self._values.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return self._values == other._values

    def __repr__(self) -> str:
        return f"Configuration({dict(self)})"

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.items()) or "(default)"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Tells pydantic to read and write a configuration as an object of its variables."""
        # Not at the top: fast commands start without pydantic.
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls(value),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        # dataclasses.asdict copies deeply; an immutable object needs no copy.
        return self

    @property
    def is_default(self) -> bool:
        """Whether this configuration sets nothing."""
        return not self._values


DEFAULT = Configuration()

#: Variables that keep hardware safe, set by administrators. They pass unchanged to every run, and
#: are never searched: NVLink multicast can take shared GPUs out of service.
PROTECTED_NAMES = (
    "NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST",
)  # fmt: skip
