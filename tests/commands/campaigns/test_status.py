"""What ``commtune status`` says of campaigns, from a real database."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from made_files import write_script
from stores import opened_store

from commtune.app.campaigns import sharing
from commtune.cluster.jobs.cancellation import Cancelled
from commtune.commands.campaigns import status
from commtune.db.settings import excluded_nodes, node_hours_budget
from commtune.db.storage.store import Store
from commtune.model import (
    Aggressor,
    AggressorPattern,
    JobKind,
    JobStage,
    Operation,
    Outcome,
    Verdict,
    Workload,
)


@pytest.fixture(autouse=True)
def no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """squeue has nobody to ask, and says so at once: the real one looks again for a minute."""
    said = "squeue: fatal: Unable to process configuration file"
    write_script(tmp_path / "programs" / "squeue", f"echo '{said}'\nexit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")


def begun(store: Store, name: str = "shm", **settings: Any) -> int:
    """A campaign with a trial."""
    return given.begin(store, given.campaign(name, settings=settings))


def made(store: Store, campaign_id: int, *outcomes: Outcome) -> None:
    """Runs that ended like this."""
    for number, outcome in enumerate(outcomes):
        given.add_run(store, campaign_id, f"{campaign_id}-{number}", outcome=outcome)


def lines(url: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What is printed, with single blanks."""
    status.status_command(url, json_output=False)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_where_no_campaigns_are_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "typo.db"
    said = [f"no campaigns yet in {file}; start one with: commtune tune"]
    assert lines(str(file), capsys) == said
    assert not file.exists()


def test_the_header_names_the_level_that_all_campaigns_have(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(store, "one", level=0.9)
    assert lines(url, capsys)[0].endswith("simultaneous 90 % CI")
    begun(store, "other", level=0.95)
    assert lines(url, capsys)[0].endswith("simultaneous CI of its campaign")


def test_what_was_lost_is_no_failure(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(store, begun(store), *Outcome)
    header, row = lines(url, capsys)
    counts, level = header.split(", ")
    assert counts == "campaign state trials runs failed lost measured best confirmed speedup"
    assert level == "simultaneous CI of its campaign"
    # Of the others, one is ok: 14 outcomes, of which 5 are lost.
    assert row.startswith("shm stopped 1 14 8 5 ")
    status.status_command(url, json_output=True)
    (said,) = json.loads(capsys.readouterr().out)
    assert (said["failed"], said["lost"], said["outcomes"]["preempted"]) == (8, 5, 1)
    assert (said["jobs"], said["node_hours"], said["node_hours_budget"]) == ([], 0.0, None)


def test_jobs_in_flight_are_told_with_what_they_used(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = {"exclude": ["n9", "n3"]}
    jobs = store.job_book(begun(store, node_hours=64, slurm=slurm))
    now = time.time()  # what is said of hours stays the same for the next minute
    running = given.job(
        "running",
        stage=JobStage.SUBMITTED,
        number="4711",
        word="RUNNING",
        reason="None",
        nodes="n[1-2]",
        prepared_at=now - 14000,
        started_at=now - 10801,
        node_hours=0.25,
    )
    pending = replace(
        running,
        key="pending",
        number="4712",
        word="PENDING",
        reason="Priority",
        nodes="",
        prepared_at=now - 7201,
        started_at=None,
        node_hours=0.0,
    )
    trace = given.job(
        "trace", kind=JobKind.TRACE, block=None, prepared_at=now - 3601, node_count=1
    )
    over = given.job("over", stage=JobStage.OVER, number="4700", node_hours=12.125)
    for job in (running, pending, trace, over):
        jobs.put_job(job)
    said = lines(url, capsys)
    assert said[2:4] == [
        "",
        "shm: 2 jobs in flight, 1 not submitted yet when Slurm was last asked; "
        "12.4 of 64 node-hours used; "
        "without n3, n9",
    ]
    assert said[4:] == [
        "Slurm does not answer: these jobs, and their controller, may be over",
        "next: jobs wait until it answers, then continue; check it with 'scontrol ping', then run "
        "'commtune status' again",
        "job for state since reason nodes",
        "4711 block 4 RUNNING 3 h 00 min n[1-2]",
        "4712 block 4 PENDING 2 h 00 min Priority 2 nodes",
        "- trace not submitted yet 1 h 00 min 1 node",
    ]
    status.status_command(url, json_output=True)
    (plain,) = json.loads(capsys.readouterr().out)
    assert [job["number"] for job in plain["jobs"]] == ["4711", "4712", ""]
    assert (plain["jobs"][1]["word"], plain["jobs"][1]["reason"]) == ("PENDING", "Priority")
    assert (plain["node_hours"], plain["node_hours_budget"]) == (12.375, 64.0)
    assert plain["excluded_nodes"] == ["n3", "n9"]


def test_hundreds_of_jobs_fit_on_a_screen(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = store.job_book(begun(store))
    for number in range(500):
        job = given.job(f"j{number}", stage=JobStage.SUBMITTED, number=str(1000 + number))
        waits = replace(job, word="PENDING", reason="Priority", started_at=None)
        runs = replace(job, word="RUNNING", reason="None", started_at=5.0)
        jobs.put_job(runs if number >= 496 else waits)
    said = lines(url, capsys)
    assert len(said) < 24
    assert [line.split()[0] for line in said[7:11]] == ["1496", "1497", "1498", "1499"]
    assert said[-1] == "and 488 further jobs: 488 PENDING (Priority)"
    status.status_command(url, json_output=True)
    (plain,) = json.loads(capsys.readouterr().out)
    assert len(plain["jobs"]) == 500


def test_hundreds_of_jobs_that_were_cancelled_fit_on_a_line() -> None:
    numbers = tuple(str(1000 + number) for number in range(500))
    first, kept = ", ".join(numbers[:12]), "ended; what was measured is kept"
    assert Cancelled(numbers).describe() == f"jobs {first} and 488 more {kept}"
    assert Cancelled(numbers[:12]).describe() == f"jobs {first} {kept}"
    assert Cancelled(numbers[:1]).describe() == f"job 1000 {kept}"


def test_each_campaign_has_its_own_jobs(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(store, "without")
    for name, stage in (("ended", JobStage.OVER), ("flies", JobStage.PREPARED)):
        store.job_book(begun(store, name)).put_job(given.job(name, stage=stage, node_hours=1.0))
    said = "\n".join(lines(url, capsys))
    assert "ended: 0 jobs in flight; 1 node-hours used\n" in f"{said}\n"
    flies = "flies: 0 jobs in flight, 1 not submitted yet when Slurm was last asked; 1 node-hours"
    assert f"{flies} used\nno controller works on it\nnext: " in said
    assert "without:" not in said


def test_a_campaign_whose_allocation_waits_is_not_stopped(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_id = begun(store)
    allocation = given.job("waits", kind=JobKind.ALLOCATION, block=None, stage=JobStage.SUBMITTED)
    store.job_book(campaign_id).put_job(allocation)
    assert lines(url, capsys)[1].startswith("shm submitted ")
    store.job_book(campaign_id).put_job(replace(allocation, stage=JobStage.OVER))
    assert lines(url, capsys)[1].startswith("shm stopped ")


def test_jobs_that_a_controller_watches_are_up_to_date(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_id = begun(store)
    store.job_book(campaign_id).put_job(given.job("flies", stage=JobStage.PREPARED))
    count = "shm: 0 jobs in flight, 1 not submitted yet"
    assert f"{count} when Slurm was last asked; 0 node-hours used" in lines(url, capsys)
    store.lock(campaign_id)
    assert f"{count}; 0 node-hours used" in lines(url, capsys)


@pytest.mark.parametrize(
    ("settings", "budget", "nodes"),
    [
        ({}, None, ()),
        ({"node_hours": None, "slurm": None}, None, ()),
        ({"node_hours": 0.5, "slurm": {"exclude": ["n2", "n1"]}}, 0.5, ("n1", "n2")),
        ({"slurm": {}}, None, ()),
    ],
)
def test_limits_are_read_from_settings_of_any_age(
    settings: dict[str, Any], budget: float | None, nodes: tuple[str, ...]
) -> None:
    assert (node_hours_budget(settings), excluded_nodes(settings)) == (budget, nodes)


def test_what_best_refuses_is_not_advertised(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_id = begun(store)
    overall = replace(given.point(1024, "all", 0.9), verdict=Verdict.UNDECIDED)
    one_state = given.point(1024, "fast", 4.0)
    outside = given.point(1 << 20, "all", 3.0)
    sure = given.point(2048, "all", 1.2)
    found = given.profile("p", bytes_low=8, bytes_high=65536, points=(overall, one_state, outside))
    store.save_profiles(campaign_id, [found])
    assert lines(url, capsys)[1].endswith("none confirmed")
    store.save_profiles(campaign_id, [replace(found, points=(overall, one_state, outside, sure))])
    assert f", {sure.gain.pairs} pairs) at 2 KiB" in lines(url, capsys)[1]


def test_what_another_site_measured_has_no_next_step_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, file = f"sqlite:///{tmp_path}/there.db", tmp_path / "shm.bundle"
    workload = Workload(Operation.ALLREDUCE, (8,), ranks=2).plain()
    beside = Aggressor(AggressorPattern.ALLTOALL, nodes=2).plain()
    record = given.campaign(what={"workload": workload, "aggressor": beside})
    with opened_store(url) as store:
        store.finish_campaign(given.begin(store, record))
    sharing.create_bundle(file, db=url)
    sharing.merge_bundle(sharing.read_bundle(file), "there", f"{tmp_path}/here.db")
    assert "raise 'budget'" in " ".join(lines(url, capsys))
    assert len(lines(f"{tmp_path}/here.db", capsys)) == 2
