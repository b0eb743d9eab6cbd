"""Several experiments of beside_random.py in one table, and counts over them.

    python benchmarks/beside_random_table.py FILE.jsonl... [--at SIZES]

For each size (bytes): what the campaign confirmed, and in brackets how fast what it recommends is
over random's best, both launched again (means of logs over rounds). Where random's best was slower
than the default, it is over the default. Bold is below 0.9.

Below stand counts over these sizes, as far as random's best was launched again: ratios by means of
logs and by medians of the rounds; how many 95 % intervals are all above or all below 1; how often
the re-runs' speedup lies in the campaign's interval; and how the speedup of random's best single
run compares with that of its re-runs (median over sizes).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from beside_random import (
    compare_rounds,
    find_campaign,
    find_fastest,
    list_times,
    read_records,
    recommend_at,
    select_kind,
)

from commtune.formatting import format_size

_Record = Mapping[str, Any]
#: Ratios below this are bold, and named.
_LOST = 0.9


@dataclass(frozen=True)
class Kept:
    """What a campaign keeps at a size: the ratio, its interval, and the ratio by medians."""

    said: str
    ratio: float
    low: float
    high: float
    by_medians: float
    #: Whether the re-runs' speedup lies in the campaign's interval; None without a recommendation.
    is_inside: bool | None
    #: The speedup of random's best single run, over that of its re-runs.
    luck: float


def judge_sizes(records: Sequence[_Record]) -> dict[int, Kept]:
    """Compares at each size (bytes) at which random's best was launched again."""
    campaign, singles = find_campaign(records), select_kind(records, "single")
    again = select_kind(records, "again")
    found = {}
    for size in sorted(map(int, singles[0]["median_s"])):
        said, recommended = recommend_at(campaign["profiles"], size)
        best = find_fastest(singles, size)["configuration"]
        default_s, best_s, ours_s = (
            list_times(again, one, size) for one in ({}, best, recommended)
        )
        if best_s and ours_s:
            gain = compare_rounds(default_s, best_s)[0]
            reference = best_s if gain > 1 else default_s
            found[size] = Kept(
                said.partition(" [")[0],
                *compare_rounds(reference, ours_s),
                by_medians=median(reference) / median(ours_s),
                is_inside=is_inside(said, compare_rounds(default_s, ours_s)[0]),
                luck=compare_single(singles, size) / gain,
            )
    return found


def is_inside(said: str, ratio: float) -> bool | None:
    """Says whether a speedup lies in the interval that a campaign states, if it states one."""
    interval = re.search(r"\[(.+), (.+)\]", said)
    return float(interval[1]) <= ratio <= float(interval[2]) if interval else None


def compare_single(singles: Sequence[_Record], size: int) -> float:
    """Returns the speedup of random's best single run over the default's median."""
    default_s = list_times(singles, {}, size)
    return median(default_s) / float(find_fastest(singles, size)["median_s"][str(size)])


def show(experiments: Mapping[str, Sequence[_Record]], shown: Sequence[int]) -> None:
    """Prints the table and the counts."""
    kept = {name: judge_sizes(records) for name, records in experiments.items()}
    sizes = shown or sorted({size for one in kept.values() for size in one})
    print("| size | " + " | ".join(kept) + " |\n" + "|---" * (len(kept) + 1) + "|")
    for size in sizes:
        cells = [describe_kept(one[size]) if size in one else "-" for one in kept.values()]
        print("| " + " | ".join([format_size(size), *cells]) + " |")
    for name, judged in [*kept.items(), ("together", None)]:
        chosen = kept.values() if judged is None else [judged]
        found = [size_kept for one in chosen for size, size_kept in one.items() if size in sizes]
        print(f"{name}: {'; '.join(count_kept(found))}")


def count_kept(found: Sequence[Kept]) -> Iterator[str]:
    """Yields how many are at least 0.9 by means and by medians, and how many differ from 1."""
    for words, ratios in (
        ("by means", [one.ratio for one in found]),
        ("by medians", [one.by_medians for one in found]),
    ):
        good = sum(ratio >= _LOST for ratio in ratios)
        yield f"{words} {good} of {len(ratios)} are 0.9 or more, the smallest {min(ratios):.3f}"
    yield f"intervals above 1: {sum(one.low > 1 for one in found)}"
    yield f"below 1: {sum(one.high < 1 for one in found)}"
    inside = [one.is_inside for one in found if one.is_inside is not None]
    yield f"re-runs inside the campaign's interval: {sum(inside)} of {len(inside)}"
    yield f"random's best, single run over re-runs: {median(one.luck for one in found):.2f}"


def describe_kept(kept: Kept) -> str:
    """Describes what was confirmed at a size, and what it keeps."""
    ratio = f"{kept.ratio:.2f}"
    return f"{kept.said} ({f'**{ratio}**' if kept.ratio < _LOST else ratio})"


def main() -> None:
    """Prints the table of the files given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--at", type=int, nargs="*", default=(), help="sizes of the table, bytes")
    options = parser.parse_args()
    show({file.name.partition(".")[0]: read_records(file) for file in options.files}, options.at)


if __name__ == "__main__":
    main()
