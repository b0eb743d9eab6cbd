"""Nominal bandwidths between the GPUs of a described node. Bytes per second, one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commtune.systems.nominal import routes
from commtune.systems.nominal.fabric import fabric_of

if TYPE_CHECKING:
    from commtune.systems.schema import System


def direct_bandwidth(system: System, a: int, b: int) -> float:
    """What the direct links from one GPU to another carry in one direction; 0 without a link."""
    return fabric_of(system).capacity.get((a, b), 0)


def injection_bandwidth(system: System, gpu: int) -> float:
    """What all links of a GPU to other GPUs carry together in one direction."""
    return fabric_of(system).injection(gpu)


def path_bandwidth(system: System, a: int, b: int) -> float:
    """The widest of the shortest paths from one GPU to another; 0 where there is no path.

    A path is as wide as its narrowest hop. Several paths at once would carry more.
    """
    fabric = fabric_of(system)
    path = routes.widest_path(fabric, a, b)
    return routes.path_width(fabric, path) if path else 0


def node_bandwidth(system: System) -> int:
    """What all network ports of a node carry together in one direction."""
    return system.nics.count * system.nics.bandwidth
