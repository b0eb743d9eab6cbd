"""What patterns of messages need beside a size: groups, directions, mechanisms, a matrix."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any


class Direction(StrEnum):
    """Which way messages between groups go; words of the native benchmark."""

    OUTBOUND = "outbound"  # from the first group to all others
    BIDIRECTIONAL = "bidirectional"  # and back at the same time
    OMNIDIRECTIONAL = "omnidirectional"  # from every group to every other


#: Sender, receiver, and bytes in relation to those of the others.
Flow = tuple[int, int, float]


@dataclass(frozen=True)
class Matrix:
    """Messages that are sent together, in the order of the file that they are from.

    Attributes:
        file: its name, for people; the same messages are the same whatever it is.
    """

    flows: tuple[Flow, ...]
    file: str = field(default="", compare=False)

    @cached_property
    def text(self) -> str:
        """A matrix file with nothing but them."""
        return "".join(f"{start} {end} {amount!r}\n" for start, end, amount in self.flows)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the text: the same messages have the same key, whatever their comments."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class PatternParameters:
    """What an operation made of messages depends on; each operation uses some of it.

    Attributes:
        group_size, active: ranks of a group, and those of them that send.
        inside, between: backends of messages inside of nodes and between them; empty for the
            backend of the workload.
        assemble: backend of the last step of striping; empty for the one inside of nodes.
        matrix: key of the matrix; empty where there is none.
        content: the matrix itself, where it was read; a stored shape has only its key.
    """

    group_size: int = 1
    active: int = 1
    direction: str = Direction.OUTBOUND
    inside: str = ""
    between: str = ""
    assemble: str = ""
    matrix: str = ""
    content: Matrix | None = field(default=None, compare=False, repr=False)

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that it names."""
        return tuple(dict.fromkeys(filter(None, (self.inside, self.between, self.assemble))))

    def plain(self) -> dict[str, Any]:
        """As plain data, without what has its default and without the matrix itself."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "content"}
        return {
            name: str(value) if isinstance(value, str) else value
            for name, value in given.items()
            if value != getattr(_USUAL, name)
        }

    def said(self, operation: str) -> str:
        """What of it an operation uses, for people; empty where that is nothing."""
        words = []
        if operation in GROUPED:
            words.append(f"groups of {self.group_size}")
        if operation in ACTIVE:
            words += [f"{self.active} of each active", str(self.direction)]
        if operation == "matrix" and self.matrix:
            name = self.content.file if self.content else ""
            words.append(f"file {self.matrix[:12]}" + (f" ({name})" if name else ""))
        if operation in MIXED:
            backends = (("inside", self.inside), ("between", self.between))
            words += [f"{name} nodes by {backend}" for name, backend in backends if backend]
        if operation == _STRIPING and self.assemble:
            words.append(f"assembled by {self.assemble}")
        return ", ".join(words)


_USUAL = PatternParameters()

_STRIPING = "striping"

#: Operations with active ranks and a direction; with groups; with two backends.
ACTIVE = ("rail", "asymmetric", "symmetric")
GROUPED = (*ACTIVE, _STRIPING)
MIXED = ("matrix", _STRIPING)
