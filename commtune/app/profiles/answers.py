"""Answers which configuration is best, as plain data for ``best --json`` and the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from commtune.app.profiles.best import (
    BestRow,
    best_at_size,
    best_by_size,
    find_neighbours,
    nominal_share_of,
    why_default_stays,
)
from commtune.app.profiles.explained import (
    Answer,
    Explained,
    LikelyProfile,
    Neighbour,
    row_data,
)
from commtune.db.connection.location import database_url, is_service
from commtune.db.connection.reader import keep_open
from commtune.db.queries.profiles import find_profiles, load_profile, load_strength
from commtune.errors import NoAnswer
from commtune.model import Operation, Verdict
from commtune.wording import suggest_verification

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
    near = find_neighbours(row, size, db)
    return Explained(
        row,
        why_default_stays(row, size, db),
        load_strength(db, row.id),
        tuple(Neighbour(at, one, why_default_stays(one, at, db)) for at, one in near.items()),
        _likely_instead(row, db),
        nominal_share_of(row, db),
    )


def _likely_instead(row: BestRow, db: str | None) -> LikelyProfile | None:
    """Returns a profile of the answer's campaign with a likely, unproven speedup at its size."""
    if row.verdict != Verdict.UNDECIDED or row.nearest_bytes is None:
        return None
    for line in find_profiles(db, row.campaign):
        if (
            line.verdict == Verdict.LIKELY
            and line.bytes_low <= row.nearest_bytes <= line.bytes_high
        ):
            found = load_profile(db, str(line.id))
            one = found.profile
            return LikelyProfile(found.reference, one.configuration, one.points, one.note)
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
