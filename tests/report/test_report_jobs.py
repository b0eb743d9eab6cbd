"""What a report says of jobs, nodes, and runs that were lost to something else."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import database_values as given
import pytest
from report_words import render_words, words_of
from sqlalchemy import select, update
from stored_campaigns import Made

from commtune import formatting
from commtune.db.checked_columns import sound_rows
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.db.tables import CAMPAIGNS
from commtune.model import DEFAULT, Aggressor, AggressorPattern, JobKind, JobStage, Outcome
from commtune.report import timeline
from commtune.report.page import Page
from commtune.report.record import ReportedCampaign, read_record
from commtune.report.timeline import scheduler_share


def campaign(store: Store, **settings: Any) -> int:
    """A campaign of a few runs on this machine."""
    campaign_id = Made(trials=5, blocks=7, loaded=0.0).store(store)
    with store.database.write() as connection:
        connection.execute(update(CAMPAIGNS).values(settings=settings))
    return campaign_id


def run(store: Store, campaign_id: int, name: str, **result: Any) -> None:
    """One more run, of the default."""
    request = replace(given.request(name), configuration=DEFAULT, trial=0, block=900)
    given.add_run(store, campaign_id, request, "another session", **result)


def recorded(store: Store, url: str) -> ReportedCampaign:
    """All of the campaign."""
    return read_record(store, url, describe_campaign(url, "made-up"))


def test_a_campaign_on_this_machine_has_no_jobs(store: Store, url: str) -> None:
    campaign(store, node_hours=64)
    record = recorded(store, url)
    assert scheduler_share(record) is None and Page(record).losses == []
    page = render_words(Page(record))
    assert "Jobs and node-hours" not in page and 'href="#jobs"' not in page
    assert "that were lost" not in page


@pytest.mark.slow
def test_noise_on_purpose_is_said_with_what_it_was(store: Store, url: str) -> None:
    campaign_id = campaign(store)
    assert recorded(store, url).beside == ""
    assert "Beside" not in words_of(Page(recorded(store, url)))
    plain = Aggressor(AggressorPattern.INCAST, 2).plain()
    with store.database.write() as connection:
        (stored,) = sound_rows(connection, select(CAMPAIGNS.c.what), "campaigns")
        connection.execute(update(CAMPAIGNS).values(what={**stored.what, "aggressor": plain}))
    words = "Beside an aggressor: incast of 128 KiB from 2 ranks on 2 nodes"
    assert f"{words}. Speedups are" in words_of(Page(recorded(store, url)))
    for number, rate in enumerate((11.1234, 0.9)):
        run(store, campaign_id, f"n{number}", header={"beside": {"gigabits_per_s": rate}})
    assert f"{words}; it sent 0.9 to 11.1 Gb/s during the runs" in words_of(
        Page(recorded(store, url))
    )


def test_lost_runs_are_apart_from_failed_ones(store: Store, url: str) -> None:
    campaign_id = campaign(store)
    before = recorded(store, url)
    run(store, campaign_id, "a", outcome=Outcome.NODE_FAILURE, wall_s=3.0, detail="n7 is gone")
    run(store, campaign_id, "b", outcome=Outcome.NODE_FAILURE, wall_s=4.0)
    run(store, campaign_id, "c", outcome=Outcome.NEVER_STARTED, wall_s=0.0, started_at=0.0)
    run(store, campaign_id, "d", outcome=Outcome.OUT_OF_MEMORY, wall_s=2.0)
    record = recorded(store, url)
    found = {loss.outcome: loss for loss in Page(record).losses}
    assert set(found) == {Outcome.NODE_FAILURE, Outcome.NEVER_STARTED}
    assert (found[Outcome.NODE_FAILURE].runs, found[Outcome.NODE_FAILURE].wall_s) == (2, 7.0)
    assert Outcome.OUT_OF_MEMORY in {failure.outcome for failure in Page(record).failures}
    then, now = (timeline.phase_costs(r)[0] for r in (before, record))
    assert (now.failed - then.failed, now.lost, now.lost_s) == (1, 3, 7.0)
    assert now.failed_s - then.failed_s == pytest.approx(2.0)
    said = words_of(Page(record))
    assert re.search(
        r"cause runs configurations time said .* node-failure 2 1 7 s n7 is gone", said
    )
    assert re.search(r"cause runs configurations time shared .* out-of-memory 1 1 2 s", said)


def test_jobs_say_what_they_used_and_came_to(store: Store, url: str) -> None:
    campaign_id = campaign(store, node_hours=64, slurm={"exclude": ["n9"]})
    book = store.job_book(campaign_id)
    for number in range(3):
        book.put_job(
            given.job(
                f"done{number}",
                stage=JobStage.OVER,
                word="COMPLETED",
                prepared_at=100.0,
                started_at=130.0 + number,
                node_hours=0.5,
            )
        )
    dead = given.job(
        "dead", stage=JobStage.OVER, word="NODE_FAIL", node_hours=0.25, detail="node n7 died"
    )
    book.put_job(dead)
    book.put_job(given.job("next"))
    book.put_job(given.job("trace", kind=JobKind.TRACE, stage=JobStage.SUBMITTED, word="PENDING"))
    found = scheduler_share(recorded(store, url))
    assert found is not None
    assert [(g.kind, g.came_to, g.jobs, g.node_hours, g.wait_s) for g in found.groups] == [
        ("block", "COMPLETED", 3, 1.5, 31.0),
        ("block", "NODE_FAIL", 1, 0.25, None),
        ("block", "prepared, in flight", 1, 0.0, None),
        ("trace", "PENDING, in flight", 1, 0.0, None),
    ]
    assert (found.jobs, found.node_hours, found.budget, found.excluded) == (6, 1.75, 64.0, ("n9",))
    said = words_of(Page(recorded(store, url)))
    assert "6 jobs used 1.75 of 64 node-hours. Left out: n9." in said
    assert "block COMPLETED 3 1.5 31 s" in said
    assert "block NODE_FAIL 1 0.25 – node n7 died" in said
    assert "nodes are known" not in said


def test_places_are_counted(store: Store, url: str) -> None:
    campaign_id = campaign(store)
    places = [("n1", "n2"), ("n2", "n1"), ("n1", "n12"), ("n3", "n4")]
    distances = ["same-switch", "same-switch", "different-groups", ""]
    for number, (nodes, distance) in enumerate(zip(places, distances, strict=True)):
        run(store, campaign_id, f"r{number}", nodes=nodes, distance=distance)
    found = scheduler_share(recorded(store, url))
    assert found is not None
    assert (found.nodes, found.placed, found.jobs) == (5, 4, 0)
    assert found.distances == {"same-switch": 0.5, "different-groups": 0.25}
    said = words_of(Page(recorded(store, url)))
    assert (
        "The 4 runs whose nodes are known were made on 5 different nodes: 50 % with all nodes "
        "under one switch, 25 % with nodes in different groups of switches." in said
    )
    assert "node-hours." not in said


@pytest.mark.parametrize(
    ("spans", "gaps"),
    [
        ([], 0.0),
        ([(5.0, 7.0)], 0.0),
        ([(0.0, 1.0), (3.0, 4.0)], 2.0),
        ([(0.0, 10.0), (1.0, 2.0), (4.0, 12.0), (13.0, 14.0)], 1.0),
        ([(13.0, 14.0), (0.0, 10.0)], 3.0),
    ],
)
def test_time_outside_of_runs_that_may_overlap(
    spans: list[tuple[float, float]], gaps: float
) -> None:
    assert timeline._gaps_s(spans) == gaps


@pytest.mark.parametrize(
    ("hours", "said"),
    [(0.0, "0"), (0.25, "0.25"), (1.0, "1"), (9.996, "10"), (12.375, "12.4"), (99.96, "100"),
     (1234.4, "1,234")],
)  # fmt: skip
def test_node_hours_are_short(hours: float, said: str) -> None:
    assert formatting.format_node_hours(hours) == said
