"""A disk, or a node's shared memory, that fills while a campaign runs in an allocation."""

from __future__ import annotations

from campaign_texts import ONE_CANDIDATE
from cluster_campaigns import OnCluster
from left_over import living
from small_disks import fill


def test_an_allocation_waits_for_room_at_its_start_and_later(campaign: OnCluster) -> None:
    data = campaign.on_small_disk()
    campaign.write(ONE_CANDIDATE)
    campaign.close_gate()
    campaign.succeed("submit", "campaign.yaml")
    full = fill(data)
    campaign.open_gate()
    controller = f"{campaign.folder}/campaign.yaml"
    campaign.until(lambda: living(controller), "its controller")
    campaign.pause(8)
    assert living(controller), campaign.printed()
    full.unlink()
    campaign.until(lambda: len(campaign.records()) > 3, "some runs")
    fill(data)
    campaign.pause(5)
    # What it says of itself would stand on the same disk.
    assert campaign.running(), campaign.printed()
    assert "is full: controllers wait 5 min for room, then stop" in campaign("status").out
    full.unlink()
    campaign.until_over()
    campaign.check_whole()
    # No configuration is blamed, and what was lost is made again.
    assert campaign.outcomes()["ok"] >= 17


#: It needs room in the node's /tmp.
_SCRATCH = 'head -c 4096 /dev/zero >"${TMPDIR:-/tmp}/scratch" 2>/dev/null || exit 1\n'


def _check_nobody_is_blamed(campaign: OnCluster) -> None:
    campaign.until_over()
    assert campaign.is_done(), campaign.printed()
    said = campaign.query("SELECT DISTINCT outcome, detail FROM runs WHERE outcome != 'ok'")
    assert {outcome for outcome, _ in said} <= {"node-failure", "interrupted"}, said


def test_a_program_that_finds_no_room_is_not_blamed(campaign: OnCluster) -> None:
    data = campaign.on_small_disk()
    campaign.write_without_mpi(ONE_CANDIDATE, "sleep 0.5")
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.records()) > 2, "some runs")
    full = fill(data)
    campaign.pause(5)
    full.unlink()
    _check_nobody_is_blamed(campaign)


def test_shared_memory_of_a_node_is_lost_for_a_while(campaign: OnCluster) -> None:
    campaign.write(ONE_CANDIDATE.replace("nodes: 2", "nodes: 1"))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.records()) > 3, "some runs")
    campaign.cluster.on_nodes("mount -t tmpfs -o size=4k none /dev/shm")
    try:
        crashed = "SELECT detail FROM runs WHERE outcome = 'crashed'"
        campaign.until(lambda: campaign.query(crashed), "a run that crashes")
    finally:
        campaign.cluster.on_nodes("umount --lazy /dev/shm")
    campaign.until_over()
    assert campaign.is_done(), campaign.printed()
    # A configuration may need more of it, so the run is a crash; its message names what is full.
    said = [detail for (detail,) in campaign.query(crashed)]
    assert any("/dev/shm is most likely full" in detail for detail in said), said
    # A run that was being launched at that moment may be lost in another way.
    assert set(campaign.outcomes()) <= {"ok", "crashed", "failed", "node-failure"}


def test_a_full_tmp_of_a_node_blames_nobody(campaign: OnCluster) -> None:
    tmp = campaign.folder / "tmp"
    tmp.mkdir()
    tmp.chmod(0o1777)
    sets = f"before: export TMPDIR={tmp}; "
    campaign.write_without_mpi(ONE_CANDIDATE.replace("before: ", sets), f"{_SCRATCH}sleep 0.5")
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.records()) > 2, "some runs")
    mount = f"mount -t tmpfs -o size=4k none {tmp}; head -c 8192 /dev/zero >{tmp}/full; true"
    campaign.cluster.on_nodes(mount)
    try:
        full = f"the disk of {tmp} is full; waiting for it"
        campaign.until(lambda: full in campaign.printed(), "it")
    finally:
        campaign.cluster.on_nodes(f"umount --lazy {tmp}")
    _check_nobody_is_blamed(campaign)


def test_a_full_tmp_of_the_login_node_loses_no_job(campaign: OnCluster) -> None:
    tmp = campaign.on_small_disk("tmp")
    campaign.extra["TMPDIR"] = str(tmp)
    campaign.write_without_mpi(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        full = fill(tmp)
        # An answer about the queue that is cut short would say that the jobs are gone.
        campaign.pause(6)
        campaign.open_gate()
        if campaign.words.submits_by_tmp:
            tuning.until_said(campaign.words.submits_by_tmp)
            full.unlink()
        tuning.ended()
    campaign.check_whole(lost=False)
    assert set(campaign.outcomes()) == {"ok"}
