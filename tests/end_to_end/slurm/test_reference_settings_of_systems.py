"""A campaign on a system of one's own tries the sets for it first, with values presets lack."""

from __future__ import annotations

import json

from campaign_texts import TWO_NODES
from slurm_campaigns import OnSlurm

#: Called like the machine that the sets are for, and nothing else of it.
SYSTEM = """\
system: 1
name: aurora
summary: Two nodes of a test.
checked: 2026-11-21
sources: {me: I looked}
node: {processor: some, cores: 2, numa_nodes: 1, memory: 8GiB, source: me}
nics: {model: some, count: 1, bandwidth: 100 Gb/s, source: me}
slurm:
  account: optional
  partition: main
  partitions: {main: {source: me}}
  gpus: none
  exclusive: true
  source: me
launcher: {command: srun, source: me}
network: {fabric: some, topology: one switch, source: me}
"""
EAGER = {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "1000000"}


def test_sets_for_a_system_are_tried_first_and_whole(campaign: OnSlurm) -> None:
    narrowed = TWO_NODES.partition("narrow:")[0].replace("mpich-host-allreduce", "mpich")
    campaign.write(SYSTEM, "aurora.yaml")
    campaign.write_without_mpi(
        narrowed
        + "slurm: {mpi: pmi2, poll: 0.3s}\nsystem: ./aurora.yaml\nreference_settings: auto\n"
    )
    said = campaign.succeed("tune", "campaign.yaml")
    assert "reference:alcf-aurora-mpich-eager is tried first, as it stands" in said.err
    assert "the search also has " in said.err
    assert "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD=1000000" in said.err
    ((settings,),) = campaign.query("SELECT settings FROM campaigns")
    sets = json.loads(settings)["reference_settings"]
    assert EAGER in [one["tried"] for one in sets]
    assert all(one["left_out"] == {} for one in sets)
    tried = campaign.query(
        "SELECT c.environment, t.origin FROM trials t JOIN configurations c "
        "ON c.id = t.configuration_id WHERE t.number = 1"
    )
    ((environment, origin),) = tried
    assert (json.loads(environment), origin) == (sets[0]["tried"], "user")
