"""One squeue and one sacct a period for a user, however many campaigns ask, on a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from accounts import state_in_accounts
from fake_slurm.driver import FakeSlurm
from made_files import write_script
from slurm_cluster import Cluster
from waiting import wait_for

from commtune.cluster.job_states import JobState
from commtune.cluster.scheduler import Site
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.cluster.slurm.node_kinds import NodeChoice, choose_nodes
from commtune.cluster.slurm.shared_answer import SharedAnswer
from commtune.cluster.slurm.site import describe_site
from commtune.wiring.schedulers import with_shared_answers

_CAMPAIGNS = 10


def _asked(cluster: Cluster) -> tuple[int, int]:
    """How many questions squeue put to slurmctld, and sacct to slurmdbd."""
    return cluster.count_requests("JOB_INFO"), cluster.count_account_requests()


def _ended_job(cluster: Cluster) -> str:
    job = cluster.submit("true", "--nodes=1")
    cluster.until(job, "COMPLETED")
    alone = SlurmScheduler(cluster.environment)

    def is_over() -> bool:
        return state_in_accounts(alone.account(None, time.time() - 600), job).state.is_over

    # Of one user, sacct names a job some seconds later than by its number.
    wait_for(is_over, f"the accounts to know of the end of job {job}")
    return job


def _shared(cluster: Cluster, folder: Path, period_s: float) -> SlurmScheduler:
    """As a campaign of its own has it."""
    shared = with_shared_answers(SlurmScheduler(cluster.environment), folder, "test", period_s)
    assert isinstance(shared, SlurmScheduler)
    return shared


def test_ten_campaigns_ask_once(slurm: Cluster, tmp_path: Path) -> None:
    jobs = [_ended_job(slurm), _ended_job(slurm)]
    before = _asked(slurm)

    def ask(number: int) -> tuple[JobState, JobState]:
        campaign, job = _shared(slurm, tmp_path, 600.0), jobs[number % 2]
        records = campaign.account([job], time.time() - 600)
        assert {record.number for record in records} == {job}, "of its own jobs only"
        queued = campaign.poll([job]).state_of(job).state
        return queued, state_in_accounts(records, job).state

    with ThreadPoolExecutor(_CAMPAIGNS) as threads:
        # The first reaches back furthest, as the campaign does that has waited longest.
        _shared(slurm, tmp_path, 600.0).account(jobs, time.time() - 1200)
        answers = list(threads.map(ask, range(_CAMPAIGNS)))
    assert set(answers) == {(JobState.COMPLETED, JobState.COMPLETED)}
    assert _asked(slurm) == (before[0] + 1, before[1] + 1)


def test_an_answer_that_does_not_reach_back_far_enough_is_waited_for(
    slurm: Cluster, tmp_path: Path
) -> None:
    job = _ended_job(slurm)
    longer, now = _shared(slurm, tmp_path, 600.0), time.time()
    before = _asked(slurm)
    assert longer.account([job], now + 60) == ()
    with pytest.raises(SlurmFault) as caught:
        longer.account([job], now - 600)
    assert caught.value.transient
    assert _asked(slurm) == (before[0], before[1] + 1)
    # A period later, the other campaign's question is for both.
    over = _shared(slurm, tmp_path, 0.0)
    over.account([job], now + 60)
    assert state_in_accounts(longer.account([job], now - 600), job).state is JobState.COMPLETED
    assert _asked(slurm) == (before[0], before[1] + 2)


def test_where_nothing_can_be_written_everybody_asks(slurm: Cluster, tmp_path: Path) -> None:
    job = _ended_job(slurm)
    (tmp_path / "slurm").write_text("no folder")
    before = _asked(slurm)
    for _ in range(2):
        campaign = _shared(slurm, tmp_path, 600.0)
        assert campaign.poll([job]).state_of(job).state is JobState.COMPLETED
        assert len(campaign.account([job], time.time() - 600)) == 1
    assert _asked(slurm) == (before[0] + 2, before[1] + 2)


def _about_site(cluster: Cluster) -> list[int]:
    kinds = ("BUILD_INFO", "TOPO_INFO", "NODE_INFO")
    return [*map(cluster.count_requests, kinds), cluster.count_account_requests()]


def test_campaigns_that_begin_together_ask_once_about_the_site(
    slurm: Cluster, tmp_path: Path
) -> None:
    environment, before = slurm.environment, _about_site(slurm)

    def begin(_: int) -> tuple[Site, NodeChoice]:
        site = describe_site(environment, tmp_path)
        return site, choose_nodes(environment, "mixed", 2, tmp_path)

    with ThreadPoolExecutor(_CAMPAIGNS) as threads:
        answers = list(threads.map(begin, range(_CAMPAIGNS)))
    other = tmp_path / "other"
    alone = describe_site(environment, other), choose_nodes(environment, "mixed", 2, other)
    assert all(answer == alone for answer in answers)
    assert _about_site(slurm) == [count + 2 for count in before]


def test_that_slurm_does_not_answer_is_asked_once(slurm: Cluster, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    counted = f'echo asked >>{tmp_path}/asked\nexec /usr/bin/squeue "$@"'
    write_script(programs / "squeue", counted)
    campaign = _shared(slurm, tmp_path, 600.0)
    silent = {**slurm.impatient, "PATH": f"{programs}:{slurm.environment['PATH']}"}
    campaign = replace(campaign, environment=silent)
    slurm.stop_controller()
    try:
        for _ in range(3):
            with pytest.raises(SlurmFault) as caught:
                campaign.poll(["1"])
            assert caught.value.error is SlurmError.CONTROLLER_DOWN
            assert caught.value.transient
    finally:
        slurm.start_controller()
    assert (tmp_path / "asked").read_text() == "asked\n"

    def answers() -> bool:
        try:
            campaign.poll(["1"])
        except SlurmFault:
            return False
        return True

    # It will do for some seconds, not for a period.
    wait_for(answers, "an answer")


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"error": "?"}', '{"other": 2}', "\0"])
def test_a_damaged_file_is_written_anew(tmp_path: Path, damaged: str) -> None:
    shared = SharedAnswer.of("squeue", tmp_path, "test", 600.0)
    shared.get(lambda _: "first")
    shared.file.write_text(damaged)
    answers = [shared.get(lambda _: "second"), shared.get(lambda _: "third")]
    assert [answer[0] for answer in answers if answer] == ["second", "second"]


@pytest.mark.parametrize("answer", ["{}", "[]", "", '{"config": 1, "topology": ""}'])
def test_what_another_version_stored_about_the_site_is_asked_anew(
    tmp_path: Path, answer: str
) -> None:
    environment = FakeSlurm(tmp_path / "fake").environment
    site = describe_site(environment, tmp_path)
    (file,) = (path for path in (tmp_path / "slurm").iterdir() if not path.suffix)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"answer": answer}))
    assert describe_site(environment, tmp_path) == site


def test_how_far_back_somebody_needed_it_is_kept_for_a_while(tmp_path: Path) -> None:
    always = SharedAnswer.of("sacct", tmp_path, "test", 0.0)
    for_long = replace(always, period_s=600.0)
    # The second gets no answer; the third asks for it as well.
    asked = ((always, 1000.0), (for_long, 10.0), (always, 1000.0), (always, 900.0))
    got = [campaign.get(str, since) for campaign, since in asked]
    assert [answer and answer[0] for answer in got] == ["1000.0", None, "10.0", "10.0"]


def test_programs_of_two_installations_do_not_answer_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = set()
    for name in ("one", "other"):
        write_script(tmp_path / name / "squeue", "")
        monkeypatch.setenv("PATH", str(tmp_path / name))
        files.add(SharedAnswer.of("squeue", tmp_path, "test", 600.0).file)
    assert len(files) == 2


def test_where_no_folder_can_be_made_the_answer_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shared = SharedAnswer.of("squeue", tmp_path / "file", "test", 600.0)
    said = iter(("first", "second"))
    answers = [shared.get(lambda _: next(said)) for _ in range(2)]
    assert [answer and answer[0] for answer in answers] == ["first", "second"]


#: As on Lustre without the mount option flock.
_NO_LOCKS = """
#include <errno.h>
int flock(int file, int kind) { (void)file; (void)kind; errno = ENOSYS; return -1; }
"""
_ASKING = """
import sys
from pathlib import Path
from commtune.cluster.slurm.shared_answer import SharedAnswer
shared = SharedAnswer.of("squeue", Path(sys.argv[1]), "test", 600.0)
said = iter(("first", "second"))
print(*(shared.get(lambda _: next(said))[0] for _ in range(2)))
"""


def test_where_the_file_system_has_no_locks_everybody_asks(tmp_path: Path) -> None:
    library = tmp_path / "locks.so"
    build = ["cc", "-shared", "-fPIC", f"-o{library}", "-xc", "-"]
    subprocess.run(build, input=_NO_LOCKS, text=True, check=True)
    asked = subprocess.run(
        [sys.executable, "-c", _ASKING, str(tmp_path)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.stdout, asked.stderr) == ("first second\n", "")
