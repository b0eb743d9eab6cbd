"""Finds the best stored configuration for an operation, at one size or at every measured one.

It imports nothing slow, because ``commtune best`` answers in a tenth of a second.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar

from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import WHAT_TO_DO
from commtune.db.queries.best import (
    find_candidates,
    find_stacks,
    measured_sizes,
    read_answers,
    size_distance,
)
from commtune.db.records import BestRow as BestRow
from commtune.errors import NoAnswer
from commtune.model import PYTHON_BACKENDS, Backend, Operation, Verdict

_Row = TypeVar("_Row")

#: The answers that are read before the first is yielded: as many as the service returns.
_FIRST_PART = 5
#: The number of newest candidates whose questions are read first; more than the first part has.
_NEWEST = 6
#: The key of a candidate's question; that of ``_question`` is finer, but needs a whole answer.
_QUESTION = itemgetter("system_id", "stack_id", "backend", "ranks", "nodes")


def best_at_size(
    operation: str,
    size: int,
    filters: Mapping[str, Any],
    *,
    stack: str | None = None,
    db: str | None = None,
) -> Iterator[BestRow]:
    """Yields the answers about a size (bytes), best first; they are read lazily.

    Args:
        filters: the conditions of ``db.queries.best.find_candidates``; ``None`` for any value.
        stack: part of the software's text, or its fingerprint; ``None`` for any.

    Raises:
        NoAnswer: there is none; the hint lists what there is.
        DatabaseFault: the database can't be read.
    """
    with open_for_reading(db) as rows:
        is_cut = stack is None
        newest = _NEWEST if is_cut else None
        found = find_candidates(rows, operation, size, filters, newest=newest)
        if stack is not None:
            known = find_stacks(rows, stack)
            found = [row for row in found if row["stack_id"] in known]
        # The groups keep the order of the candidates, newest first.
        unread = list(_group(found, _QUESTION).values())
        read: list[BestRow] = []
        told, part = 0, _FIRST_PART
        while unread:
            ids: list[int] = []
            while unread and len(ids) < part:
                ids += [row["id"] for row in unread.pop(0)]
            if is_cut and not unread and len(found) >= _NEWEST:
                is_cut, seen = False, {row["id"] for row in found}
                every = find_candidates(rows, operation, size, filters)
                rest = [row for row in every if row["id"] not in seen]
                unread = list(_group(rest, _QUESTION).values())
            read += read_answers(rows, ids, size)
            ranked = _rank_answers(read, size, unread[0][0]["created"] if unread else -math.inf)
            yield from ranked[told:]
            told, part = len(ranked), 2 * part
        if found and not told:
            raise NoAnswer("every profile for this is damaged", hint=WHAT_TO_DO)


def best_by_size(
    operation: Operation, filters: Mapping[str, Any], *, db: str | None = None
) -> dict[int, BestRow]:
    """Returns the best answer at every size (bytes) that was measured or ends a profile's range.

    Raises:
        NoAnswer: there is none for the operation; the hint lists what there is.
        DatabaseFault: the database can't be read.
    """
    sizes = measured_sizes(db, operation, filters.get("campaign"))
    answers = {}
    for size in sizes:
        try:
            found = best_at_size(operation, size, filters, db=db)
            first = next((row for row in found if row.nearest_bytes in {size, None}), None)
        except NoAnswer:  # the filters exclude all measurements at this size
            continue
        if first is not None:
            answers[size] = first
    if not answers:
        next(best_at_size(operation, max(sizes, default=0), filters, db=db))  # raises NoAnswer
    return answers


def _rank_answers(rows: Iterable[BestRow], size: int, unread: float) -> list[BestRow]:
    """Ranks answers about a size (bytes), and returns those that no unread answer can precede.

    They are ordered by ``_class`` first. Of different questions (another machine, software, number
    of ranks, ...), the newest comes first, because their gains are not comparable. Answers to the
    same question are ordered by ``_rank_campaigns``: there, a shown gain comes before one that was
    ruled out, as that is true only of the candidates of its own campaign.

    Args:
        rows: all or no answers to each question (``_QUESTION``).
        unread: when the newest unread answer was stored, seconds since 1970.
    """
    newest_first = sorted(rows, key=lambda row: (-row.created, -row.id))
    classes = _group(newest_first, _class)
    found: list[BestRow] = []
    for key in sorted(classes):
        questions = _group(classes[key], _question).values()
        for same in sorted(questions, key=lambda same: -same[0].created):
            if unread > -math.inf and (key > _BEST_CLASS or same[0].created <= unread):
                return found
            found += _rank_campaigns(same, size)
    return found


def _group(rows: Iterable[_Row], key: Callable[[_Row], Any]) -> dict[Any, list[_Row]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _class(row: BestRow) -> tuple[bool, bool, int, bool]:
    """Returns the rank of an answer by the conditions of its measurement, lowest first.

    Measured comes before simulated; usual conditions before those with an aggressor, emulated
    nodes or times other than medians; the native benchmark before a user's own; decided before
    undecided.
    """
    return (
        row.simulated,
        not row.conditions.are_usual or bool(row.conditions.estimand),
        _nativeness(row),
        row.finding is Verdict.UNDECIDED,
    )


#: The lowest class, of decided answers by the native benchmark.
_BEST_CLASS = (False, False, 0, False)


def _nativeness(row: BestRow) -> int:
    """Returns 0 for the native benchmark, 1 for that in Python, and 2 for users' commands."""
    own = row.workload.get("own") or {}
    if row.backend == Backend.COMMAND or own.get("command"):
        return 2
    return int(row.backend in PYTHON_BACKENDS)


def _question(row: BestRow) -> Hashable:
    """Returns the key of an answer's question; answers with the same key are comparable."""
    # The workload has the pattern's content; the name of its file doesn't matter.
    conditions = replace(row.conditions, pattern="")
    measured = {name: value for name, value in row.workload.items() if name != "sizes"}
    where = (row.system_fingerprint, row.stack_fingerprint, row.backend, row.ranks, row.nodes)
    return (*where, conditions, repr(sorted(measured.items())))


def _rank_campaigns(rows: Iterable[BestRow], size: int) -> list[BestRow]:
    """Ranks answers to one question by campaign, and in each by range, narrowest first."""
    # Campaigns are ordered by shown gain, by distance of the measured size, by the lower end of
    # the gain's interval as in ``status``, and by age. At a size, a profile for a narrow range is
    # more certain than one for all sizes.
    narrowest = sorted(rows, key=lambda row: (row.bytes_high - row.bytes_low, -row.created))
    campaigns = _group(narrowest, lambda row: (row.finding, row.campaign))

    def preference(same: list[BestRow]) -> tuple[bool, float, float, float]:
        first = same[0]
        gains = first.finding is Verdict.FASTER
        surest = max((point.gain.low for point in first.sure_points), default=0.0)
        nearest = first.nearest_bytes
        apart = math.inf if nearest is None else size_distance(nearest, size)
        return (not gains, apart, -surest if gains else 0.0, -first.created)

    return [row for same in sorted(campaigns.values(), key=preference) for row in same]
