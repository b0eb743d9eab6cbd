"""What questions to the database are answered with. Imports nothing that starts slowly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from commtune.model import Conditions, Configuration, PointEvidence, Profile

#: In a stack's description: what MPI, NCCL and RCCL load by themselves, with versions.
LIBRARIES = "libraries"


@dataclass(frozen=True)
class SystemRecord:
    """A machine.

    Attributes:
        fingerprint: same text, same machine as far as results are concerned.
        description: what the fingerprint was made of: processor, cores, NUMA, kernel, NICs, GPUs.
    """

    fingerprint: str
    name: str
    description: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StackRecord:
    """The communication software.

    Attributes:
        text: one line for people, such as ``MPICH 4.3.0``.
        description: MPI, version, kernel and the like; in ``libraries`` the versions of those
            that MPI, NCCL and RCCL load by themselves, where they were asked.
        formerly: the same stack without these, as it is where nobody asked for them.
    """

    fingerprint: str
    text: str
    description: Mapping[str, Any] = field(default_factory=dict)
    formerly: StackRecord | None = None

    def as_known_to(self, description: Mapping[str, Any]) -> StackRecord:
        """This stack as far as a stored description knows stacks.

        One that was stored before libraries were a part of it, or when nobody could tell their
        versions, must not be taken for another because of them.
        """
        return self.formerly if self.formerly and LIBRARIES not in description else self


@dataclass(frozen=True)
class StoredProfile:
    """One line of the list of profiles.

    Attributes:
        id: the number that names it; never used again for another profile.
        created: seconds since 1970.
    """

    id: int
    name: str
    campaign: str
    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    configuration: Configuration
    verdict: str
    system: str
    stack: str
    simulated: bool
    created: float


@dataclass(frozen=True)
class BestRow:
    """One answer to "what is best for this size".

    Attributes:
        system, stack: name and text for people; the fingerprints beside them tell them apart.
        bytes_low, bytes_high: sizes that the answer is for, both ends inclusive.
        nearest_bytes: the measured size nearest to the one asked for; ``None`` without evidence.
        points: evidence at that size, one for each machine state.
        level: confidence level of the intervals.
        created: seconds since 1970.
        workload, timing: what its campaign measures and how, as their ``plain`` has it; empty if
            nobody knows.
        space: name of the space that was searched.
    """

    id: int
    name: str
    campaign: str
    operation: str
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    configuration: Configuration
    verdict: str
    system: str
    system_fingerprint: str
    stack: str
    stack_fingerprint: str
    nearest_bytes: int | None
    points: tuple[PointEvidence, ...]
    level: float
    minimum_gain: float
    note: str
    conditions: Conditions
    simulated: bool
    created: float
    workload: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)
    space: str = ""


@dataclass(frozen=True)
class ProfileAnswer:
    """A whole profile, and what it was measured on.

    Attributes:
        created: seconds since 1970.
        space: the campaign's search space as plain data.
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
    """

    id: int
    campaign: str
    profile: Profile
    system: SystemRecord
    stack: StackRecord
    created: float
    space: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None

    @property
    def pinned(self) -> dict[str, str]:
        """Variables that were set in every run, the default's too."""
        return dict(self.space.get("pinned", {}))

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the search could set."""
        return tuple(self.space.get("variables", ()))
