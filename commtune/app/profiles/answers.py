"""Answers to "what is best" as plain data: what ``best --json`` and the HTTP API give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from commtune.app.profiles.best import (
    BestRow,
    Standing,
    Support,
    best,
    best_by_size,
    find_neighbours,
    likely_instead,
    nominal_share_of,
    why_inconclusive,
)
from commtune.db.connection.location import database_url
from commtune.db.connection.reader import keep_open
from commtune.db.queries.profiles import load_profile
from commtune.errors import NoAnswer
from commtune.model import Operation, PointEvidence, Verdict

#: Answers to one question that are told: more are of other machines, ranks or software.
MOST_ANSWERS = 10


class Answer(StrEnum):
    """What to do, as a code."""

    RECOMMENDED = "recommended"
    KEEP_DEFAULT = "keep-default"
    LIKELY = "likely"
    NOT_MEASURED = "not-measured"
    NEIGHBOURS_DISAGREE = "neighbours-disagree"
    ANOTHER_STACK = "another-stack"


def answer_data(row: BestRow, size: int, db: str | None) -> dict[str, Any]:
    """One answer with its evidence and all that explains it.

    ``answer`` is a code of ``Answer``; ``reason`` says why the default stays: ``ruled-out`` or
    ``inconclusive``, with ``why`` in words.

    Args:
        size: what was asked for, bytes.
    """
    neighbours = find_neighbours(row, size, db)
    support = Support.of(neighbours)
    likely = _likely_data(row, db)
    share = nominal_share_of(row, db)
    answer = _answer_code(row, support, is_likely=likely is not None)
    stays = answer in (Answer.KEEP_DEFAULT, Answer.LIKELY)
    return {
        "answer": answer,
        "reason": _reason(row) if stays else "",
        **row_data(row),
        "why": why_inconclusive(row, size, db),
        "likely": likely,
        "of_nominal": share.plain() if share else None,
        "support": support,
        "neighbours": [row_data(one) for one in neighbours.values()],
    }


def row_data(row: BestRow) -> dict[str, Any]:
    """An answer with its evidence alone."""
    return {
        **{name: getattr(row, name) for name in row.__dataclass_fields__},
        "configuration": dict(row.configuration),
        "conditions": dict(vars(row.conditions)),
        "finding": row.standing,
        "points": [_point_data(point) for point in row.points],
    }


def size_table_data(
    operation: Operation, filters: Mapping[str, Any], db: str | None = None
) -> list[dict[str, Any]]:
    """The first answer at every size that is known, in bytes.

    Raises:
        NoAnswer: nothing is known of the operation; the hint says what there is.
    """
    with keep_open(database_url(db)):
        table = best_by_size(operation, filters, db=db)
        return [answer_data(row, size, db) | {"bytes": size} for size, row in table.items()]


def answer_question(
    operation: Operation,
    size: int,
    filters: Mapping[str, Any],
    *,
    stack: str | None = None,
    db: str | None = None,
) -> dict[str, Any]:
    """The answer as a code, what to set, the evidence, and further answers.

    ``environment`` holds what to set; it is empty unless the answer is ``recommended`` and was
    measured on a real machine. A question that nothing answers is answered too, by its code.

    Args:
        size: bytes.
        filters: as for ``best``.
        stack: part of the software's text, or its fingerprint; ``None`` for any.
    """
    try:
        with keep_open(database_url(db)):
            return _answer(best(str(operation), size, filters, db=db), size, stack, db)
    except NoAnswer as nothing:
        return _without_answer(Answer.NOT_MEASURED, nothing.message, nothing.hint)


def _answer(
    rows: Sequence[BestRow], size: int, stack: str | None, db: str | None
) -> dict[str, Any]:
    fitting = [row for row in rows if stack is None or _is_of_stack(row, stack)]
    if stack is not None and not fitting:
        known = ", ".join(dict.fromkeys(row.stack for row in rows[:MOST_ANSWERS]))
        said = _without_answer(
            Answer.ANOTHER_STACK,
            f"not measured with {stack}",
            f"measured with: {known}; commtune verify measures a profile again",
        )
        return said | {"others": [row_data(row) for row in rows[:MOST_ANSWERS]]}
    first = answer_data(fitting[0], size, db)
    return {
        "answer": first["answer"],
        "message": _message(fitting[0], first),
        "hint": "",
        "environment": _environment(fitting[0], first["answer"], db),
        "best": first,
        "others": [row_data(row) for row in fitting[1:MOST_ANSWERS]],
    }


def _without_answer(answer: Answer, message: str, hint: str) -> dict[str, Any]:
    return {
        "answer": answer,
        "message": message,
        "hint": hint,
        "environment": {},
        "best": None,
        "others": [],
    }


def _message(row: BestRow, told: Mapping[str, Any]) -> str:
    if told["answer"] == Answer.RECOMMENDED:
        return f"use profile {row.campaign}/{row.name}"
    if told["answer"] == Answer.NEIGHBOURS_DISAGREE:
        return "not measured; the neighbours disagree"
    why = "a speedup was ruled out" if told["reason"] == "ruled-out" else told["why"]
    return f"keep the default ({why})"


def _environment(row: BestRow, answer: Answer, db: str | None) -> dict[str, str]:
    if answer is not Answer.RECOMMENDED or row.simulated:
        return {}
    return {**load_profile(database_url(db), str(row.id)).pinned, **row.configuration}


def _is_of_stack(row: BestRow, stack: str) -> bool:
    return stack == row.stack_fingerprint or stack.lower() in row.stack.lower()


def _answer_code(row: BestRow, support: Support, *, is_likely: bool) -> Answer:
    if support is Support.DISAGREE:
        return Answer.NEIGHBOURS_DISAGREE
    if row.verdict == Verdict.FASTER:
        return Answer.RECOMMENDED
    return Answer.LIKELY if is_likely else Answer.KEEP_DEFAULT


def _reason(row: BestRow) -> str:
    return "ruled-out" if row.standing is Standing.NONE else "inconclusive"


def _likely_data(row: BestRow, db: str | None) -> dict[str, Any] | None:
    found = likely_instead(row, db)
    if found is None:
        return None
    return {
        "profile": f"{found.campaign}/{found.profile.name}",
        "configuration": dict(found.profile.configuration),
        "points": [_point_data(point) for point in found.profile.points],
        "note": found.profile.note,
    }


def _point_data(point: PointEvidence) -> dict[str, Any]:
    # What asdict makes, in a tenth of its time: answers have dozens of these.
    return {**vars(point), "gain": dict(vars(point.gain))}
