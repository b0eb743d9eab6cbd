"""The first answers are found without reading all of them, and are the same ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import database_values as given
import pytest
import query_speed
from best_rows import best_profiles
from stores import opened_store

from commtune.app.profiles import best
from commtune.db.connection import reader
from commtune.db.records import BestRow, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.errors import NoAnswer
from commtune.model import (
    DEFAULT,
    Backend,
    Conditions,
    Configuration,
    Interval,
    Operation,
    PointEvidence,
    Profile,
    Verdict,
    Workload,
)
from commtune.service import api

SIZES = tuple(1 << power for power in range(3, 21))
CAMPAIGNS, QUESTIONS = 60, 80


def made_profile(pick: random.Random, number: int, sizes: tuple[int, ...]) -> Profile:
    """Some finding about some sizes; what is only likely and guards among them."""
    verdict = pick.choice(list(Verdict))
    low = pick.uniform(0.8, 1.6)
    points = tuple(
        PointEvidence(
            "allreduce", size, speed, 2e-5, 1e-5,
            Interval(low * 1.1, low, low * pick.uniform(1.11, 1.4), pick.randint(3, 30)), verdict,
        )
        for size in sizes for speed in pick.choice([("all",), ("fast", "slow"), ("all", "fast")])
    )  # fmt: skip
    return given.profile(
        f"p{number}-{sizes[0]}", operation="allreduce", verdict=verdict, points=points,
        backend=pick.choice([Backend.MPI_HOST] * 3 + [Backend.PYTHON_HOST]),
        ranks=pick.choice((2, 4)), nodes=pick.choice((1, 2)), bytes_low=sizes[0],
        bytes_high=pick.choice((sizes[-1], 2 * sizes[-1] - 1)),
        configuration=Configuration({"A": str(number)}) if verdict is Verdict.FASTER else DEFAULT,
        conditions=pick.choice([Conditions()] * 5 + [Conditions(beside="alltoall")]),
        simulated=pick.random() < 0.1,
    )  # fmt: skip


def fill(store: Store) -> None:
    """Campaigns of all kinds: several machines, software, ranges with and without gaps."""
    pick = random.Random(20261124)
    for number in range(CAMPAIGNS):
        at, profiles = 0, []
        while at < len(SIZES):
            length = pick.randint(1, 6)
            if sizes := SIZES[at : at + length]:
                profiles.append(made_profile(pick, number, sizes))
            at += length + pick.choice((0, 0, 1, 2))
        machine, software = pick.randrange(3), pick.randrange(3)
        workload = Workload(Operation.ALLREDUCE, SIZES, ranks=pick.choice((2, 4)))
        record = given.campaign(
            f"c{number}",
            what={"workload": workload.plain()},
            space={"name": "mpich-shm", "pinned": {"PINNED": str(number)}},
            system=SystemRecord(f"sys-{machine}", f"machine-{machine}"),
            stack=StackRecord(f"stack-{software}", f"MPICH 4.{software}"),
        )
        store.save_profiles(store.open_campaign(record).id, profiles)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('many')}/commtune.db"
    with opened_store(url) as store:
        fill(store)
    return url


def questions() -> Iterator[tuple[int, dict[str, Any]]]:
    """Sizes that were measured and others, with some of the conditions."""
    pick = random.Random(7)
    for _ in range(QUESTIONS):
        size = pick.choice([pick.choice(SIZES), pick.randint(1, 1 << 21)])
        known = {
            "system": ("machine-1", "sys-0"), "ranks": (2, 4, 8), "nodes": (1, 2),
            "backend": (Backend.MPI_HOST, Backend.PYTHON_HOST), "campaign": ("c3", "c99"),
            "min_pairs": (2, 10),
        }  # fmt: skip
        asked = pick.sample(list(known), pick.choice((0, 0, 1, 2)))
        yield size, {name: pick.choice(known[name]) for name in asked}


def all_answers(size: int, url: str, asked: dict[str, Any]) -> list[BestRow]:
    """All that is stored, ranked at once."""
    return best._rank_answers(best_profiles(url, "allreduce", size, **asked), size, -math.inf)


@pytest.mark.parametrize("part", [1, 10])
def test_answers_in_parts_are_those_of_all_at_once(
    url: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best, "_FIRST_PART", part)
    answered = 0
    for size, asked in questions():
        try:
            found = all_answers(size, url, asked)
        except NoAnswer as nothing:
            with pytest.raises(NoAnswer) as refusal:
                next(best.best_at_size("allreduce", size, asked, db=url))
            assert refusal.value.message == nothing.message
            continue
        answered += 1
        assert list(best.best_at_size("allreduce", size, asked, db=url)) == found
        of_stack = [row for row in found if "4.1" in row.stack]
        assert (
            list(best.best_at_size("allreduce", size, asked, stack="mpich 4.1", db=url))
            == of_stack
        )
    assert answered > QUESTIONS / 2


def count_rows(url: str, monkeypatch: pytest.MonkeyPatch, **asked: str) -> Counter[str]:
    """What a question over HTTP reads, in rows by the columns that they have."""
    counted: Counter[str] = Counter()
    ask = reader._ask

    def counting(connection: Any, statement: str, given: Any) -> list[dict[str, Any]]:
        found = ask(connection, statement, given)
        counted.update(" ".join(row) for row in found)
        return found

    with monkeypatch.context() as watched:
        watched.setattr(reader, "_ask", counting)
        (question,) = (one for one in api.QUESTIONS if one.path == "/best")
        assert api.answer_request(question, url, {}, list(asked.items())).status == 200
    for column in ("name", "version_num"):  # of the schema
        del counted[column]
    return counted


@pytest.mark.slow
def test_a_question_reads_as_much_of_a_large_database_as_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any system: where each campaign decided something, the newest ones are enough."""
    read = []
    for campaigns in (80, 240):
        path = tmp_path / f"{campaigns}.db"
        query_speed.fill(f"sqlite:///{path}", campaigns * len(query_speed.SIZES), runs=1)
        url = f"sqlite:///{path}"
        read.append(count_rows(url, monkeypatch, operation="allreduce", bytes="64KiB"))
    small, large = read
    assert large == small
    # Five answers with two points each, what tells that they are the ones, and what the first
    # rests on and has beside its speedup.
    assert sorted(large.values()) == [1, 1, 5, 5, 6, 10]
