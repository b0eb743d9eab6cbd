"""A first description, from what a node shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_machines import A100_NODE, GIB, LOGIN_NODE

from commtune.documents.yaml_document import parse_document
from commtune.errors import UserError
from commtune.systems.detection.recognition import look_alikes, recognize_system
from commtune.systems.detection.seen import Clues, SeenGpus, SeenMachine, SeenPort
from commtune.systems.drafting.description import Draft, draft_description
from commtune.systems.loading import build_system
from commtune.systems.nominal.fabric import Fabric, Link, fabric_of
from commtune.systems.schema import System

DAY = date(2026, 11, 22)
BARE = SeenMachine(Clues("vm"), "Some CPU", 1, 2, 1, 24 * GIB)


def read(page: Draft) -> System:
    return build_system(parse_document(page.text, Path("new.yaml")))


def described(seen: SeenMachine, partition: str = "") -> System:
    return read(draft_description("new", seen, DAY, partition))


def test_what_was_seen_is_described() -> None:
    page = draft_description("new", A100_NODE, DAY, "boost_usr_prod")
    system = read(page)
    assert page.placeholders == ("network.topology",)
    assert (system.name, system.checked) == ("new", "2026-11-22")
    assert "lrdn0001.leonardo.local, 2026-11-22" in system.sources["seen"]
    assert "nvidia-smi topo -m" in system.sources["seen"]
    assert fabric_of(system).injection(0) == 3 * 4 * 25e9
    assert [link.pairs for link in system.links] == ["all"]
    assert system.gpus and system.gpus.numa == [0, 0, 1, 1]
    assert system.nics.devices == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert "1 x igb, 1 Gb/s" in page.text
    slurm = system.slurm
    assert slurm and slurm.account == "required"
    assert (slurm.partition, slurm.gpus) == ("boost_usr_prod", "gpus-per-node")
    limits = slurm.partitions["boost_usr_prod"]
    assert (limits.most_nodes, limits.longest, limits.whole_nodes) == (64, 86400, False)
    assert [(library.name, library.version) for library in system.libraries] == [
        ("openmpi", "4.1.6")
    ]


def test_the_same_node_is_recognized_and_looks_like_it() -> None:
    system = described(A100_NODE)
    assert [match.system for match in look_alikes(A100_NODE, [system])] == [system]
    assert recognize_system(Clues(cluster="leonardo"), [system])


def test_memory_of_any_number_of_bytes_is_described() -> None:
    assert A100_NODE.gpus
    for amount in (64 * GIB, 81559 * 2**20, 64 * GIB - 4096, 64 * GIB - 1):
        system = described(replace(A100_NODE, gpus=replace(A100_NODE.gpus, memory=amount)))
        assert system.gpus and system.gpus.memory == amount


def test_a_node_that_shows_next_to_nothing() -> None:
    page = draft_description("new", BARE, DAY)
    system = read(page)
    assert "slurm.partition" in page.placeholders
    assert "nics.bandwidth" in page.placeholders
    assert "launcher.command" in page.placeholders
    assert system.nics.source == ["placeholder"]
    assert system.slurm and system.slurm.source == ["placeholder"]
    assert any("the scheduler" in question for question in system.unknown)
    assert system.recognized is None


def test_a_login_node_gives_what_slurm_says_of_the_nodes() -> None:
    page = draft_description("new", LOGIN_NODE, DAY, "boost_usr_prod")
    system = read(page)
    assert (system.node.cores, system.node.memory) == (32, 482 * GIB)
    assert system.slurm and system.slurm.gpus == "none"
    assert "4 a node, by sinfo" in page.text
    assert {"node.processor", "slurm.gpus"} < set(page.placeholders)
    assert "srun --partition=boost_usr_prod --nodes=1 commtune systems new" in system.unknown[0]


def test_a_login_node_with_gpus_does_not_tell_where_those_of_other_nodes_are() -> None:
    system = described(replace(LOGIN_NODE, gpus=A100_NODE.gpus), "boost_usr_prod")
    assert system.gpus and (system.gpus.count, system.gpus.numa) == (4, [])
    assert system.node.numa_nodes is None


def test_slurms_default_partition_is_taken_if_none_is_named() -> None:
    slurm = described(A100_NODE).slurm
    assert slurm and slurm.partition == "lrd_all_serial"


def test_other_schedulers_are_described() -> None:
    system = described(replace(BARE, scheduler="pbs"))
    assert system.scheduler and system.scheduler.kind == "pbs"
    assert system.slurm is None


@pytest.mark.parametrize(
    ("fabric", "pairs"),
    [
        (Fabric("x", 2, (Link(0, 2, 18, 25e9), Link(1, 2, 18, 25e9))), ["switch"]),
        (Fabric("x", 3, (Link(0, 1, 4, 50e9), Link(1, 2, 1, 50e9))), [[(0, 1)], [(1, 2)]]),
        (Fabric("x", 2, (Link(0, 1, 2, 25e9),)), ["all"]),
    ],
)
def test_links(fabric: Fabric, pairs: list[object]) -> None:
    gpus = SeenGpus("nvidia", "NVIDIA X100", fabric.gpus, GIB, fabric=fabric)
    system = described(replace(BARE, gpus=gpus))
    assert [link.pairs for link in system.links] == pairs
    assert fabric_of(system).capacity == fabric.capacity


def test_numa_nodes_that_processors_lack_are_left_out() -> None:
    gpus = SeenGpus("nvidia", "NVIDIA X100", 2, GIB, numa=(0, 4))
    system = described(replace(BARE, gpus=gpus))
    assert system.gpus and system.gpus.numa == []
    assert any("NUMA node" in question for question in system.unknown)


def test_a_job_with_some_of_the_gpus_is_told_to_ask_for_all() -> None:
    gpus = SeenGpus("nvidia", "NVIDIA X100", 4, GIB, visible=1)
    system = described(replace(BARE, gpus=gpus))
    assert "links between the GPUs: this job has 1 of 4; ask for all" in system.unknown


def test_an_amd_target_is_told_as_what_it_may_be() -> None:
    page = draft_description("new", replace(BARE, gpus=SeenGpus("amd", "gfx90a", 8)), DAY)
    assert "MI250X or MI250 or MI210" in page.text
    assert "gpus.memory" in page.placeholders
    read(page)


@pytest.mark.parametrize("name", ["", "a b", "-x", "a/b", "ä", "a\nb"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UserError, match="can't be called"):
        draft_description(name, BARE, DAY)


@pytest.mark.parametrize("name", ["true", "null", "1", "1e5", "no", "2026-11-22"])
def test_names_that_yaml_would_take_for_something_else(name: str) -> None:
    assert read(draft_description(name, BARE, DAY)).name == name


def test_a_partition_that_is_not_listed() -> None:
    with pytest.raises(UserError, match="no partition 'boost'") as caught:
        draft_description("new", A100_NODE, DAY, "boost")
    assert "boost_usr_prod" in caught.value.hint
    with pytest.raises(UserError, match="no Slurm lists partitions"):
        draft_description("new", BARE, DAY, "boost")


@pytest.mark.slow
@given(st.text(max_size=40), st.text(max_size=12))
def test_whatever_a_machine_calls_its_parts(processor: str, port: str) -> None:
    ports = tuple(
        SeenPort(port or "x", processor or "x", speed, network=port) for speed in (25e9, 1e9)
    )
    system = described(replace(BARE, processor=processor or "x", ports=ports))
    assert system.nics.count == 1
