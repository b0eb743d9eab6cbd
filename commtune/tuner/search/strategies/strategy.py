"""The seam of the search: what proposes configurations, and is told how they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from commtune.model import Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.standings import Speedups

#: Whether a configuration may be proposed: it is unknown, and none of its values is set aside.
IsOpen = Callable[[Configuration], bool]
#: Values by parameter, of those that are active; ``None`` for unset.
Assignment = Mapping[str, str | None]


class Origin(StrEnum):
    """Where a configuration came from."""

    BASELINE = "baseline"
    USER = "user"
    ENUMERATED = "enumerated"
    RANDOM = "random"
    SAMPLER = "sampler"
    ISOLATED = "isolated"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, and where it came from.

    Attributes:
        worth: by how much it is expected to improve the table (logarithm), if anybody knows.
    """

    configuration: Configuration
    origin: Origin
    worth: float | None = None


class Strategy(Protocol):
    """Proposes configurations of a space; is told how they did.

    Laws: ``ask`` proposes what the space allows and ``is_open`` admits, and nothing else;
    ``None`` means that nothing is left. Equal seeds and equal calls give equal proposals. What is
    under way (``wait_for``) is told or forgotten once; a strategy may be told of configurations
    that it never proposed, and of the same one several times. One that learns nothing only asks.
    """

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """The next configuration to try."""
        ...

    def wait_for(self, configuration: Configuration) -> None:
        """A configuration is under way, whoever proposed it."""
        return

    def tell(self, configuration: Configuration, speedups: Speedups) -> None:
        """A run succeeded, with these log speedups over the default."""
        return

    def tell_failed(self, configuration: Configuration) -> None:
        """A run failed through its configuration."""
        return

    def forget(self, configuration: Configuration) -> None:
        """A run was lost: nothing is known of it, and nobody waits for it."""
        return

    def rebuild(
        self, runs: Sequence[tuple[Configuration, Speedups]], failed: Sequence[Assignment]
    ) -> None:
        """Puts all that is known in the place of what was told; what is waited for stays."""
        return


def active_values(space: Space, configuration: Configuration) -> dict[str, str | None]:
    """The values of the parameters that are active in a configuration."""
    whole = space.assignment(configuration)
    return {p.name: whole[p.name] for p in space.parameters if space.active(p, whole)}
