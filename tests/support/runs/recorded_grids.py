"""Recordings for tests: the committed ones, and a small one whose every number is known."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from commtune.campaign.plan import Plan
from commtune.documents.yaml_document import parse_document
from commtune.model import (
    DEFAULT,
    Configuration,
    Measurement,
    Operation,
    Outcome,
    Timing,
    Workload,
)
from commtune.replay.recording import Grid, GridHeader, RecordedRun, parse_size
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import build_space

GRIDS = Path(__file__).parents[3] / "benchmarks" / "grids"
SIZES = (8, 65536)
#: Core-to-core round trips of a fast and a slow machine, seconds.
FAST_S, SLOW_S = 80e-9, 430e-9
_BUS_FACTOR = 1.5
ONE, TWO = Configuration({"A": "1"}), Configuration({"A": "2"})

_SPACE = """
space: 1
name: small
version: 1
library: mpich
parameters:
  - {name: A, kind: choice, values: ["1", "2"], source: test}
  - {name: P, kind: choice, values: ["1", "2"], source: test}
"""


def small_plan(**other: object) -> Plan:
    """A campaign that the small recording can answer."""
    space = customize_space(build_space(parse_document(_SPACE)), pin={"P": "1"})
    recorded = header()
    plan = Plan("small", space, recorded.workload, recorded.timing)
    return replace(plan, **other)  # type: ignore[arg-type]  # by name, each of its own type


def header(**other: object) -> GridHeader:
    """The small recording's header."""
    values: dict[str, object] = {
        "name": "small",
        "recorded": "2026-01-31",
        "system": {"name": "Processor, 2 cores", "cores_usable": 2},
        "stack": {"name": "MPICH", "flavour": "mpich", "version": "5.0.2"},
        "workload": Workload(Operation.ALLREDUCE, SIZES),
        "timing": Timing(max_samples=20),
        "campaign": "campaign: 1\nname: small\nspace: mpich-host\n",
        "pinned": {"P": "1"},
        "benchmark": {"sources": "0" * 16},
        "bus_factor": _BUS_FACTOR,
        **other,
    }
    return GridHeader(**values)  # type: ignore[arg-type]  # by name, each of its own type


def sizes(factor: float, canary_s: float) -> tuple[Measurement, ...]:
    """What a run says of both sizes, for a configuration that takes ``factor`` times as long."""
    slow = canary_s / FAST_S
    found = []
    for size in SIZES:
        time_s = factor * slow * (1e-6 + size * 1e-10)
        row = [1e9 * t for t in (time_s, canary_s, canary_s, 0.9 * time_s, 1.2 * time_s)]
        found.append(parse_size(size, row, wall_s=0.5, bus_factor=_BUS_FACTOR))
    return tuple(found)


def small_grid(rounds: int = 12) -> Grid:
    """Three configurations in turn; the machine is slow in every other three rounds of runs.

    The third configuration crashes in its first run. A run takes half a second.
    """
    runs = []
    for number in range(3 * rounds):
        round_, index = divmod(number, 3)
        canary_s = SLOW_S if round_ // 3 % 2 else FAST_S
        # Each run differs a little, so that runs are told apart.
        found = sizes((1.0, 0.8, 1.1)[index] * (1 + 0.002 * round_), canary_s)
        crashed = number == 2
        runs.append(
            RecordedRun(
                index,
                0.5 * number,
                0.5,
                Outcome.CRASHED if crashed else Outcome.OK,
                found[:1] if crashed else found,
                "exit status 134" if crashed else "",
                0.25 if number == 3 else None,
            )
        )
    return Grid(header(), (DEFAULT, ONE, TWO), tuple(runs))


def written(grid: Grid, path: Path) -> str:
    """Writes a recording unpacked; its digest."""
    content = "".join(grid.lines()).encode()
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()
