"""What a person meets with a first campaign on Slurm: mistakes, their correction, more runs."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from campaign_texts import ONE_BLOCK
from slurm_campaigns import OnSlurm
from slurm_cluster import Cluster

VARIABLE = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"


@pytest.fixture(scope="module")
def made(
    executable: Path,  # noqa: ARG001  # built before
    shared_slurm: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> OnSlurm:
    """A campaign that is done, with a profile that states a gain."""
    extra = {"SLURM_CONF": shared_slurm.environment["SLURM_CONF"]}
    line = OnSlurm(tmp_path_factory.mktemp("finished"), extra, cluster=shared_slurm)
    line.write(ONE_BLOCK)
    line.succeed("tune", "campaign.yaml")
    line.state_gain(**{VARIABLE: "ring"})
    return line


@pytest.fixture
def finished(made: OnSlurm, isolated_slurm: Cluster) -> OnSlurm:
    """The same on a cluster on which nothing runs, with its file as it was."""
    made.write(ONE_BLOCK)
    return replace(made, extra=dict(made.extra), cluster=isolated_slurm)


def test_a_refused_job_is_corrected_in_the_file(campaign: OnSlurm) -> None:
    campaign.write_without_mpi(ONE_BLOCK.replace("mpi: pmi2", "mpi: pmi2, account: nobody"))
    for command in ("tune", "submit"):
        said = campaign(command, "campaign.yaml")
        assert said.code == 3, said
        assert "Invalid account" in said.err
        assert "correct 'slurm:' in the campaign file" in said.err
    assert campaign.query("SELECT DISTINCT stage FROM jobs") == [("over",)]
    assert campaign("submit", "--test-only", "campaign.yaml").code == 3
    campaign.write_without_mpi(ONE_BLOCK)
    assert "to start at" in campaign("submit", "--test-only", "campaign.yaml").out
    campaign.succeed("tune", "campaign.yaml")
    assert campaign.query("SELECT count(*) FROM runs WHERE outcome = 'ok'") == [(4,)]
    campaign.write_without_mpi(ONE_BLOCK.replace("search: 100ms", "search: 200ms"))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()


def test_what_srun_starts_the_mpi_with_is_corrected_in_the_file(campaign: OnSlurm) -> None:
    campaign.write(ONE_BLOCK.replace("mpi: pmi2", "mpi: pmix"))
    said = campaign("tune", "campaign.yaml")
    assert said.code == 3, said
    assert "the default configuration failed three times in a row" in said.err
    assert "look at 'slurm:' in the campaign file: 'mpi' (pmi2 for MPICH" in said.err
    campaign.write(ONE_BLOCK)
    campaign.succeed("tune", "campaign.yaml")


def test_a_campaign_under_which_nothing_worked_begins_anew(campaign: OnSlurm) -> None:
    wrong = ONE_BLOCK.replace("mpi: pmi2", "mpi: pmi2, modules: [nowhere/1]")
    campaign.write_without_mpi(wrong.replace("search: 100ms", "search: 10min"))
    said = campaign("tune", "campaign.yaml")
    assert said.code == 3, said
    assert "5 blocks in a row were lost" in said.err
    campaign.write_without_mpi(ONE_BLOCK)
    said = campaign.succeed("tune", "campaign.yaml")
    assert (
        "campaign small had no successful run so far, and starts over; changed: slurm.modules"
        in (said.err)
    )
    outcomes = "SELECT DISTINCT outcome FROM runs JOIN campaigns ON campaigns.id = campaign_id "
    assert campaign.query(outcomes + "WHERE name = 'small'") == [("ok",)]
    assert ("ok",) not in campaign.query(outcomes + "WHERE name = 'small.1'")
    # Now there is something that it must not be mixed with.
    campaign.write_without_mpi(ONE_BLOCK.replace("mpi: pmi2", "mpi: pmi2, prefix: env"))
    said = campaign("tune", "campaign.yaml")
    assert said.code == 2
    assert "was started with a different question" in said.err


def test_a_database_that_nodes_do_not_see_ends_the_job(campaign: OnSlurm) -> None:
    campaign.write_without_mpi(ONE_BLOCK)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # each node has its own
        hidden = f"{folder}/commtune.db"
        said = campaign.succeed("submit", "campaign.yaml", "--db", hidden)
        campaign.until_over()
        output = Path(said.out.rstrip().rpartition("output: ")[2]).read_text()
        assert "is not the database that the job was submitted with" in output
        said = campaign("status", "--db", hidden)
        assert said.out.splitlines()[1].split()[:2] == ["small", "stopped"]
        assert "FAILED" in said.out


def test_a_databases_password_is_not_told_to_slurm(
    campaign: OnSlurm, new_postgresql_url: str
) -> None:
    campaign.write_without_mpi(ONE_BLOCK)
    campaign.extra["COMMTUNE_DB"] = new_postgresql_url.replace("commtune@", "commtune:s3cret@")
    campaign.succeed("submit", "campaign.yaml")
    (job,) = campaign.jobs()
    asked = ("scontrol", "write", "batch_script", job.number, "-")
    script = campaign.cluster.call(*asked)
    assert "COMMTUNE_DB_FILE=" in script
    assert "s3cret" not in script + campaign("submit", "--dry-run", "campaign.yaml").out
    campaign.until_over()
    row = campaign("status").out.splitlines()[1]
    assert row.split()[:2] == ["small", "finished"], campaign.printed()


def test_what_node_hours_can_decide_is_said_before_the_first_job(campaign: OnSlurm) -> None:
    times = "search: 100ms, ablation: 10ms, confirmation: 1s, trials: 2"
    assert times in ONE_BLOCK
    campaign.write(ONE_BLOCK.replace(times, "node_hours: 0.12"))
    said = campaign.succeed("submit", "--dry-run", "campaign.yaml")
    assert (
        "0.12 node-hours can decide something if a run takes 4.63 s at most: "
        "the confirmation is 14 runs at least\n" in said.err
    )
    campaign.write(ONE_BLOCK.replace(times, "node_hours: 0.001"))
    for command in ("submit", "tune"):
        said = campaign(command, "campaign.yaml")
        assert said.code == 2, said
        assert "campaign.yaml:7: budget: 0.001 node-hours decide nothing" in said.err
        assert "more than 0.0013 node-hours, even if a run takes 0.05 s" in said.err
    assert campaign.jobs() == []


def test_status_asks_slurm_while_no_controller_does(campaign: OnSlurm) -> None:
    campaign.write(ONE_BLOCK.replace("mpi: pmi2", "mpi: pmi2, partition: closed"))
    campaign.succeed("submit", "campaign.yaml")
    again = campaign("submit", "campaign.yaml")
    assert again.code == 2
    assert "already has a Slurm job: " in again.err
    _, row, _, _, follows, _, job = campaign("status").out.splitlines()
    assert " starts when the scheduler lets it; 'commtune cancel small' ends it" in follows
    assert row.split()[:2] == ["small", "PENDING"]
    assert job.split()[1:3] == ["allocation", "PENDING"]
    assert "PartitionDown" in job
    ended = campaign("cancel", "small")
    assert "ended; what was measured is kept" in ended.out
    assert campaign("status").out.splitlines()[1].split()[:2] == ["small", "stopped"]


def test_nothing_is_submitted_that_would_measure_nothing(finished: OnSlurm) -> None:
    said = finished("submit", "campaign.yaml")
    assert said.code == 2
    assert "campaign small is finished: there is nothing left to measure" in said.err
    short = ONE_BLOCK.replace("name: small", "name: short").replace("mpi: pmi2", "time: 1min")
    finished.write(short, "short.yaml")
    said = finished("submit", "short.yaml")
    assert said.code == 2
    assert "slurm.time: 60 s is too short" in said.err
    assert finished.query("SELECT count(*) FROM jobs WHERE kind = 'allocation'") == [(0,)]


def test_guards_pass_into_allocations(campaign: OnSlurm) -> None:
    """The controller in the job knows them too, and so takes the campaign for the same."""
    # A real variable that changes nothing of how ranks communicate: only its passing is tried.
    campaign.write_without_mpi(f"{ONE_BLOCK}protected_variables: [UCX_WARN_UNUSED_ENV_VARS]\n")
    campaign.extra["UCX_WARN_UNUSED_ENV_VARS"] = "n"
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    campaign.check_whole()


def verified(said_out: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(said_out)
    assert found["finding"] in ("holds", "weaker", "gone", "worse", "undecided")
    return found


def test_a_profile_is_verified_by_jobs_and_in_an_allocation(finished: OnSlurm) -> None:
    # A third node would get jobs while one of two still ends the one before.
    finished.cluster.drain_node("n3")
    before = finished.query("SELECT finished, settings FROM campaigns")
    made = "SELECT count(*), group_concat(DISTINCT nodes) FROM runs WHERE phase = 'verify'"
    found = verified(finished("verify", "small/stated", "--time", "1s", "--json").out)
    assert found["campaign"] == "small"
    assert found["changes"] == []
    ((by_jobs, nodes),) = finished.query(made)
    assert by_jobs >= 2
    assert nodes == "n1,n2"
    jobs = "SELECT count(*) FROM jobs WHERE kind = 'block'"
    ((count,),) = finished.query(jobs)
    command = ("verify", "small/stated", "--time", "1s", "--json")
    verified(in_allocation(finished, *command, nodes=2))
    ((both, nodes),) = finished.query(made)
    assert both >= by_jobs + 2
    assert nodes == "n1,n2"
    assert finished.query(jobs) == [(count,)]
    assert finished.query("SELECT finished, settings FROM campaigns") == before


def in_allocation(line: OnSlurm, *arguments: str, nodes: int) -> str:
    """What a command prints inside of an allocation."""
    words = shlex.join([sys.executable, "-m", "commtune.cli", *arguments])
    script = f"cd {shlex.quote(str(line.folder))}; {words} 2>err; echo; echo code $?"
    asked = ["salloc", "--quiet", f"--nodes={nodes}", "--ntasks-per-node=1", "--exclusive"]
    environment = {**line.environment(), "PATH": os.environ["PATH"]}
    return line.cluster.call(*asked, "bash", "-c", script, environment=environment).partition(
        "\ncode "
    )[0]


def test_what_changed_in_the_file_is_said_and_runs_are_kept_apart(finished: OnSlurm) -> None:
    finished.write(ONE_BLOCK.replace("mpi: pmi2", "mpi: pmi2, prefix: env"))
    said = finished("verify", "small/stated", "--time", "1s", "--json")
    found = verified(said.out)
    assert found["changes"] == ['slurm.prefix: [] -> ["env"]']
    assert str(found["campaign"]).startswith("verify-small-stated-")
    ((folder,),) = finished.query(
        "SELECT DISTINCT jobs.folder FROM jobs JOIN campaigns ON campaigns.id = campaign_id "
        "WHERE name LIKE 'verify-%' LIMIT 1"
    )
    assert f"/{found['campaign']}/" in folder


def test_without_the_campaign_file_nobody_knows_how_to_start(finished: OnSlurm) -> None:
    (finished.folder / "campaign.yaml").unlink()
    said = finished("verify", "small/stated")
    assert said.code == 2
    assert "campaign file, which says how jobs are started, is not here" in said.err


def test_compare_works_in_an_allocation_only(finished: OnSlurm) -> None:
    said = finished("compare", "default", "small/stated", "--time", "1s")
    assert said.code == 2
    assert "salloc --nodes=2 --ntasks-per-node=1 " in said.err
    output = in_allocation(finished, "compare", "default", "small/stated", "--time", "1s", nodes=2)
    assert "allreduce of float32, 2 ranks on 2 nodes, MPICH " in output
    assert "8 B" in output
    output = in_allocation(finished, "compare", "default", "small/stated", nodes=1)
    assert output.strip() == ""
    assert "the campaign needs 2 nodes" in (finished.folder / "err").read_text()
    folder = finished.folder / "data/commtune/campaigns"
    assert not list(folder.glob("commtune-*"))


def test_a_recording_is_not_made_of_a_login_node(finished: OnSlurm) -> None:
    said = finished("record", "campaign.yaml", "--out", "grid.jsonl.gz")
    assert said.code == 2
    assert "asks for Slurm, but recordings work on one machine only so far" in said.err


def test_run_warns_elsewhere_only(finished: OnSlurm) -> None:
    command = ("run", "--profile", "small/stated", "--", "printenv", VARIABLE)
    said = finished(*command)
    # What an earlier verification found on these busy cores may stand there, too.
    assert (said.code, said.out, "another system" in said.err) == (0, "ring\n", False)
    finished.extra["SLURM_CONF"] = "/dev/null"  # for a file that isn't there, scontrol waits
    assert "was measured on another system" in finished(*command).err
