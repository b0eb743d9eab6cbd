"""Campaigns beside an aggressor on other nodes of the same job, both ways."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from campaign_texts import ONE_BLOCK, with_run_limit
from left_over import living
from slurm_campaigns import OnSlurm
from waiting import PATIENCE_S, wait_for

#: Two ranks on a node of their own; each of two more nodes has a rank that sends.
NOISY = ONE_BLOCK.replace("nodes: 2, ranks: 2", "nodes: 1, ranks: 2") + (
    "aggressor: {pattern: incast, nodes: 2, message: 16KiB}\n"
)
ODD = "a b'; touch RAN; $(touch RAN) `touch RAN` \" , \\"
#: In front of the program: what each rank sees, apart for runs and aggressors. A configuration
#: with ODD fails then: one that works would be confirmed, by 14 runs more.
_SEES = (
    'case "$*" in *--mode=aggress*) kind=beside;; *--mode=trace*) kind=trace;; *) kind=run;; '
    "esac; "
    'env -0 >"$0/$kind.$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURM_PROCID"; [ -z "$ODD" ] && exec "$@"'
)
#: In front of it as well: a run waits while there is a file, and its aggressor sends.
_WAITS = (
    'case "$*" in *mode=aggress*) ;; *) while [ -e "$0" ]; do sleep 0.05; done;; esac; exec "$@"'
)
both_ways = pytest.mark.parametrize("way", ["tune", "submit"])


def with_prefix(script: str, file: Path) -> str:
    """The campaign with a script in front of each rank, which knows a file as ``$0``."""
    prefix = json.dumps(["sh", "-c", script, str(file)])
    return NOISY.replace("slurm: {", f"slurm: {{prefix: {prefix}, ")


def aggressors(campaign: OnSlurm) -> dict[int, str]:
    """Launchers and ranks of aggressors that live, without scripts that start them."""
    lines = living("--mode=aggress").items()
    return {
        pid: line for pid, line in lines if str(campaign.folder) in line and "bash" not in line
    }


def ranks_that_send(campaign: OnSlurm) -> list[int]:
    """The ranks of an aggressor under way, once it moved something."""
    for file in campaign.folder.glob("data/commtune/campaigns/small/**/*.jsonl"):
        lines = file.read_text(errors="replace").splitlines()
        if len(lines) == 2 and "aggress" in lines[0]:
            return [pid for pid, line in aggressors(campaign).items() if "srun" not in line]
    return []


def said_by(campaign: OnSlurm, way: str) -> str:
    """Runs the campaign to its end, however it ends; what it said."""
    said = campaign(way, "campaign.yaml")
    campaign.until_over()
    outputs = campaign.folder.glob("data/commtune/campaigns/small/jobs/*/job.out")
    return said.err if way == "tune" else "".join(file.read_text() for file in outputs)


def seen(folder: Path, kind: str) -> list[dict[bytes, bytes]]:
    """The environments of ranks."""
    return [
        dict(entry.split(b"=", 1) for entry in file.read_bytes().split(b"\0")[:-1])
        for file in folder.glob(f"{kind}.*")
    ]


@both_ways
def test_each_run_has_the_aggressor_beside_it(campaign: OnSlurm, way: str) -> None:
    folder = campaign.folder / "seen"
    folder.mkdir()
    parameter = {"name": "ODD", "kind": "choice", "values": [ODD], "source": "made up"}
    campaign.write(
        with_prefix(_SEES, folder)
        + f"extend: [{json.dumps(parameter)}]\nfirst: [{json.dumps({'ODD': ODD})}]\n"
    )
    err = said_by(campaign, way)
    campaign.check_whole(lost=False, other="failed")
    assert campaign.query("SELECT DISTINCT distance FROM runs") == [("same-node",)]
    for nodes, header in campaign.query("SELECT nodes, header FROM runs WHERE outcome = 'ok'"):
        found = json.loads(header)
        assert {rank["host"] for rank in found["rank_info"]} == {nodes}
        assert found["beside"]["gigabits_per_s_between_nodes"] > 0
    beside = seen(folder, "beside")
    ((runs,),) = campaign.query("SELECT count(*) FROM runs")
    assert len(beside) == 2 * runs, err
    assert not [rank for rank in beside if b"ODD" in rank]
    tried = [rank[b"ODD"] for rank in seen(folder, "run") if b"ODD" in rank]
    ((odd,),) = campaign.query(
        "SELECT count(*) FROM runs JOIN configurations c ON c.id = configuration_id "
        "WHERE json_extract(environment, '$.ODD') IS NOT NULL"
    )
    assert tried == [ODD.encode()] * 2 * odd and odd == campaign.outcomes()["failed"] > 0
    assert not list(campaign.folder.rglob("RAN"))
    status = campaign("status").out
    assert "runs beside an aggressor: incast of 16 KiB from 2 ranks on 2 nodes" in status


@both_ways
def test_a_run_that_loses_its_aggressor_is_lost_and_made_again(
    campaign: OnSlurm, way: str
) -> None:
    hold = campaign.write("", "hold")
    campaign.write(with_prefix(_WAITS, hold))
    with campaign.start(way, "campaign.yaml") as child:
        wait_for(lambda: ranks_that_send(campaign), "an aggressor to send")
        for pid in ranks_that_send(campaign):
            with suppress(ProcessLookupError):  # one that dies takes the others along
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not aggressors(campaign), "its end")
        hold.unlink()
        child.communicate(timeout=2 * PATIENCE_S)
    campaign.until_over()
    campaign.check_whole()
    lost = campaign.query("SELECT outcome, detail FROM runs WHERE outcome != 'ok'")
    assert lost == [
        ("interrupted", "not beside its aggressor: it ended before what it stood beside")
    ]


@both_ways
def test_without_an_aggressor_the_campaign_stops_and_says_why(campaign: OnSlurm, way: str) -> None:
    single = NOISY.replace("mpi: pmi2", "mpi: none")  # each rank is a world of its own
    campaign.write(single.replace("search: 100ms", "search: 10min"))
    err = said_by(campaign, way)
    assert "in a row were" in err
    assert "not beside its aggressor: it ended before it began its work" in err
    assert "asked for were 2 ranks, but each came up as a world of its own" in err
    assert not campaign.records()
    assert not living(str(campaign.folder))
    assert [job for job in campaign.jobs() if not job.is_over] == []


@both_ways
def test_a_run_over_its_time_takes_the_aggressor_along(campaign: OnSlurm, way: str) -> None:
    campaign.write(with_run_limit(with_prefix(_WAITS, campaign.folder), "0.5s"))
    err = said_by(campaign, way)
    assert "the default configuration failed three times in a row: timed-out" in err
    assert not living(str(campaign.folder))


def test_nothing_is_left_in_an_allocation_whose_controller_is_interrupted(
    campaign: OnSlurm,
) -> None:
    campaign.write(with_prefix(_WAITS, campaign.folder))
    asked = campaign.cluster.call("salloc", "--no-shell", "--nodes=3", "--ntasks-per-node=2")
    number = asked.split()[-1]
    ours = {"SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": "n[1-3]"}
    inside = OnSlurm(campaign.folder, {**campaign.extra, **ours}, cluster=campaign.cluster)
    with inside.start("tune", "campaign.yaml") as child:
        wait_for(lambda: ranks_that_send(campaign), "an aggressor to send")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert "interrupted" in err
    steps = ("squeue", "--noheader", "--steps", "--format=%i", f"--jobs={number}")
    wait_for(lambda: not campaign.cluster.call(*steps).split(), "the steps to end")
    assert not aggressors(campaign)
    assert not living(str(campaign.folder))
    campaign.cluster.call("scancel", number)
