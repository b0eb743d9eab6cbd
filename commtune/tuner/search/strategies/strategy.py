"""The interface of search strategies, which propose configurations and are told of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from commtune.model import Configuration, Origin
from commtune.spaces.space import Space

if TYPE_CHECKING:
    from commtune.tuner.search.standings import Speedups

#: One model of all configurations and sizes; see ``table_gp``.
DEFAULT_STRATEGY = "table-gp"
#: The names of commtune's own strategies.
OWN = (DEFAULT_STRATEGY, "exhaustive", "random")
#: Whether a configuration may be proposed: it is unknown, and none of its values is set aside.
IsOpen = Callable[[Configuration], bool]
#: Values by parameter, of those that are active; ``None`` for unset.
Assignment = Mapping[str, str | None]


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, and where it came from.

    Attributes:
        worth: expected improvement of the table by a run (logarithm); ``None`` if unknown.
    """

    configuration: Configuration
    origin: Origin
    worth: float | None = None


class Strategy(Protocol):
    """Proposes configurations of a space, and is told of their results.

    Contract: ``ask`` proposes only what the space allows and ``is_open`` admits; ``None`` means
    that nothing is left. Equal seeds and equal calls give equal proposals. A pending
    configuration (``wait_for``) is told or forgotten once. A strategy may be told of
    configurations that it never proposed, and of the same one several times. One that doesn't
    learn implements ``ask`` only.
    """

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns the next configuration to try."""
        ...

    def wait_for(self, configuration: Configuration) -> None:
        """Notes that a configuration is pending, whoever proposed it."""
        return

    def tell(self, configuration: Configuration, speedups: Speedups) -> None:
        """Adds a run that worked, with its log speedups over the default by size."""
        return

    def tell_failed(self, configuration: Configuration) -> None:
        """Adds a failure of a configuration."""
        return

    def forget(self, configuration: Configuration) -> None:
        """Notes that a run was lost, so its configuration is no longer pending."""
        return

    def rebuild(
        self, runs: Sequence[tuple[Configuration, Speedups]], failed: Sequence[Assignment]
    ) -> None:
        """Replaces everything that was told; pending configurations stay so."""
        return


def pop_open(
    configurations: list[Configuration], is_open: IsOpen, origin: Origin = Origin.RANDOM
) -> Proposal | None:
    """Removes configurations from the end of a list up to the first that is open."""
    while configurations:
        configuration = configurations.pop()
        if is_open(configuration):
            return Proposal(configuration, origin)
    return None


def active_values(space: Space, configuration: Configuration) -> dict[str, str | None]:
    """Returns the values of the parameters that are active in a configuration."""
    whole = space.assignment(configuration)
    return {p.name: whole[p.name] for p in space.parameters if space.active(p, whole)}
