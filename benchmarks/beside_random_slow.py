"""How often launches are slow in experiments of beside_random.py, by the value of a variable.

    python benchmarks/beside_random_slow.py FILE.jsonl... --variable NCCL_SOCKET_NTHREADS

Reads re-runs from what beside_random.py wrote, and confirmation runs from files of all runs of a
campaign (``random-beside-campaign-*-runs.jsonl.gz``). Each has a launch of its own. A launch is
slow if at some size from 1 MiB on it takes over 1.5 times the median of its configuration's
launches. Only configurations with five launches or more in a file count.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from beside_random import read_records

_SLOW = 1.5
_SLOW_FROM = 2**20
_LAUNCHES = 5
_Settings = tuple[tuple[str, str], ...]


def read_launches(path: Path) -> dict[_Settings, list[dict[int, float]]]:
    """Reads times by size (bytes) of each configuration's launches; units cancel out later."""
    found: dict[_Settings, list[dict[int, float]]] = defaultdict(list)
    for record in read_records(path):
        if record.get("kind") == "again" or record.get("phase") == "confirm":
            configuration = record.get("configuration", record.get("env"))
            times = record.get("median_s", record.get("us"))
            by_size = {int(size): time for size, time in times.items()}
            found[tuple(sorted(configuration.items()))].append(by_size)
    return {one: launches for one, launches in found.items() if len(launches) >= _LAUNCHES}


def find_slowness(launches: Sequence[Mapping[int, float]]) -> list[float]:
    """Returns for each launch its largest time over its configuration's median at a size."""
    sizes = {size for one in launches for size in one if size >= _SLOW_FROM}
    medians = {size: median(one[size] for one in launches if size in one) for size in sizes}
    return [
        max((one[size] / medians[size] for size in sizes if size in one), default=1.0)
        for one in launches
    ]


def name_group(settings: _Settings, variable: str) -> str:
    """Names the group of a configuration."""
    value = dict(settings).get(variable)
    if value is None:
        return f"others, {variable} unset" if settings else "the default"
    return f"{variable}={value}"


def show(files: Sequence[Path], variable: str) -> None:
    """Prints a row for each group, over all files."""
    found: dict[str, list[float]] = defaultdict(list)
    members: dict[str, int] = defaultdict(int)
    for path in files:
        for settings, launches in read_launches(path).items():
            found[name_group(settings, variable)] += find_slowness(launches)
            members[name_group(settings, variable)] += 1
    print("| | configurations | slow launches | slowest |\n|---|---|---|---|")
    for name, ratios in sorted(found.items()):
        slow = sum(ratio > _SLOW for ratio in ratios)
        print(f"| {name} | {members[name]} | {slow} of {len(ratios)} | {max(ratios):.1f} |")


def main() -> None:
    """Prints the table of the files given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--variable", default="NCCL_SOCKET_NTHREADS")
    options = parser.parse_args()
    show(options.files, options.variable)


if __name__ == "__main__":
    main()
