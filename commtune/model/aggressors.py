"""Traffic that is made beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class AggressorPattern(StrEnum):
    """Who sends to whom in an aggressor; the word is the one of the benchmark's command line."""

    INCAST = "incast"  # all ranks but the first send to the first
    ALLTOALL = "alltoall"  # all ranks send to all


@dataclass(frozen=True)
class Aggressor:
    """Traffic on purpose, on nodes of its own, beside what is measured.

    Attributes:
        nodes, ranks_per_node: what it has to itself; at least 2 ranks in all.
        message_bytes: one message, from one rank to one other.
        burst_s, pause_s: seconds that it sends and is silent, in turn; both 0: it never pauses.
    """

    pattern: AggressorPattern
    nodes: int
    ranks_per_node: int = 1
    message_bytes: int = 131072
    burst_s: float = 0.0
    pause_s: float = 0.0

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node

    def plain(self) -> dict[str, Any]:
        """As plain data, for what is stored."""
        return {**asdict(self), "pattern": str(self.pattern)}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Aggressor:
        """From what ``plain`` gave."""
        return cls(**{**stored, "pattern": AggressorPattern(stored["pattern"])})
