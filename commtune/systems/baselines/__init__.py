"""Baselines: named sets of variables that sites, vendors and studies set or recommend."""

from commtune.systems.baselines.loading import (
    NamedSet,
    baseline,
    baselines,
    build_baselines,
    read_baselines,
    sites,
)
from commtune.systems.baselines.schema import PREFIX, Baseline, BaselineFile, Origin, Seen

__all__ = [
    "PREFIX",
    "Baseline",
    "BaselineFile",
    "NamedSet",
    "Origin",
    "Seen",
    "baseline",
    "baselines",
    "build_baselines",
    "read_baselines",
    "sites",
]
