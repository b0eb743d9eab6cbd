"""Scores in files, one a recording: what was played is not played again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .scoring import Score, summarize

RESULTS = Path(__file__).parent.parent / "results" / "search"


def load_scores(grid: str) -> list[Score]:
    """All scores of a recording that were stored."""
    path = _path(grid)
    if not path.exists():
        return []
    known: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return [Score(**{**one, "regret": tuple(one["regret"])}) for one in known]


def store_scores(grid: str, scores: Iterable[Score]) -> None:
    """Puts scores beside those that are stored, or in their place."""
    merged = {score.key: score for score in [*load_scores(grid), *scores]}
    lines = [json.dumps(score.plain(), separators=(",", ":")) for score in merged.values()]
    RESULTS.mkdir(parents=True, exist_ok=True)
    beside = _path(grid).with_suffix(".part")
    text = "[\n" + ",\n".join(sorted(lines)) + "\n]\n"
    beside.write_bytes(gzip.compress(text.encode(), mtime=0))
    beside.replace(_path(grid))


def _path(grid: str) -> Path:
    return RESULTS / f"{grid}.json.gz"


def group_rows(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """The table's rows: one for each method, budget and rule of picking."""
    grouped: dict[tuple[str, float, str], list[Score]] = {}
    for score in scores:
        grouped.setdefault(score.key[:3], []).append(score)
    return [summarize(mine) for mine in grouped.values()]
