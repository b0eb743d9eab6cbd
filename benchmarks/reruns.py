"""How many stated speedups hold what verifications measured later.

    python benchmarks/reruns.py benchmarks/results/gains-allowed-2026-11-28.db.gz

Of every profile of a database that is faster than the default, and each of its verifications: is
the new estimate inside the stated interval, at the size where the stated speedup is largest, at
each size, and at all sizes together? The database is an SQLite file, compressed by gzip.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from commtune.app.measure.past_verifications import read_verifications
from commtune.app.setup.upgrading import upgrade_database
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.model import Verdict
from commtune.tuner.outcome.displayed_points import overall_points


def main() -> None:
    """Prints a line for each verification, and the sums."""
    (given,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "commtune.db"
        with gzip.open(given) as packed, database.open("wb") as file:
            shutil.copyfileobj(packed, file)
        upgrade_database(f"sqlite:///{database}")
        count(f"sqlite:///{database}")


def count(db: str) -> None:
    """Counts in the database with this URL."""
    sums: Counter[str] = Counter()
    for line in find_profiles(db):
        profile = load_profile(db, str(line.id)).profile
        stated = {
            size: point
            for size, point in overall_points(profile.points_inside).items()
            if point.verdict is Verdict.FASTER
        }
        if line.verdict != Verdict.FASTER or not stated:
            continue
        largest = max(stated, key=lambda size: stated[size].gain.ratio)
        for made in read_verifications(str(line.id), db):
            again = overall_points(made.points)
            inside = {
                size: point.gain.low <= again[size].gain.ratio <= point.gain.high
                for size, point in stated.items()
                if size in again
            }
            hours = (made.record.ended_at - line.created) / 3600
            print(
                f"{line.campaign}/{line.name}, {hours:.1f} h later: {made.record.finding}, "
                f"inside at {sum(inside.values())} of {len(inside)} sizes"
                + ("" if inside.get(largest) else "; not at the largest speedup")
            )
            sums.update(
                verifications=1, sizes=len(inside), inside=sum(inside.values()),
                largest=inside.get(largest, False), every=all(inside.values()),
            )  # fmt: skip
    print(
        f"{sums['largest']} of {sums['verifications']} inside at the largest speedup, "
        f"{sums['inside']} of {sums['sizes']} at all sizes, "
        f"{sums['every']} of {sums['verifications']} at every one of their sizes"
    )


if __name__ == "__main__":
    main()
