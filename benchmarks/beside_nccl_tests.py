"""What nccl-tests says of a campaign's profiles, at measured sizes and between them.

    python benchmarks/beside_nccl_tests.py RUNS.jsonl --program all_reduce_perf --output FILE.jsonl
    python benchmarks/beside_nccl_tests.py RUNS.jsonl --from FILE.jsonl

RUNS.jsonl is what ``beside_random.py`` wrote. In blocks, in random order, the default and each
recommended configuration get two launches of two ranks, each rank a node of its own over sockets:
one at the powers of two of the campaign's range, one at 1.5 times each. The table has, for each
size inside a recommended range, the speedup over the default with a 95 % interval (Student's t
over blocks).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beside_random import compare_rounds, describe_ratio, find_campaign, list_times, read_records
from nccl_fidelity import their_times

from commtune.formatting import format_size

_Record = Mapping[str, Any]
_TIMING = ("-f", "2", "-w", "5", "-n", "20", "-z", "2")
_TRANSPORT = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")
_MPIRUN = ("mpirun", "--allow-run-as-root", "--bind-to", "none", *_TRANSPORT)
#: A size is slower if the speedup is below this, and its interval below 1.
_SLOWER = 0.98


def measure(options: argparse.Namespace, profiles: Sequence[_Record]) -> None:
    """Makes all launches and writes a record of each block and configuration."""
    measured = [int(size) for profile in profiles for size in profile["speedups"]]
    first, last = min(measured), max(measured)
    sides = list_configurations(profiles)
    rng = random.Random("beside/nccl-tests")
    with options.output.open("w") as file:
        for block in range(options.blocks):
            for configuration in rng.sample(sides, len(sides)):
                times: dict[str, float] = {}
                for smallest in (first, first * 3 // 2):
                    times |= launch(options.program, configuration, smallest, last)
                record = {"block": block, "configuration": configuration, "time_s": times}
                print(json.dumps(record), file=file, flush=True)


def list_configurations(profiles: Sequence[_Record]) -> list[Mapping[str, str]]:
    """Lists the default and each configuration that a profile recommends, once."""
    found = [{}, *(one["configuration"] for one in profiles if is_recommended(one))]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def is_recommended(profile: _Record) -> bool:
    return profile["verdict"] in ("faster", "likely")


def launch(
    program: Path, configuration: Mapping[str, str], first: int, last: int
) -> dict[str, float]:
    """Launches nccl-tests with two ranks as two nodes; returns seconds by size (bytes)."""
    command = list(_MPIRUN)
    for rank in range(2):
        exports = {**configuration, "NCCL_HOSTID": f"node{rank}"}
        flags = [word for name, value in exports.items() for word in ("-x", f"{name}={value}")]
        run = [str(program), "-b", str(first), "-e", str(last), *_TIMING]
        command += [*([":"] if rank else []), "-np", "1", *flags, *run]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return {size: times[0] for size, times in their_times("", done.stdout).items()}


def show(records: Sequence[_Record], profiles: Sequence[_Record]) -> None:
    """Prints a row for each size inside a recommended range, and how many are slower."""
    recommended = [one for one in profiles if is_recommended(one)]
    print("| size | in the campaign | profile | nccl-tests |\n|---|---|---|---|")
    ratios, slower, inside = {}, 0, []
    for size in sorted({int(size) for record in records for size in record["time_s"]}):
        for profile in recommended:
            low, high = profile["range_bytes"]
            if low <= size <= high:
                default_s = list_times(records, {}, size, "time_s")
                ours_s = list_times(records, profile["configuration"], size, "time_s")
                found = compare_rounds(default_s, ours_s)
                ratio, _, end = found
                ratios[describe_ratio(found) + f" at {format_size(size)}"] = ratio
                slower += ratio < _SLOWER and end < 1
                said = profile["speedups"].get(str(size))
                inside += [said[1] <= ratio <= said[2]] if said else []
                cells = (
                    format_size(size),
                    describe_ratio((said[0], said[1], said[2])) if said else "not measured",
                    f"{profile['name']} ({profile['verdict']})",
                    describe_ratio(found),
                )
                print("| " + " | ".join(cells) + " |")
    print(
        f"{len(ratios)} sizes with a profile; slower than the default beyond noise: {slower}; "
        f"inside the campaign's interval: {sum(inside)} of {len(inside)} that it measured"
    )
    if ratios:
        least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        print(f"smallest {least}, largest {most}")


def main() -> None:
    """Measures, unless a file is given, and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--program", type=Path, help="all_reduce_perf, built with MPI=1")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--output", type=Path, default=Path("beside-nccl-tests.jsonl"))
    parser.add_argument("--from", type=Path, dest="earlier")
    options = parser.parse_args()
    campaign = find_campaign(read_records(options.runs))
    if not options.earlier:
        measure(options, campaign["profiles"])
    show(read_records(options.earlier or options.output), campaign["profiles"])


if __name__ == "__main__":
    main()
