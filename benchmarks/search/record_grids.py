"""Records the dense grids for the benchmark of the search, one after the other.

    python benchmarks/search/record_grids.py --dry     # what there is to record, nothing is run
    python benchmarks/search/record_grids.py           # on a quiet machine; goes on where it was

Each campaign of benchmarks/grids/campaigns/ becomes benchmarks/grids/NAME.jsonl.gz. A recording
is fixed before any search sees it: add its digest to benchmarks/grids/README.md at once.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from commtune.campaign.loading import load_campaign

GRIDS = Path(__file__).parent.parent / "grids"
#: Three runs of each configuration for the search, three to judge it by.
RUNS = 6
#: What a run of 20 sizes takes with its launch, seconds; to say beforehand how long it will be.
RUN_S = 0.3


def main() -> None:
    """Records what the folder of campaigns asks for, or says what that is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="only say what would be recorded")
    parser.add_argument("--runs", type=int, default=RUNS, help="of every configuration")
    options = parser.parse_args()
    for campaign in sorted((GRIDS / "campaigns").glob("*.yaml")):
        plan = load_campaign(campaign).plan
        count, out = plan.space.count(), GRIDS / f"{plan.name}.jsonl.gz"
        minutes = count * options.runs * RUN_S / 60
        print(f"{out.name}: {count} configurations, {len(plan.workload.sizes)} sizes, "
              f"{options.runs} runs of each: about {minutes:.0f} min", flush=True)  # fmt: skip
        if options.dry:
            continue
        command = [sys.executable, "-m", "commtune.cli", "record", str(campaign)]
        subprocess.run([*command, "--runs", str(options.runs), "--out", str(out)], check=True)
        print(hashlib.sha256(out.read_bytes()).hexdigest(), out.name)


if __name__ == "__main__":
    main()
