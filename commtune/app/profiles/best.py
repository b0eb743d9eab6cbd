"""The best stored configuration for an operation: at one size, or at every measured one.

``commtune best`` answers in a tenth of a second, so nothing slow is imported before it is needed.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from commtune.db.connection.location import database_url
from commtune.db.connection.reader import open_for_reading
from commtune.db.damage import WHAT_TO_DO
from commtune.db.queries.best import (
    find_candidates,
    find_stacks,
    measured_sizes,
    read_answers,
    size_distance,
)
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.records import BestRow as BestRow
from commtune.db.records import ProfileAnswer
from commtune.db.records import Standing as Standing
from commtune.errors import NoAnswer
from commtune.model import Backend, Operation, Verdict
from commtune.tuner.outcome.detectability import describe_detectability

if TYPE_CHECKING:
    from commtune.app.profiles.nominal_share import Share


_Row = TypeVar("_Row")

#: Answers that are read before any is told: as many as the service tells.
_FIRST_PART = 5
#: Candidates whose questions are looked at first; more than the first part has.
_NEWEST = 6
#: What tells questions apart without reading an answer; ``_question`` tells more of them apart.
_QUESTION = itemgetter("system_id", "stack_id", "backend", "ranks", "nodes")


class Support(StrEnum):
    """What an answer about a size rests on; these are the codes of ``--json``."""

    MEASURED = "measured"
    AGREE = "neighbours-agree"
    DISAGREE = "neighbours-disagree"

    @classmethod
    def of(cls, neighbours: Iterable[BestRow]) -> Support:
        """Judges by the answers at the measured sizes next to it; none: it was measured itself."""
        used = {row.configuration for row in neighbours}
        return (cls.MEASURED, cls.AGREE, cls.DISAGREE)[min(len(used), 2)]


def best_at_size(
    operation: str,
    size: int,
    filters: Mapping[str, Any],
    *,
    stack: str | None = None,
    db: str | None = None,
) -> Iterator[BestRow]:
    """Answers to what is best at a size in bytes, the one to take first.

    They are read while they are taken: who needs the first ones doesn't wait for all.

    Args:
        filters: nodes, ranks, system (part of its name, or its fingerprint), backend and campaign
            that are asked for, and how many pairs, days and sessions at least (``min_pairs``,
            ``min_days``, ``min_sessions``); ``None`` for any.
        stack: part of the software's text, or its fingerprint; ``None`` for any.

    Raises:
        NoAnswer: there is none; the hint says what there is.
        DatabaseFault: the database can't be read.
    """
    with open_for_reading(database_url(db)) as rows:
        is_cut = stack is None
        newest = _NEWEST if is_cut else None
        found = find_candidates(rows, operation, size, filters, newest=newest)
        if stack is not None:
            known = find_stacks(rows, stack)
            found = [row for row in found if row["stack_id"] in known]
        # Newest first, as they were found.
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
    """The first answer at every size (bytes) that was measured or ends a profile's range.

    Raises:
        NoAnswer: nothing is known of the operation; the hint says what there is.
        DatabaseFault: the database can't be read.
    """
    sizes = measured_sizes(database_url(db), operation, filters["campaign"])
    answers = {}
    for size in sizes:
        try:
            found = best_at_size(operation, size, filters, db=db)
            first = next((row for row in found if row.nearest_bytes in {size, None}), None)
        except NoAnswer:  # only measured on another machine, or backend, than asked for
            continue
        if first is not None:
            answers[size] = first
    if not answers:
        next(best_at_size(operation, max(sizes, default=0), filters, db=db))  # says what there is
    return answers


def find_neighbours(row: BestRow, size: int, db: str | None) -> dict[int, BestRow]:
    """What an answer's campaign says at the measured sizes below and above one in bytes.

    Empty where it measured that size itself.
    """
    if row.nearest_bytes == size:
        return {}
    known = measured_sizes(database_url(db), row.operation, row.campaign)
    place = bisect(known, size)
    if size in known or not 0 < place < len(known):
        return {}
    filters = {"campaign": row.campaign, "ranks": row.ranks, "nodes": row.nodes}
    return {
        near: next(best_at_size(row.operation, near, filters, db=db))
        for near in known[place - 1 :][:2]
    }


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
    from commtune.app.profiles.nominal_share import Share

    return Share.of_answer(row, stored, db)


def why_inconclusive(row: BestRow, size: int, db: str | None) -> str:
    """How large a speedup could have been missed at the size, or the nearest measured one."""
    # A profile's own note is of its whole range, and so of the size at which least is known: it
    # stands in only where nothing is known of the size itself.
    if row.verdict != Verdict.UNDECIDED:
        return ""
    from commtune.db.queries.description import detectable_gains

    found = detectable_gains(database_url(db), row.campaign)
    nearest = row.nearest_bytes
    if nearest is None:  # no candidate was compared here
        inside = [known for known in found if row.bytes_low <= known <= row.bytes_high]
        nearest = min(inside, key=lambda known: size_distance(known, size), default=None)
    why = ""
    if nearest is not None:
        why = describe_detectability((nearest,), row.points, row.minimum_gain, found)
    return why or row.note or "too little evidence"


def likely_instead(row: BestRow, db: str | None) -> ProfileAnswer | None:
    """A profile of the answer's campaign with a speedup that is likely there, and not proven."""
    if row.verdict != Verdict.UNDECIDED or row.nearest_bytes is None:
        return None
    url, size = database_url(db), row.nearest_bytes
    for one in find_profiles(url, row.campaign):
        if one.verdict == Verdict.LIKELY and one.bytes_low <= size <= one.bytes_high:
            return load_profile(url, str(one.id))
    return None


def _rank_answers(rows: Iterable[BestRow], size: int, unread: float) -> list[BestRow]:
    """Answers about a size in bytes, the one to give first; those that nothing can come before.

    First by ``_class``. Of answers to different questions (another machine, software, number of
    ranks, ...) the newest question, as one gain says nothing of the other. Of answers to the same
    one: a gain that was shown before one that was ruled out, since that was done for the
    candidates of its own campaign only; then as ``_rank_campaigns`` says.

    Args:
        rows: of each question (``_QUESTION``) all or none.
        unread: when the newest answer was stored that is none of them, seconds since 1970.
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
    """What an answer is, before anybody looks at what it says.

    Measured before simulated; by itself and between real nodes before beside an aggressor or
    between emulated ones; the native benchmark before a user's own; decided before undecided.
    """
    return (
        row.simulated,
        not row.conditions.are_usual,
        _nativeness(row),
        not row.standing.is_decided,
    )


#: That of a decided answer by the native benchmark: no answer comes before those of it.
_BEST_CLASS = (False, False, 0, False)


def _nativeness(row: BestRow) -> int:
    """The native benchmark, that in Python, and users' commands."""
    own = row.workload.get("own") or {}
    if row.backend == Backend.COMMAND or own.get("command"):
        return 2
    return int(row.backend in (Backend.PYTHON_HOST, Backend.PYTHON_DEVICE))


def _question(row: BestRow) -> Hashable:
    """What was measured where: answers with the same can be held against each other."""
    # The workload says it; the name of a matrix's file is no part of the question.
    conditions = replace(row.conditions, pattern="")
    measured = {name: value for name, value in row.workload.items() if name != "sizes"}
    where = (row.system_fingerprint, row.stack_fingerprint, row.backend, row.ranks, row.nodes)
    return (*where, conditions, repr(sorted(measured.items())))


def _rank_campaigns(rows: Iterable[BestRow], size: int) -> list[BestRow]:
    """Answers to one question: campaign by campaign, of each the narrowest range first."""
    # Of campaigns, the one that measured nearest to the size that was asked for; then the surest
    # gain, as `status` has it; then the newest.
    # A profile made for a narrow range is surer at a size than one for all sizes.
    narrowest = sorted(rows, key=lambda row: (row.bytes_high - row.bytes_low, -row.created))
    campaigns = _group(narrowest, lambda row: (row.standing, row.campaign))

    def preference(same: list[BestRow]) -> tuple[bool, float, float, float]:
        first = same[0]
        gains = first.standing is Standing.GAIN
        surest = max((point.gain.low for point in first.sure_points), default=0.0)
        nearest = first.nearest_bytes
        apart = math.inf if nearest is None else size_distance(nearest, size)
        return (not gains, apart, -surest if gains else 0.0, -first.created)

    return [row for same in sorted(campaigns.values(), key=preference) for row in same]
