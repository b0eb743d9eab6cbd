"""System descriptions: what is known of a machine, and who says so."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from commtune.systems.nominal.bounds import Nominal
from commtune.systems.nominal.collectives import bus_bandwidth
from commtune.systems.nominal.driver_links import fabric_of_ranks
from commtune.systems.nominal.fabric import Fabric, Link, Ports, fabric_of
from commtune.systems.nominal.operations import (
    group_bandwidth,
    nominal_bandwidth,
    pair_bandwidths,
    self_bounds,
)
from commtune.systems.nominal.routes import (
    direct_bandwidth,
    injection_bandwidth,
    node_bandwidth,
    path_bandwidth,
)
from commtune.systems.nominal.stored import FABRIC, stored_fabric, stored_nominal, stored_question
from commtune.systems.nominal.traffic import Memory, NominalQuestion
from commtune.systems.units import format_bandwidth, parse_bandwidth, short_bandwidth

if TYPE_CHECKING:
    from commtune.systems.loading import build_system, list_systems, load_system
    from commtune.systems.schema import System

#: Where these are. The parser of descriptions takes longer to load than all the rest, and what a
#: database knows of a machine's links needs none.
_OF_DESCRIPTIONS = {
    "System": "schema",
    "build_system": "loading",
    "load_system": "loading",
    "list_systems": "loading",
}

__all__ = [
    "FABRIC",
    "Fabric",
    "Link",
    "Memory",
    "Nominal",
    "NominalQuestion",
    "Ports",
    "System",
    "build_system",
    "bus_bandwidth",
    "direct_bandwidth",
    "fabric_of",
    "fabric_of_ranks",
    "format_bandwidth",
    "group_bandwidth",
    "injection_bandwidth",
    "list_systems",
    "load_system",
    "node_bandwidth",
    "nominal_bandwidth",
    "pair_bandwidths",
    "parse_bandwidth",
    "path_bandwidth",
    "self_bounds",
    "short_bandwidth",
    "stored_fabric",
    "stored_nominal",
    "stored_question",
]


def __getattr__(name: str) -> Any:
    if name not in _OF_DESCRIPTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_OF_DESCRIPTIONS[name]}"), name)
    globals()[name] = found
    return found
