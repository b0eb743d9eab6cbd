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
from commtune.wording import describe_verdict, suggest_verification

#: The most answers to a question; further ones are of other machines, ranks or software.
MOST_ANSWERS = 5


def best_answers(
    operation: str,
    size: int,
    filters: Mapping[str, Any],
    db: str | None = None,
    *,
    explained: int = 1,
) -> tuple[list[Explained], list[BestRow]]:
    """Returns the first answers with their explanations, and the others without.

    Args:
        size: message size, bytes.
        filters: as for ``best_at_size``.
        explained: the number of answers with explanations.

    Raises:
        NoAnswer: there is none; the hint lists what there is.
    """
    if is_service(url := database_url(db)):
        from commtune.app.profiles import remote_answers

        return remote_answers.best_answers(url, operation, size, filters, explained=explained)
    with keep_open(db):
        rows = list(best_at_size(operation, size, filters, db=db))
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
            op = str(operation)
            found = best_at_size(op, size, filters, stack=stack, db=db)
            rows = list(islice(found, MOST_ANSWERS))
            if not rows:
                return _with_other_stacks(best_at_size(op, size, filters, db=db), stack)
            shown = [_explain(row, size, db).plain() for row in rows[:explained]]
    except NoAnswer as nothing:
        return not_measured(nothing)
    best, is_withdrawn = rows[0], rows[0].verdict == Verdict.WITHDRAWN
    first, *others = [*shown, *(row_data(row) for row in rows[explained:])]
    return {
        "answer": first["answer"],
        "message": _message(rows[0], first),
        "hint": suggest_verification(best.campaign, best.name) if is_withdrawn else "",
        "environment": first["environment"],
        "best": first,
        "others": others,
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


def _message(row: BestRow, told: Mapping[str, Any]) -> str:
    if told["answer"] == Answer.RECOMMENDED:
        return f"use profile {row.campaign}/{row.name}"
    if told["answer"] == Answer.NEIGHBOURS_DISAGREE:
        return "not measured; the neighbours disagree"
    ruled_out = describe_verdict(Verdict.DEFAULT)
    why = ruled_out if told["reason"] == "ruled-out" else told["why"]
    return f"keep the default ({why})"
