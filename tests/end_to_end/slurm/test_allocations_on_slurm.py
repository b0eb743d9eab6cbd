"""Allocations one after the other, and what befalls them on Slurm only."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from pathlib import Path

from campaign_texts import ONE_BLOCK, ONE_CANDIDATE
from other_clock import build_clock
from slurm_campaigns import OnSlurm
from slurm_scripts import shown
from waiting import PATIENCE_S

#: Says how many seconds the next allocation lasts, and notes it. Each lasts longer than the one
#: before: one in which a busy machine makes no run is followed by one in which it does.
_LASTING = """\
seconds=$(cat next)
echo $seconds | tee -a lasted
echo $((seconds + 4)) >next
"""


def test_allocations_in_a_row_end_cleanly_before_their_limits(campaign: OnSlurm) -> None:
    following = campaign.write("3600", "next")
    says = f"$(cd {campaign.folder}; . {campaign.write(_LASTING, 'lasting.sh')})"
    campaign.write_without_mpi(campaign.lasting(ONE_CANDIDATE, says), "sleep 1.2")
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(campaign.running, "its start")
    begun = time.monotonic()
    campaign.until(lambda: len(campaign.records()) > 2, "some runs")
    # The next has time for about as many: 40 s are kept for the end, and 20 s for a run.
    following.write_text(str(60 + math.ceil(1.5 * (time.monotonic() - begun))))
    # Slurm's warning comes in the middle of a run.
    campaign.cluster.call("scancel", "--batch", "--signal=USR1", campaign.running())
    campaign.until(campaign.is_done, "the campaign", 2 * PATIENCE_S)
    campaign.until_over()
    campaign.check_whole()
    said = campaign.printed()
    assert "commtune: the time of this job is nearly over; everything measured is kept\n" in said
    jobs = campaign.query(
        "SELECT number, ended_at - started_at, node_hours FROM jobs ORDER BY prepared_at"
    )
    made = {number: (took_s, hours) for number, took_s, hours in jobs if took_s}
    assert len(made) >= 3
    for number in list(made)[1:-1]:
        assert f"commtune: the time of job {number} is nearly over" in said
    # Slurm's accounts correct node-hours, in whole seconds of both nodes.
    off_s = [abs(hours * 3600 / 2 - took_s) for took_s, hours in made.values()]
    assert max(off_s) < 1.5
    lasted_s = map(int, (campaign.folder / "lasted").read_text().split())
    assert all(
        took_s < most_s for (took_s, _), most_s in zip(made.values(), lasted_s, strict=False)
    )
    hours = sum(hours for _, hours in made.values())
    assert f"{hours:.2f} node-hours used" in campaign("status").out
    assert {job.word for job in campaign.jobs()} == {"COMPLETED", "CANCELLED"}
    # A planned end loses no run.
    assert set(campaign.outcomes()) == {"ok"}


#: In front of each rank: from the second run on it waits while there is a file.
_HOLDS = """\
#!/bin/sh
mkdir "$HOME/first.$SLURM_PROCID" 2>/dev/null || while [ -e "$HOME/hold" ]; do sleep 0.05; done
exec "$@"
"""


def _with_held_runs(campaign: OnSlurm) -> str:
    """The campaign of one block, whose second run does not end before ``_release``."""
    (campaign.folder / "hold").touch()
    program = campaign.write(_HOLDS, "holds")
    program.chmod(0o755)
    return ONE_BLOCK.replace("slurm: {", f"slurm: {{prefix: [{program}], ")


def _until_second_run(campaign: OnSlurm, job: str) -> None:
    steps = ("squeue", "--noheader", "--steps", "--format=%i", f"--jobs={job}")
    campaign.until(lambda: f"{job}.1" in campaign.cluster.call(*steps).split(), "its second run")


def _release(campaign: OnSlurm) -> None:
    (campaign.folder / "hold").unlink()


def test_an_allocation_is_requeued_where_no_second_job_may_wait(
    campaign: OnSlurm, tmp_path: Path
) -> None:
    text = _with_held_runs(campaign)
    asked = "poll: 0.3s, mail_user: ann@example.org, partition: mixed, time: 3min"
    # The nodes' clocks are 2 min ahead of Slurm's: by theirs, no time is left for a run.
    clock = f"export LD_PRELOAD={build_clock(tmp_path, ahead_s=120)}; "
    text = text.replace("poll: 0.3s", asked)
    campaign.write_without_mpi(text.replace("before: '", f"before: '{clock}"))
    campaign.cluster.limit_submissions(1)
    submitted = campaign("submit", "campaign.yaml")
    assert submitted.code == 0
    differ = "nodes differ: n[1-3] (1 x 2 cores); big (4 x 1 cores)\n  jobs use n[1-3] only;"
    assert differ in submitted.err
    (job,) = campaign.jobs()
    _until_second_run(campaign, job.number)
    job_now = shown(campaign.cluster, job.number)
    assert (job_now["MailUser"], job_now["ExcNodeList"]) == ("ann@example.org", "big")
    campaign.cluster.call("scancel", "--batch", "--signal=USR1", job.number)
    _release(campaign)
    campaign.until(lambda: "is requeued" in campaign.printed(), "the end of its time")
    # What a user edits meanwhile is for the next 'submit'.
    edited = (campaign.folder / "campaign.yaml").read_text().replace("[8, ", "[16, ")
    file = campaign.write(edited)
    status = campaign("status").out
    assert f"  {file} was edited since 'commtune submit': jobs use a copy\n" in status
    assert re.search(rf"^ +{job.number}  allocation +(PENDING|RUNNING|COMPLETING)", status, re.M)
    campaign.until_over()
    campaign.check_whole(lost=False)
    said = campaign.printed()
    assert "commtune: the time of this job is nearly over; everything measured is kept" in said
    assert " lost, " not in said
    # Slurm ends who asks it to requeue the job: nothing is interrupted by that.
    assert "Traceback" not in said and "interrupted" not in said
    assert (
        f"job {job.number} is requeued, and continues: Slurm accepts no more jobs from you now"
        in said
    )
    _check_node_hours(campaign, attempts=2)
    # Slurm writes when the job is over, and not when it is requeued.
    told = f"-s Slurm Job_id={job.number} Name=commtune-small-{job.key} Ended, Run time "
    mails = campaign.cluster.mails
    campaign.until(lambda: any(mail.startswith(told) for mail in mails()), "a mail")
    (mail,) = [mail for mail in mails() if mail.startswith(told)]
    assert mail.endswith(", COMPLETED, ExitCode 0 ann@example.org")


def _check_node_hours(campaign: OnSlurm, *, attempts: int) -> None:
    """The one job's node-hours are those of the accounts, which count whole seconds."""
    accounts = ("sacct", "--duplicates", "--allocations", "--noheader", "--format=ElapsedRaw")
    ((number, hours),) = campaign.query("SELECT number, node_hours FROM jobs WHERE number != ''")
    made = campaign.cluster.call(*accounts, f"--jobs={number}").split()
    assert len(made) == attempts
    assert abs(hours - sum(map(int, made)) * 2 / 3600) < 0.0015


def _submit_requeueable(campaign: OnSlurm, before: str = "") -> str:
    """Submits where Slurm takes no second job, and waits until this one may be requeued.

    Args:
        before: what the job does at its start.

    Returns:
        The job's number; its second run is under way until ``_release``.
    """
    text = _with_held_runs(campaign).replace("before: '", f"before: '{before}")
    campaign.write_without_mpi(text)
    campaign.cluster.limit_submissions(1)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(campaign.running, "its start")
    number = campaign.running()
    show = ("scontrol", "show", "job", number)
    campaign.until(lambda: "Requeue=1" in campaign.cluster.call(*show), "a good run")
    _until_second_run(campaign, number)
    return number


def test_a_node_dies_where_clocks_are_behind(campaign: OnSlurm, tmp_path: Path) -> None:
    clock = build_clock(tmp_path, ahead_s=-120)
    _submit_requeueable(campaign, f"export LD_PRELOAD={clock}; ")
    campaign.cluster.fail_node("n2")
    _release(campaign)
    campaign.cluster.restore_node("n2")
    campaign.until_over()
    campaign.check_whole()
    _check_node_hours(campaign, attempts=2)


#: In the place of srun, which may end before it says that a node died, with status 0.
_SAYS_NOTHING = """\
#!/bin/sh
exec >/dev/null 2>&1
/usr/bin/srun "$@"
exit 0
"""


def test_a_run_whose_step_ended_before_any_word_of_a_dead_node_is_lost(campaign: OnSlurm) -> None:
    programs = campaign.folder / "programs"
    programs.mkdir()
    campaign.write(_SAYS_NOTHING, "programs/srun").chmod(0o755)
    # Slurm's SIGTERM comes after the end of the run: here it never does.
    number = _submit_requeueable(campaign, f'trap "" TERM; export PATH={programs}:$PATH; ')
    campaign.cluster.fail_node("n2")
    _release(campaign)
    campaign.cluster.restore_node("n2")
    campaign.until_over()
    campaign.check_whole()
    assert f"Slurm calls job {number} " in campaign.printed()
    assert campaign.outcomes()["interrupted"] == 1


def test_a_job_that_is_held_is_said_with_what_releases_it(campaign: OnSlurm) -> None:
    number = _submit_requeueable(campaign)
    # As Slurm does where a node was resumed, and can't start the job.
    campaign.cluster.call("scontrol", "requeuehold", number)
    _release(campaign)
    campaign.cluster.until(number, "PENDING")
    said = campaign("status").out
    held = re.search(rf"^  job {number} is held \((.+)\): '(.+)'$", said, re.M)
    assert held and "held" in held[1], said
    recent = campaign("status", "--since", "1h")
    assert (recent.code, recent.out.count("LOOK: its job does not start by itself")) == (20, 1)
    campaign.cluster.call(*held[2].split())
    campaign.until_over()
    campaign.check_whole()


def test_status_asks_slurm_whether_the_controllers_job_is_over(campaign: OnSlurm) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    campaign.cluster.limit_submissions(1)
    campaign.succeed("submit", "campaign.yaml")
    # The second run begins when the next job was refused.
    campaign.until(lambda: len(campaign.records()) > 1, "its second run")
    controller = campaign.controller()
    os.kill(controller, signal.SIGSTOP)
    said = campaign("status").out
    assert " running (process " in said
    assert "small: 1 job in flight, 1 not submitted yet; " in said
    assert re.search(
        r"^  next: no further job is accepted yet, so job \d+ is requeued at the end of its time; "
        r"'commtune cancel small' ends it$",
        said,
        re.M,
    ), said
    # On another node, nobody sees that it is dead.
    os.kill(controller, signal.SIGKILL)
    campaign.until_over()
    (job,) = campaign.jobs()
    said = campaign("status").out
    assert re.search(r"^small +stopped ", said, re.M), said
    assert re.search(rf"^ +{job.number}  allocation  FAILED ", said, re.M), said
    assert (
        "  the last job said: nothing; Slurm calls it FAILED\n"
        "  next: 'commtune tune' or 'commtune submit' with its file continues it\n"
    ) in said


def test_a_node_dies_under_an_allocation_again_and_is_left_out(campaign: OnSlurm) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE, "sleep 0.4")
    campaign.succeed("submit", "campaign.yaml")
    known = campaign.folder / "data/commtune/campaigns/small/failed-nodes.json"
    known.write_text('{"n2": ["9999"]}')
    campaign.until(lambda: len(campaign.jobs()) == 2, "the next allocation")
    number = campaign.running()
    campaign.cluster.fail_node("n2")
    campaign.until_over()
    campaign.check_whole()
    assert {job.number for job in campaign.jobs() if job.word == "NODE_FAIL"} == {number}
    left_out = f"node n2 failed in 2 jobs ({number}, 9999) and is left out from now on\n"
    assert left_out in campaign.printed()
    assert ("n1,n3", "same-group") in campaign.query("SELECT nodes, distance FROM runs")
    ((last,),) = campaign.query("SELECT folder FROM jobs ORDER BY prepared_at DESC LIMIT 1")
    assert "#SBATCH --exclude=n2\n" in (Path(last) / "script.sh").read_text()
