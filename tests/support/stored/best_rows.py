"""What is stored about a size, read at once and not ranked."""

from __future__ import annotations

from commtune.db.connection.reader import open_for_reading
from commtune.db.queries.best import find_candidates, read_answers
from commtune.db.records import BestRow


def best_profiles(
    url: str, op: str, size: int, limit: int = 1000, **asked: int | str | None
) -> list[BestRow]:
    """Profiles for a size in bytes, newest first."""
    with open_for_reading(url) as rows:
        found = find_candidates(rows, op, size, asked, limit)
        return read_answers(rows, [row["id"] for row in found], size)
