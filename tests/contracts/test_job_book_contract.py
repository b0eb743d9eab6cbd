"""One suite of laws over every book of a campaign's jobs (see ``tuner.ports.JobBook``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import database_values as given
import pytest
from played_jobs import MemoryBook
from stores import opened_store

from commtune.model import JobStage
from commtune.tuner.ports import JobBook

#: Opens the book of one campaign, as every process that works on it does.
Opening = Callable[[], JobBook]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def opening(request: pytest.FixtureRequest) -> Iterator[Opening]:
    if request.param == "memory":
        book = MemoryBook()
        yield lambda: book
        return
    url = request.getfixturevalue("postgresql_url" if request.param == "postgresql" else "url")
    with ExitStack() as opened:

        def open_book() -> JobBook:
            store = opened.enter_context(opened_store(url))
            return store.job_book(store.open_campaign(given.campaign()).id)

        yield open_book


@pytest.fixture
def book(opening: Opening) -> JobBook:
    return opening()


def test_a_new_book_is_empty(book: JobBook) -> None:
    assert (list(book.open_jobs()), book.node_hours()) == ([], 0.0)


def test_what_was_put_last_of_a_key_counts(book: JobBook) -> None:
    submitted = replace(given.job(), stage=JobStage.SUBMITTED, number="4711", nodes="n[1-2]")
    for job in (given.job(), given.job(), submitted):
        book.put_job(job)
    assert list(book.open_jobs()) == [submitted]


def test_jobs_that_are_not_over_come_in_the_order_they_were_prepared(book: JobBook) -> None:
    later, earlier = given.job("a-later", prepared_at=9.0), given.job("earlier", prepared_at=5.0)
    for job in (later, given.job("over", stage=JobStage.OVER), earlier):
        book.put_job(job)
    assert list(book.open_jobs()) == [earlier, later]
    book.put_job(replace(earlier, stage=JobStage.OVER))
    assert list(book.open_jobs()) == [later]


def test_node_hours_are_those_of_jobs_that_are_over_and_under_way(book: JobBook) -> None:
    running = given.job("running", stage=JobStage.SUBMITTED, node_hours=0.5)
    for job in (given.job("over", stage=JobStage.OVER, node_hours=1.25), running):
        book.put_job(job)
    assert book.node_hours() == 1.75
    book.put_job(replace(running, node_hours=0.75))
    assert book.node_hours() == 2.0


def test_what_put_job_returned_from_survives_the_process(opening: Opening) -> None:
    opening().put_job(given.job(node_hours=0.5))
    again = opening()
    assert (list(again.open_jobs()), again.node_hours()) == ([given.job(node_hours=0.5)], 0.5)
