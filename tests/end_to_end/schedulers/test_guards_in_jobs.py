"""Guard variables that are set where a campaign is started reach its ranks, and cut its space."""

from __future__ import annotations

import json

import pytest
from campaign_texts import ONE_BLOCK
from cluster_campaigns import OnCluster
from made_files import write_script

_SPACE = """\
space: 1
name: guarded
version: 1
summary: What a guard switches off, and what it does not.
library: mpich
versions: ">=4"
facts: [nccl]
parameters:
  - {name: NCCL_NVLS_NCHANNELS, values: [4]}
  - {name: NCCL_NTHREADS, values: [128]}
  - {name: NCCL_NSOCKS_PERTHREAD, values: [2], when: {NCCL_NTHREADS: unset}}
"""
_NARROW = ONE_BLOCK[ONE_BLOCK.index("narrow:") : ONE_BLOCK.index("slurm:")]
_TEXT = (
    ONE_BLOCK.replace("space: mpich-host-allreduce", "space: ./guarded.yaml")
    .replace(_NARROW, "")
    .replace("slurm: {", "slurm: {prefix: [./seen], ")
)
_SEES = 'printenv NCCL_NVLS_ENABLE >>"$HOME/ranks" || echo none >>"$HOME/ranks"\nexec "$@"'


def written(campaign: OnCluster, text: str) -> None:
    """A campaign whose ranks note what they see."""
    (campaign.folder / "guarded.yaml").write_text(_SPACE)
    seen = write_script(campaign.folder / "seen", _SEES)
    campaign.write_without_mpi(text.replace("./seen", str(seen)))


def ranks_saw(campaign: OnCluster) -> set[str]:
    """What the ranks of all runs saw of the guard."""
    return set((campaign.folder / "ranks").read_text().split())


@pytest.mark.parametrize("command", ["tune", "submit"])
def test_a_guard_of_the_login_node_passes_and_cuts(campaign: OnCluster, command: str) -> None:
    written(campaign, _TEXT)
    campaign.extra["NCCL_NVLS_ENABLE"] = "0"
    said = campaign.succeed(command, "campaign.yaml")
    cut = "NCCL_NVLS_ENABLE=0 is set in this environment: not searched, since without effect"
    assert f"{cut} then: NCCL_NVLS_NCHANNELS\n" in said.out + said.err
    campaign.until_over()
    assert "give the campaign another name" not in campaign.printed()
    campaign.check_whole()
    assert ranks_saw(campaign) == {"0"}
    del campaign.extra["NCCL_NVLS_ENABLE"]
    said = campaign("tune", "campaign.yaml")
    assert said.code == 2
    assert "space.content: " in said.err  # what the guard cut is there again


def test_a_guard_of_the_nodes_alone_does_not_change_the_question(campaign: OnCluster) -> None:
    on_nodes = _TEXT.replace("before: '", "before: 'export NCCL_NVLS_ENABLE=0; ")
    assert on_nodes != _TEXT
    written(campaign, on_nodes)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    assert "give the campaign another name" not in campaign.printed()
    campaign.check_whole()
    assert ranks_saw(campaign) == {"0"}


@pytest.mark.parametrize("command", ["tune", "submit"])
def test_a_pin_replaces_no_guard_of_the_nodes(campaign: OnCluster, command: str) -> None:
    on_nodes = _TEXT.replace("before: '", "before: 'export NCCL_NVLS_ENABLE=0; ")
    long_enough = on_nodes.replace("search: 100ms", "search: 10min")
    pinned = "extend: [{name: NCCL_NVLS_ENABLE, kind: integer, values: [2]}]\n"
    written(campaign, f"{long_enough}{pinned}pin: {{NCCL_NVLS_ENABLE: 2}}\n")
    said = campaign(command, "campaign.yaml")
    if command == "tune":
        assert "blocks in a row were lost" in said.err
        assert "commtune: NCCL_NVLS_ENABLE=0 is set on " in said.err
        assert "this job asks for 2: remove it from the pins of the campaign" in said.err
    else:
        campaign.until_over()
        assert "the campaign pins it to 2" in campaign.printed()
    assert not (campaign.folder / "ranks").exists()


def test_a_campaign_that_a_guard_cut_is_verified_as_the_same(campaign: OnCluster) -> None:
    written(campaign, f"{_TEXT}protected_variables: [NCCL_SOCKET_NTHREADS]\n")
    campaign.extra["NCCL_SOCKET_NTHREADS"] = "0"
    said = campaign("tune", "campaign.yaml")
    assert "not searched, since without effect then: NCCL_NSOCKS_PERTHREAD" in said.err
    campaign.state_gain(NCCL_NTHREADS="128")
    again = ("verify", "small/stated", "--time", "1s", "--json")
    found = json.loads(campaign(*again).out)
    assert (found["changes"], found["campaign"]) == ([], "small")
    del campaign.extra["NCCL_SOCKET_NTHREADS"]
    found = json.loads(campaign(*again).out)
    assert found["changes"] == ['guards.NCCL_SOCKET_NTHREADS: "0" -> null']
