"""The best stored configuration for an operation: at one size, or at every measured one.

``commtune best`` answers in a tenth of a second, so nothing slow is imported before it is needed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from commtune.app.ranking import Standing, conditions_of, find_standing, rank_answers, sure_points
from commtune.db.connection.location import database_url
from commtune.db.queries.profiles import best_profiles, find_profiles, load_profile
from commtune.db.queries.query_results import BestRow
from commtune.errors import NoAnswer
from commtune.model import Backend, Operation, Verdict
from commtune.tuner.outcome.detectability import describe_detectability

if TYPE_CHECKING:
    from commtune.app.nominal_share import Share

__all__ = [
    "BestFilters",
    "BestRow",
    "Standing",
    "best",
    "best_by_size",
    "conditions_of",
    "find_standing",
    "nominal_share_of",
    "sure_points",
    "why_inconclusive",
]


@dataclass(frozen=True)
class BestFilters:
    """Which answers are asked for; ``None`` for any.

    Attributes:
        system: part of a system's name, or its fingerprint.
    """

    nodes: int | None = None
    ranks: int | None = None
    system: str | None = None
    backend: str | None = None
    campaign: str | None = None


def best(
    operation: Operation, size: int, filters: BestFilters | None = None, *, db: str | None = None
) -> list[BestRow]:
    """Answers to what is best at a size in bytes, the one to take first.

    Raises:
        NoAnswer: there is none; the hint says what there is.
        DatabaseFault: the database can't be read.
    """
    asked = asdict(filters or BestFilters())
    return rank_answers(best_profiles(database_url(db), operation, size, **asked), size)


def best_by_size(
    operation: Operation, filters: BestFilters | None = None, *, db: str | None = None
) -> dict[int, BestRow]:
    """The first answer at every size (bytes) that was measured.

    Raises:
        NoAnswer: nothing is known of the operation; the hint says what there is.
        DatabaseFault: the database can't be read.
    """
    asked = filters or BestFilters()
    url = database_url(db)
    sizes = {
        point.bytes
        for listed in find_profiles(url, asked.campaign)
        if listed.operation == operation
        for point in load_profile(url, str(listed.id)).profile.points
    }
    answers = {}
    for size in sorted(sizes):
        try:
            found = best(operation, size, asked, db=db)
        except NoAnswer:  # only measured on another machine, or backend, than asked for
            continue
        first = next((row for row in found if row.nearest_bytes == size), None)
        if first is not None:
            answers[size] = first
    if not answers:
        best(operation, max(sizes, default=0), asked, db=db)  # says what there is
    return answers


def nominal_share_of(row: BestRow, db: str | None) -> Share | None:
    """What share of the nominal bandwidth the answer reaches; ``None`` where nobody knows it."""
    # Host memory on one node has none, and the models take their time to load.
    on_host = row.backend == Backend.MPI_HOST
    if row.simulated or (on_host and row.nodes == 1):
        return None
    from commtune.db.queries.description import describe_campaign

    stored = describe_campaign(database_url(db), row.campaign)
    if on_host and "fabric" not in stored.settings:
        return None
    from commtune.app.nominal_share import of_answer

    return of_answer(row, stored, db)


def why_inconclusive(row: BestRow, size: int, db: str | None) -> str:
    """How large a speedup could have been missed at the size, or the measured one nearest to it.

    A profile's own note is of its whole range, and so of the size at which least is known.
    """
    if row.verdict != Verdict.UNDECIDED:
        return ""
    from commtune.db.queries.description import detectable_gains

    found = detectable_gains(database_url(db), row.campaign)
    nearest = row.nearest_bytes
    if nearest is None:  # no candidate was compared here
        inside = [known for known in found if row.bytes_low <= known <= row.bytes_high]
        nearest = min(inside, key=lambda known: _factors(known, size), default=None)
    why = ""
    if nearest is not None:
        why = describe_detectability((nearest,), row.points, row.minimum_gain, found)
    return why or row.note or "too little evidence"


def _factors(one: int, other: int) -> float:
    """How far two sizes are apart, as the logarithm of their ratio."""
    return abs(math.log(max(one, 1) / max(other, 1)))
