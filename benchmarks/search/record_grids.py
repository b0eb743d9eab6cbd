"""Records the dense grids for the benchmark of the search, side by side on cores of their own.

    python benchmarks/search/record_grids.py --dry          # counts only
    python benchmarks/search/record_grids.py                # on a quiet machine; goes on
    python benchmarks/search/record_grids.py --seconds 540  # stops then; goes on next time

Each campaign of benchmarks/grids/campaigns/ becomes benchmarks/grids/NAME.jsonl.gz. As many are
recorded at a time as the machine has cores for their ranks. A recording is fixed before any search
sees it: add its digest to benchmarks/grids/README.md at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue

from commtune.campaign.loading import CampaignSpec, load_campaign

GRIDS = Path(__file__).parent.parent / "grids"
#: Three runs of each configuration for the search, three to judge it by.
RUNS = 6
_CPU = Path("/sys/devices/system/cpu")


def main() -> None:
    """Records what the folder of campaigns asks for, or says what that is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="only say what would be recorded")
    parser.add_argument("--runs", type=int, default=RUNS, help="of every configuration")
    parser.add_argument("--seconds", type=float, default=1e6, help="stop after so long")
    parser.add_argument("--campaigns", type=Path, default=GRIDS / "campaigns")
    parser.add_argument("--out", type=Path, default=GRIDS, help="folder of the recordings")
    options = parser.parse_args()
    specs = [load_campaign(file) for file in sorted(options.campaigns.glob("*.yaml"))]
    specs.sort(key=lambda spec: spec.plan.space.count(), reverse=True)
    for spec in specs:
        print(f"{spec.plan.name}: {spec.plan.space.count()} configurations, "
              f"{len(spec.plan.workload.sizes)} sizes, {options.runs} runs of each")  # fmt: skip
    if not options.dry:
        ranks = max(spec.plan.workload.ranks for spec in specs)
        _record_all(specs, _lanes(ranks), options)


def _lanes(ranks: int) -> list[list[int]]:
    """Groups of as many cores as there are ranks; threads of a core are in the same group."""
    usable = sorted(os.sched_getaffinity(0), key=lambda cpu: (_siblings(cpu), cpu))
    whole = [usable[at : at + ranks] for at in range(0, len(usable) - ranks + 1, ranks)]
    return whole or [usable]


def _siblings(cpu: int) -> int:
    listed = (_CPU / f"cpu{cpu}/topology/thread_siblings_list").read_text()
    return int(listed.replace("-", ",").split(",")[0])


def _record_all(
    specs: list[CampaignSpec], lanes: list[list[int]], options: argparse.Namespace
) -> None:
    waiting: SimpleQueue[CampaignSpec] = SimpleQueue()
    for spec in specs:
        waiting.put(spec)
    end = time.monotonic() + options.seconds
    workers = [
        threading.Thread(target=_work, args=(waiting, lane, end, options)) for lane in lanes
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _work(
    waiting: SimpleQueue[CampaignSpec], lane: list[int], end: float, options: argparse.Namespace
) -> None:
    while time.monotonic() < end:
        try:
            spec = waiting.get_nowait()
        except Empty:
            return
        _record(spec, lane, end, options)


def _record(spec: CampaignSpec, lane: list[int], end: float, options: argparse.Namespace) -> None:
    out = options.out / f"{spec.plan.name}.jsonl.gz"
    cores = ",".join(map(str, lane))
    print(f"{spec.plan.name}: on cores {cores}", flush=True)
    commtune = [sys.executable, "-m", "commtune.cli", "record", str(spec.file)]
    asked = ["--runs", str(options.runs), "--out", str(out)]
    with (options.out / f"{spec.plan.name}.log").open("ab") as log:
        child = subprocess.Popen(
            ["taskset", "-c", cores, *commtune, *asked], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            code = child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            code = child.wait()
    digest = hashlib.sha256(out.read_bytes()).hexdigest() if out.exists() else "not complete"
    print(f"{spec.plan.name}: ended with {code}; {digest}", flush=True)


if __name__ == "__main__":
    main()
