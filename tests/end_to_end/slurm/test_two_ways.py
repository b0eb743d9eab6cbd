"""A campaign over two nodes, in jobs from a login node and in an allocation of its own."""

from __future__ import annotations

import json

from campaign_texts import TWO_NODES
from slurm_campaigns import OnSlurm


def _write_for_two(campaign: OnSlurm) -> None:
    """A third node would get a job while one of two still ends the one before."""
    campaign.cluster.drain_node("n3")
    campaign.write(TWO_NODES)


def _check_answers(campaign: OnSlurm) -> None:
    """The campaign came to something that can be asked for and exported."""
    campaign.check_whole(lost=False)
    ((nodes, distance),) = campaign.query("SELECT DISTINCT nodes, distance FROM runs")
    assert (nodes, distance) == ("n1,n2", "same-switch")
    assert campaign.query("SELECT DISTINCT oversubscribed FROM runs") == [(0,)]
    profiles = campaign.query("SELECT name FROM profiles")
    assert profiles
    best = campaign.succeed("best", "--op", "allreduce", "--bytes", "8B")
    assert best.out.startswith("allreduce of 8 B, 2 ranks on 2 nodes: ")
    for (profile,) in profiles:
        exported = campaign("export", f"small/{profile}", "--format", "json")
        refused = ("is not faster than the default", "is likely, not proven")
        assert exported.code == 0 or any(why in exported.err for why in refused), exported.err


def test_blocks_as_jobs_from_a_login_node(campaign: OnSlurm) -> None:
    _write_for_two(campaign)
    campaign.succeed("tune", "campaign.yaml")
    _check_answers(campaign)
    jobs = campaign.query(
        "SELECT kind, number, nodes, ended_at - started_at, node_hours FROM jobs"
    )
    assert {kind for kind, *_ in jobs} == {"block", "trace"}
    assert all(number for _, number, *_ in jobs)
    # Slurm counts whole seconds, and a job may take less than one.
    assert all(hours > 0 or took_s < 1 for *_, took_s, hours in jobs)
    assert sum(hours for *_, hours in jobs) > 0
    assert {nodes for _, _, nodes, *_ in jobs} <= {"n[1-2]", "n1,n2"}


def test_steps_in_an_allocation(campaign: OnSlurm) -> None:
    _write_for_two(campaign)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    _check_answers(campaign)


def test_two_ranks_a_node_are_more_than_this_machine_has_cores_for(campaign: OnSlurm) -> None:
    campaign.write(TWO_NODES.replace("ranks: 2", "ranks: 4"))
    said = campaign.succeed("tune", "campaign.yaml")
    assert "more ranks than cores: no profile can be made, so the search ends here" in said.err
    campaign.check_whole(lost=False)
    # The nodes share the cores of one machine, whatever Slurm says that each has.
    assert campaign.query("SELECT DISTINCT oversubscribed FROM runs") == [(1,)]
    ((header,),) = campaign.query("SELECT header FROM runs LIMIT 1")
    assert [rank["host"] for rank in json.loads(header)["rank_info"]] == ["n1", "n1", "n2", "n2"]
