"""System descriptions: what is known of a machine, and who says so."""

from commtune.systems.bandwidth import format_bandwidth, parse_bandwidth
from commtune.systems.links import (
    direct_bandwidth,
    injection_bandwidth,
    node_bandwidth,
    path_bandwidth,
)
from commtune.systems.loading import build_system, load_system, systems
from commtune.systems.schema import System

__all__ = [
    "System",
    "build_system",
    "direct_bandwidth",
    "format_bandwidth",
    "injection_bandwidth",
    "load_system",
    "node_bandwidth",
    "parse_bandwidth",
    "path_bandwidth",
    "systems",
]
