"""A disk, or a node's shared memory, that fills while a campaign runs in an allocation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from left_over import living
from slurm_campaigns import ONE_CANDIDATE, OnSlurm, with_long_runs
from slurm_cluster import Cluster, running_cluster


@contextmanager
def _small_disk(cluster: Cluster, folder: Path) -> Iterator[Path]:
    """A disk of 32 MiB at a folder; nodes that are made later see it, too."""
    folder.mkdir()
    cluster.call("mount", "-t", "tmpfs", "-o", "size=32m", "none", str(folder))
    try:
        yield folder
    finally:
        cluster.call("umount", "--lazy", str(folder))


def _fill(disk: Path) -> Path:
    file = disk / "full"
    with suppress(OSError), file.open("wb", buffering=0) as full:
        while full.write(bytes(4096)):
            pass
    return file


@pytest.fixture
def on_small_disk(campaign: OnSlurm) -> Iterator[OnSlurm]:
    """The command line with its data on a small disk, and a cluster that was started after it."""
    with _small_disk(campaign.cluster, campaign.folder / "data"), running_cluster() as cluster:
        settings = {"SLURM_CONF": cluster.environment["SLURM_CONF"]}
        yield OnSlurm(campaign.folder, settings, cluster=cluster)


def test_an_allocation_waits_for_room_at_its_start_and_later(on_small_disk: OnSlurm) -> None:
    campaign = on_small_disk
    campaign.write(with_long_runs(ONE_CANDIDATE, 0.2))
    campaign.close_gate()
    assert campaign("submit", "campaign.yaml").code == 0
    full = _fill(campaign.folder / "data")
    campaign.open_gate()
    controller = f"{campaign.folder}/campaign.yaml"
    campaign.until(lambda: living(controller), "its controller")
    campaign.pause(8)
    assert living(controller), campaign.printed()
    full.unlink()
    campaign.until(lambda: len(campaign.records()) > 3, "some runs")
    _fill(campaign.folder / "data")
    campaign.pause(5)
    # What it says of itself would stand on the same disk.
    assert campaign.running(), campaign.printed()
    assert "is full: controllers wait 5 min for room, then stop" in campaign("status").out
    full.unlink()
    campaign.until_over()
    campaign.check_whole()
    # No configuration is blamed, and what was lost is made again.
    assert campaign.outcomes()["ok"] >= 17


#: It says nothing of the disk when it finds no room: as dash does.
_PROGRAM = """\
sleep 0.5
for bytes in 8 65536; do
    echo "{\\"bytes\\": $bytes, \\"time_s\\": 1.$(date +%N | cut -c1-4)e-3}" || exit 1
done 2>/dev/null
"""


#: It needs room in the node's /tmp.
_SCRATCH = 'head -c 4096 /dev/zero >"${TMPDIR:-/tmp}/scratch" 2>/dev/null || exit 1\n'


def _write_with_program(campaign: OnSlurm, program: str) -> None:
    campaign.write(program, "run.sh")
    command = "benchmark: {command: [sh, run.sh], output: json-line}\n"
    lines = ONE_CANDIDATE.splitlines(keepends=True)
    campaign.write("".join(line for line in lines if not line.startswith("timing:")) + command)


def _check_nobody_is_blamed(campaign: OnSlurm) -> None:
    campaign.until_over()
    assert campaign.is_done(), campaign.printed()
    said = campaign.query("SELECT DISTINCT outcome, detail FROM runs WHERE outcome != 'ok'")
    assert {outcome for outcome, _ in said} <= {"node-failure", "interrupted"}, said


def test_a_program_that_finds_no_room_is_not_blamed(on_small_disk: OnSlurm) -> None:
    campaign = on_small_disk
    _write_with_program(campaign, _PROGRAM)
    assert campaign("submit", "campaign.yaml").code == 0
    campaign.until(lambda: len(campaign.records()) > 2, "some runs")
    full = _fill(campaign.folder / "data")
    campaign.pause(5)
    full.unlink()
    _check_nobody_is_blamed(campaign)


def _on_node(campaign: OnSlurm, number: str, command: str) -> None:
    """Types a command on the first node of a job."""
    step = ("srun", f"--jobid={number}", "--overlap", "--nodes=1", "--ntasks=1")
    campaign.cluster.call(*step, "sh", "-c", command)


def test_shared_memory_of_a_node_is_lost_for_a_while(campaign: OnSlurm) -> None:
    campaign.write(with_long_runs(ONE_CANDIDATE, 0.1).replace("nodes: 2", "nodes: 1"))
    assert campaign("submit", "campaign.yaml").code == 0
    campaign.until(lambda: len(campaign.records()) > 3, "some runs")
    number = campaign.running()
    _on_node(campaign, number, "mount -t tmpfs -o size=4k none /dev/shm")
    try:
        lost = "SELECT * FROM runs WHERE outcome != 'ok'"
        campaign.until(lambda: campaign.query(lost), "a run that fails")
    finally:
        _on_node(campaign, number, "umount --lazy /dev/shm")
    campaign.until_over()
    assert campaign.is_done(), campaign.printed()
    # A configuration may need more of it, so the run is a crash; its words name what is full.
    said = campaign.query("SELECT detail FROM runs WHERE outcome = 'crashed'")
    assert said and all("/dev/shm is most likely full" in detail for (detail,) in said)
    assert set(campaign.outcomes()) == {"ok", "crashed"}


def test_a_full_tmp_of_a_node_blames_nobody(campaign: OnSlurm) -> None:
    tmp = campaign.folder / "tmp"
    tmp.mkdir()
    campaign.extra["TMPDIR"] = str(tmp)
    _write_with_program(campaign, _SCRATCH + _PROGRAM)
    assert campaign("submit", "campaign.yaml").code == 0
    campaign.until(lambda: len(campaign.records()) > 2, "some runs")
    fill = f"mount -t tmpfs -o size=4k none {tmp}; head -c 8192 /dev/zero >{tmp}/full; true"
    number = campaign.running()
    _on_node(campaign, number, fill)
    campaign.until(
        lambda: f"the disk of {tmp} is full; waiting for it" in campaign.printed(), "it"
    )
    _on_node(campaign, number, f"umount --lazy {tmp}")
    _check_nobody_is_blamed(campaign)


def test_a_full_tmp_of_the_login_node_loses_no_job(campaign: OnSlurm) -> None:
    tmp = campaign.folder / "tmp"
    tmp.mkdir()
    campaign.extra["TMPDIR"] = str(tmp)
    campaign.write(ONE_CANDIDATE)
    mount = ("mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp))
    campaign.cluster.call(*mount)
    try:
        with campaign.tuning() as tuning:
            tuning.until_at_gate("confirm")
            _fill(tmp)
            # An answer of squeue that is cut short would say that the jobs are gone.
            campaign.pause(6)
            campaign.open_gate()
            tuning.ended()
    finally:
        campaign.cluster.call("umount", "--lazy", str(tmp))
    campaign.check_whole(lost=False)
    assert set(campaign.outcomes()) == {"ok"}
