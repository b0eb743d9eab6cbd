"""Reads answers which configuration is best from a service instead of a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commtune.app.profiles.explained import Answer, Explained, LikelyProfile, Neighbour
from commtune.app.profiles.nominal_share import Share
from commtune.db.connection.service import ask_service
from commtune.db.records import BestRow
from commtune.db.remote import load_answer, read_answer
from commtune.errors import NoAnswer
from commtune.model import Operation, Strength, Tail
from commtune.systems.nominal.collectives import Nominal


def best_answers(
    url: str, operation: str, size: int, filters: Mapping[str, Any], *, explained: int
) -> tuple[list[Explained], list[BestRow]]:
    """Returns the same as ``answers.best_answers``."""
    every = "explained" if explained > 1 else None
    asked = {"operation": str(operation), "bytes": size, "others": every, **filters}
    told = ask_service(url, "/best", **asked)

    def read() -> tuple[list[Explained], list[BestRow]]:
        if told["answer"] == Answer.NOT_MEASURED:
            raise NoAnswer(told["message"], hint=told["hint"])
        rows = [told["best"], *told["others"]]
        shown = [_explained(one) for one in rows[:explained]]
        return shown, [load_answer(BestRow, one) for one in rows[explained:]]

    return read_answer(url, read)


def size_table(url: str, operation: Operation, filters: Mapping[str, Any]) -> dict[int, Explained]:
    """Returns the same as ``answers.size_table``."""
    told = ask_service(url, "/best", operation=str(operation), **filters)

    def read() -> dict[int, Explained]:
        if not told["sizes"]:
            raise NoAnswer(told["message"], hint=told["hint"])
        return {int(one["bytes"]): _explained(one) for one in told["sizes"]}

    return read_answer(url, read)


def _explained(told: Mapping[str, Any]) -> Explained:
    likely = told["likely"]
    return Explained(
        load_answer(BestRow, told),
        str(told["why"]),
        load_answer(Strength, told["strength"]),
        tuple(
            Neighbour(int(one["bytes"]), load_answer(BestRow, one), str(one["why"]))
            for one in told["neighbours"]
        ),
        None if likely is None else load_answer(LikelyProfile, likely),
        None if told["of_nominal"] is None else _share(told["of_nominal"]),
        tail=None if told["tail"] is None else load_answer(Tail, told["tail"]),
    )


def _share(told: Mapping[str, Any]) -> Share:
    nominal = load_answer(Nominal, {**told, "bytes_per_s": told["nominal_Bps"]})
    return Share(float(told["share"]), nominal)
