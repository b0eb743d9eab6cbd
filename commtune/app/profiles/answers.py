"""Answers which configuration is best, as plain data for ``best --json`` and the HTTP API.

``commtune best`` takes a tenth of a second, so slow modules are imported only where needed.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from commtune.app.profiles.best import BestRow, best_at_size, best_by_size
from commtune.app.profiles.explained import Answer, Explained, LikelyProfile, Neighbour, row_data
from commtune.db.connection.location import database_url, is_service
from commtune.db.connection.reader import keep_open
from commtune.db.queries.best import measured_sizes, size_distance
from commtune.db.queries.profiles import find_profiles, load_profile, load_strength, load_tail
from commtune.errors import NoAnswer
from commtune.model import Backend, Operation, Verdict
from commtune.tuner.outcome.detectability import describe_detectability
from commtune.wording import suggest_verification

if TYPE_CHECKING:
    from commtune.app.profiles.nominal_share import Share

#: The most answers to a question; further ones are of other machines, ranks or software.
MOST_ANSWERS = 5


def best_answers(
    operation: str,
    size: int,
    filters: Mapping[str, Any],
    db: str | None = None,
    *,
    stack: str | None = None,
    explained: int = 1,
    most: int | None = None,
) -> tuple[list[Explained], list[BestRow]]:
    """Returns the first answers with their explanations, and the others without.

    There are none if only another software was measured.

    Args:
        size: message size, bytes.
        filters, stack: as for ``best_at_size``; a service is asked without ``stack``.
        explained, most: the number of answers with explanations, and of all.

    Raises:
        NoAnswer: there is none; the hint lists what there is.
    """
    if is_service(url := database_url(db)):
        from commtune.app.profiles import remote_answers

        return remote_answers.best_answers(url, operation, size, filters, explained=explained)
    with keep_open(db):
        rows = list(islice(best_at_size(operation, size, filters, stack=stack, db=db), most))
        return [_explain(row, size, db) for row in rows[:explained]], rows[explained:]


def size_table(
    operation: Operation, filters: Mapping[str, Any], db: str | None = None
) -> dict[int, Explained]:
    """Returns the best answer at every measured size (bytes).

    Raises:
        NoAnswer: there is none for the operation; the hint lists what there is.
    """
    if is_service(url := database_url(db)):
        from commtune.app.profiles import remote_answers

        return remote_answers.size_table(url, operation, filters)
    with keep_open(db):
        table = best_by_size(operation, filters, db=db)
        return {size: _explain(row, size, db) for size, row in table.items()}


def _explain(row: BestRow, size: int, db: str | None) -> Explained:
    near = _find_neighbours(row, size, db)
    return Explained(
        row,
        _why_default_stays(row, size, db),
        load_strength(db, row.id),
        tuple(Neighbour(at, one, _why_default_stays(one, at, db)) for at, one in near.items()),
        _likely_instead(row, db),
        _nominal_share_of(row, db),
        tail=load_tail(db, row.id, row.nearest_bytes),
    )


def _find_neighbours(row: BestRow, size: int, db: str | None) -> dict[int, BestRow]:
    """Returns the answers of a campaign at the measured sizes below and above a size (bytes).

    It is empty if the campaign measured that size.
    """
    if row.nearest_bytes == size:
        return {}
    known = measured_sizes(db, row.operation, row.campaign)
    place = bisect(known, size)
    if size in known or not 0 < place < len(known):
        return {}
    filters = {"campaign": row.campaign, "ranks": row.ranks, "nodes": row.nodes}
    return {
        near: next(best_at_size(row.operation, near, filters, db=db))
        for near in known[place - 1 :][:2]
    }


def _nominal_share_of(row: BestRow, db: str | None) -> Share | None:
    """Returns the share of the nominal bandwidth that an answer reaches; ``None`` if unknown."""
    # Host memory on one node has no nominal bandwidth, and its models are slow to import.
    on_host = row.backend == Backend.MPI_HOST
    if row.simulated or (on_host and row.nodes == 1):
        return None
    from commtune.db.queries.description import describe_campaign

    stored = describe_campaign(db, row.campaign)
    if on_host and "fabric" not in stored.settings:
        return None
    from commtune.app.profiles.nominal_share import Share

    return Share.of_answer(row, stored, db)


def _why_default_stays(row: BestRow, size: int, db: str | None) -> str:
    """Returns why the default stays at a size (bytes) without a speedup being ruled out there.

    That is how large a speedup may have been missed there, or at the nearest size; or, of a
    profile that was withdrawn, its note.
    """
    if row.verdict == Verdict.WITHDRAWN:
        return f"{row.campaign}/{row.name} was withdrawn: {row.note}"
    # A profile's note is about its whole range, and so about the size with the least evidence. It
    # is used only if there is no figure for the size itself.
    if row.verdict != Verdict.UNDECIDED:
        return ""
    from commtune.db.queries.description import detectable_gains

    found = detectable_gains(db, row.campaign)
    nearest = row.nearest_bytes
    if nearest is None:  # no candidate was compared here
        inside = [known for known in found if row.bytes_low <= known <= row.bytes_high]
        nearest = min(inside, key=lambda known: size_distance(known, size), default=None)
    why = ""
    if nearest is not None:
        why = describe_detectability((nearest,), row.points, row.minimum_gain, found)
    return why or row.note or "too little evidence"


def _likely_instead(row: BestRow, db: str | None) -> LikelyProfile | None:
    """Returns a profile of the answer's campaign with a likely, unproven speedup at its size."""
    if row.verdict != Verdict.UNDECIDED or row.nearest_bytes is None:
        return None
    for line in find_profiles(db, row.campaign):
        if (
            line.verdict == Verdict.LIKELY
            and line.bytes_low <= row.nearest_bytes <= line.bytes_high
        ):
            found = load_profile(db, str(line.id), with_details=False)
            one = found.profile
            return LikelyProfile(
                found.reference, one.configuration, one.points, one.note, one.tails
            )
    return None


def size_table_data(table: Mapping[int, Explained]) -> list[dict[str, Any]]:
    """Returns a table of sizes as JSON data."""
    return [one.plain() | {"bytes": size} for size, one in table.items()]


def answer_question(
    operation: Operation,
    size: int,
    filters: Mapping[str, Any],
    *,
    stack: str | None = None,
    db: str | None = None,
    explained: int = 1,
) -> dict[str, Any]:
    """Returns the answer to a question as JSON data, with its evidence and further answers.

    ``environment`` has the variables to set; it is empty unless the answer is ``recommended`` and
    was measured on a real machine. Without a measurement, the answer is ``not-measured``.

    Args:
        size, filters, explained: as for ``best_answers``.
        stack: part of the software's text, or its fingerprint; ``None`` for any.
    """
    try:
        with keep_open(db):
            answers, others = best_answers(
                operation, size, filters, db, stack=stack, explained=explained, most=MOST_ANSWERS
            )
            if not answers:
                return _with_other_stacks(best_at_size(operation, size, filters, db=db), stack)
    except NoAnswer as nothing:
        return not_measured(nothing)
    best, row = answers[0], answers[0].row
    is_withdrawn = row.verdict == Verdict.WITHDRAWN
    use = "use profile " if best.code is Answer.RECOMMENDED else ""
    told = best.plain()
    return {
        "answer": best.code,
        "message": f"{use}{best.message}",
        "hint": suggest_verification(row.campaign, row.name) if is_withdrawn else "",
        "environment": told["environment"],
        "best": told,
        "others": [*(one.plain() for one in answers[1:]), *map(row_data, others)],
    }


def _with_other_stacks(found: Iterable[BestRow], stack: str | None) -> dict[str, Any]:
    """Returns the answer to a question that was measured with other software only."""
    rows = list(islice(found, MOST_ANSWERS))
    known = ", ".join(dict.fromkeys(row.stack for row in rows))
    hint = f"measured with: {known}; commtune verify measures a profile again"
    said = not_measured(NoAnswer(f"not measured with {stack}", hint=hint))
    return said | {"answer": Answer.ANOTHER_STACK, "others": [row_data(row) for row in rows]}


def not_measured(nothing: NoAnswer) -> dict[str, Any]:
    """Returns the answer to a question without measurements, as JSON data."""
    said = {"answer": Answer.NOT_MEASURED, "message": nothing.message, "hint": nothing.hint}
    return {**said, "environment": {}, "best": None, "others": []}
