"""What an aggressor really did, from its records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commtune.kernels.records import read_records
from commtune.model import AggressorPattern


@dataclass(frozen=True)
class AggressorReport:
    """What the records of an aggressor say so far, all its ranks together.

    Attributes:
        pattern: ``None`` as long as it is not up.
        bytes_moved: each message counted once.
        traffic_s, active_s: seconds since it began, with and without pauses.
        ended_by: ``signal``, ``stop-file`` or ``longest``; empty while it runs, and for ever if it
            was killed: what it did is then known up to its last second.
    """

    pattern: AggressorPattern | None = None
    message_bytes: int = 0
    ranks: int = 0
    hosts: tuple[str, ...] = ()
    bytes_moved: int = 0
    bytes_between_nodes: int = 0
    traffic_s: float = 0.0
    active_s: float = 0.0
    ended_by: str = ""
    problems: tuple[str, ...] = ()

    @property
    def gigabits_per_s(self) -> float:
        """Rate while it sends, pauses left out, in 10^9 bits a second."""
        return self.bytes_moved * 8e-9 / self.active_s if self.active_s > 0 else 0.0

    @property
    def gigabits_per_s_between_nodes(self) -> float:
        """Likewise, of what went from one node to another."""
        return self.bytes_between_nodes * 8e-9 / self.active_s if self.active_s > 0 else 0.0

    @classmethod
    def read(cls, path: Path) -> AggressorReport:
        """Reads an aggressor's record file, whatever its state, also while it is being written."""
        records = read_records(path)
        header, traffic = records.header, records.traffic or {}
        if header is None:
            return cls(problems=records.problems)
        if header.get("mode") != "aggress":
            return cls(problems=(f"{path} holds no records of an aggressor",))
        return cls(
            pattern=AggressorPattern(header["pattern"]),
            message_bytes=header["message_bytes"],
            ranks=header["ranks"],
            hosts=tuple(dict.fromkeys(str(rank.get("host", "")) for rank in header["rank_info"])),
            bytes_moved=traffic.get("bytes_moved", 0),
            bytes_between_nodes=traffic.get("bytes_between_nodes", 0),
            traffic_s=traffic.get("traffic_s", 0.0),
            active_s=traffic.get("active_s", 0.0),
            ended_by=str((records.footer or {}).get("ended_by", "")),
            problems=records.problems,
        )
