"""What a campaign finds, beside random configurations of the same space in as much time.

    python benchmarks/beside_random.py campaign.yaml --random 200 --rounds 7 --output FILE.jsonl
    python benchmarks/beside_random.py campaign.yaml --only A=1 'A=1 B=2' --rounds 40
    python benchmarks/beside_random.py --from FILE.jsonl

One half of the random configurations runs before the campaign, the other half after it. Then the
configurations with random's fastest single runs, what the campaign recommends, and the default run
again, in rounds in random order. Every run but the campaign's has a launch of its own. The table
has, for some sizes, speedups over the default with 95 % intervals (Student's t over rounds); the
last column is what the campaign keeps of random's best, or of the default, where that is faster.
With ``--only`` there is no campaign: the configurations given and the default run in rounds.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared_launch import compare_times, measure_run

import commtune
from commtune import formatting
from commtune.app.campaigns.preparing import prepare_campaign
from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration, Outcome
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.wiring.benchmark_setup import prepare_benchmark

#: Runs of the default before all others, which don't count.
_WARM_UP = 3
#: Of the single runs, each so many-th is one of the default.
_DEFAULT_EVERY = 11
_Record = Mapping[str, Any]


def measure(options: argparse.Namespace) -> None:
    """Makes all runs and writes a record of each; the campaign's profiles are one record."""
    with commtune.open_store(options.db) as store, options.output.open("w") as file:
        campaign = commtune.load_campaign(options.campaign)
        spec, mpi = prepare_campaign(campaign, store.database.url)
        plan, rng = spec.plan, random.Random(f"beside/{spec.plan.seed}")
        folder = options.output.resolve().with_suffix(".runs")
        space = plan.space
        benchmark = prepare_benchmark(mpi, space.pinned, space.variables, plan.workload, folder)
        numbers = itertools.count()

        def write(record: _Record) -> _Record:
            print(json.dumps(record), file=file, flush=True)
            return record

        def run(kind: str, configuration: Configuration) -> _Record:
            made = measure_run(benchmark, plan, configuration, f"{kind}-{next(numbers)}")
            return write({"kind": kind, "at": time.time(), **made})

        def run_rounds(members: Sequence[Configuration]) -> None:
            for _ in range(options.rounds):
                for one in rng.sample(members, len(members)):
                    run("again", one)

        for _ in range(_WARM_UP):
            run("warm-up", DEFAULT)
        if options.only:
            given = [dict(word.split("=", 1) for word in one.split()) for one in options.only]
            run_rounds([DEFAULT, *map(Configuration, given)])
            return
        half = options.random // 2
        singles = [run("single", one) for one in draw_singles(plan, rng, half)]
        began = time.time()
        found = commtune.tune(spec, store=store, on_progress=print).profiles
        profiles = [describe_profile(profile) for profile in found]
        write({"kind": "campaign", "took_s": time.time() - began, "profiles": profiles})
        rest = draw_singles(plan, rng, options.random - half)
        singles += [run("single", one) for one in rest]
        members = choose_members(singles, profiles, options.at or plan.workload.sizes)
        run_rounds(members)


def draw_singles(plan: Plan, rng: random.Random, count: int) -> Iterator[Configuration]:
    """Yields random configurations, and the default now and then."""
    for number in range(count):
        if number % (_DEFAULT_EVERY - 1) == 0:
            yield DEFAULT
        yield plan.space.sample(rng)


def describe_profile(profile: commtune.Profile) -> _Record:
    """Describes a profile: name, range, verdict, settings and speedups by size."""
    return {
        "name": profile.name,
        "range_bytes": [profile.bytes_low, profile.bytes_high],
        "verdict": str(profile.verdict),
        "configuration": dict(profile.configuration),
        "speedups": {
            str(size): [point.gain.ratio, point.gain.low, point.gain.high, point.gain.pairs]
            for size, point in overall_points(profile.points_inside).items()
        },
    }


def choose_members(
    singles: Sequence[_Record], profiles: Sequence[_Record], sizes: Sequence[int]
) -> list[Configuration]:
    """Chooses what runs again: the default, random's fastest at each size, and the profiles'."""
    found = [DEFAULT]
    found += [Configuration(find_fastest(singles, size)["configuration"]) for size in sizes]
    found += [Configuration(profile["configuration"]) for profile in profiles]
    return list(dict.fromkeys(found))


def find_fastest(singles: Sequence[_Record], size: int) -> _Record:
    """Finds the single run, not of the default, with the shortest time at a size (bytes)."""
    good = [one for one in singles if one["outcome"] == Outcome.OK and one["configuration"]]
    return min(good, key=lambda one: one["median_s"][str(size)])


def show(records: Sequence[_Record], sizes: Sequence[int]) -> None:
    """Prints what each part took, and the table."""
    campaign = find_campaign(records)
    singles, again = select_kind(records, "single"), select_kind(records, "again")
    print(
        f"{sum(bool(one['configuration']) for one in singles)} random configurations: "
        f"{sum(one['wall_s'] for one in singles):.0f} s; "
        f"the campaign: {campaign['took_s']:.0f} s; "
        f"failed: {sum(one['outcome'] != Outcome.OK for one in [*singles, *again])}"
    )
    print(
        "| size | campaign | random's best, single run | random's best, again "
        "| recommended, again | kept |\n|---|---|---|---|---|---|"
    )
    for size in sizes or sorted(map(int, singles[0]["median_s"])):
        said, recommended = recommend_at(campaign["profiles"], size)
        cells = formatting.format_size(size), said, *compare_at(singles, again, recommended, size)
        print("| " + " | ".join(cells) + " |")


def compare_at(
    singles: Sequence[_Record],
    again: Sequence[_Record],
    recommended: Mapping[str, str],
    size: int,
) -> Iterator[str]:
    """Yields the last four columns of the table at a size (bytes)."""
    best = find_fastest(singles, size)
    defaults = [one["median_s"][str(size)] for one in singles if not one["configuration"]]
    yield f"{statistics.median(defaults) / best['median_s'][str(size)]:.2f}"
    default, fastest, ours = (
        list_times(again, configuration, size)
        for configuration in ({}, best["configuration"], recommended)
    )
    gain, kept = compare_rounds(default, fastest), compare_rounds(default, ours)
    yield describe_ratio(gain)
    yield describe_ratio(kept)
    if not fastest:
        yield "random's best was not launched again"
    elif gain[0] > 1:
        yield describe_ratio(compare_rounds(fastest, ours))
    else:
        yield f"{describe_ratio(kept)}, of the default"


def compare_rounds(slow: Sequence[float], fast: Sequence[float]) -> tuple[float, float, float]:
    """Compares times of the same rounds; those in which a run failed are left out."""
    pairs = [pair for pair in zip(slow, fast, strict=False) if not math.isnan(sum(pair))]
    if len(pairs) < 2:
        return (pairs[0][0] / pairs[0][1] if pairs else math.nan, math.nan, math.nan)
    one, other = zip(*pairs, strict=True)
    return compare_times(one, other)


def find_campaign(records: Sequence[_Record]) -> _Record:
    """Finds the record of the campaign; ends the program if there is none."""
    found = select_kind(records, "campaign")
    if not found:
        raise SystemExit(
            "no campaign in this file: its program ended before the campaign did, or was an "
            "earlier one, whose tables are in the .txt beside the file"
        )
    return found[0]


def select_kind(records: Sequence[_Record], kind: str) -> list[_Record]:
    return [one for one in records if one["kind"] == kind]


def recommend_at(profiles: Sequence[_Record], size: int) -> tuple[str, Mapping[str, str]]:
    """Returns what a campaign says at a size, and the settings: proven before likely ones."""
    for verdict, word in (("faster", ""), ("likely", "likely ")):
        for profile in profiles:
            if profile["verdict"] == verdict and str(size) in profile["speedups"]:
                ratio, low, high, pairs = profile["speedups"][str(size)]
                said = f"{word}{describe_ratio((ratio, low, high))}, {pairs} pairs"
                return said, profile["configuration"]
    return "default", {}


def list_times(
    records: Sequence[_Record], configuration: Mapping[str, str], size: int, key: str = "median_s"
) -> list[float]:
    """Lists the times (seconds) of one configuration at a size, round by round."""
    mine = [one[key] for one in records if one["configuration"] == configuration]
    return [times_s.get(str(size), math.nan) for times_s in mine]


def read_records(path: Path) -> list[_Record]:
    """Reads a file of JSON lines, also one that gzip compressed."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in text.splitlines()]


def describe_ratio(found: tuple[float, float, float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*found)


def main() -> None:
    """Measures, if a campaign is given, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", type=Path, nargs="?")
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", help="configurations, 'NAME=VALUE NAME=VALUE' each")
    parser.add_argument("--at", type=int, nargs="*", default=(), help="sizes to run again, bytes")
    parser.add_argument("--db", type=Path, default=Path("beside-random.db"))
    parser.add_argument("--output", type=Path, default=Path("beside-random.jsonl"))
    parser.add_argument("--from", type=Path, dest="earlier")
    options = parser.parse_args()
    if not options.earlier:
        measure(options)
    if not options.only:
        show(read_records(options.earlier or options.output), options.at)


if __name__ == "__main__":
    main()
