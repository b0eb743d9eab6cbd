"""The shipped descriptions: valid, sourced, inside their JSON Schema, and true of themselves."""

from __future__ import annotations

from importlib import resources
from itertools import combinations
from typing import Any

import jsonschema
import pytest
import yaml
from json_schemas import check_by_schema

from commtune.spaces.loading import list_presets, load_space
from commtune.systems.loading import list_systems, load_system
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.schema import System

PACKAGE = resources.files("commtune.systems")
GBIT = 10**9 // 8


def _path_bandwidth(system: System, a: int, b: int) -> float:
    return fabric_of(system).pair_bandwidths().get((a, b), 0)


def _node_bandwidth(system: System) -> float:
    ports = fabric_of(system).ports
    assert ports is not None
    return ports.together


#: By system: GB/s from GPU 0 to GPU 1, out of GPU 0 to other GPUs, and out of a node. Sites and
#: studies state those of a pair and of a node; those of a GPU are its links added up.
REACHED = {
    "alps": (150, 450, 100),
    "aws-p5": (450, 450, 400),
    "azure-ndh100v5": (450, 450, 400),
    "delta": (100, 300, 25),
    "dgx-a100": (300, 300, 200),
    "dgx-h100": (450, 450, 400),
    "dgx-h200": (450, 450, 400),
    "frontier": (200, 350, 100),
    "gcp-a3mega": (450, 450, 200),
    "jupiter": (150, 450, 100),
    "leonardo": (100, 300, 50),
    "lumi": (200, 350, 100),
    "perlmutter": (100, 300, 100),
    "polaris": (100, 300, 50),
}
#: The same where some GPUs of a node are joined by other things than links of their own, and two
#: of those GPUs.
NOT_ALL_JOINED = {
    "aurora": (64, 64, 200, (1, 2)),
    "lassen": (75, 75, 25, (1, 2)),
    "summit": (50, 100, 25, (2, 3)),
}

#: Out of a node, where no source says how its GPUs are joined.
NOT_SAID = {"isambard-ai": 100, "marenostrum5": 100, "neuron": 100}
#: Out of a node with one GPU, or none.
NOTHING_TO_JOIN = {"frontera": 12.5, "stampede3": 12.5, "vista": 50}


def test_the_shipped_ones() -> None:
    assert list_systems() == sorted([*REACHED, *NOT_ALL_JOINED, *NOT_SAID, *NOTHING_TO_JOIN])


@pytest.mark.parametrize("name", list_systems())
def test_a_description_says_what_it_is(name: str) -> None:
    system = load_system(name)
    assert system.name == name
    assert not system.measured_here  # nobody has run commtune there yet
    assert system.conflicts and system.unknown


def _with_dates_as_text(text: str) -> Any:
    # Editors see dates as YAML's own kind of value; commtune reads them as text.
    data = yaml.safe_load(text)
    return {**data, **{key: str(data[key]) for key in ("checked", "retired") if key in data}}


@pytest.mark.parametrize("name", list_systems())
def test_editors_accept_a_description(name: str) -> None:
    text = (PACKAGE / "descriptions" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../system.schema.json\n")
    check_by_schema("systems/system", _with_dates_as_text(text))


def test_editors_refuse_a_fact_without_a_source() -> None:
    text = (PACKAGE / "descriptions" / "lumi.yaml").read_text(encoding="utf-8")
    data = _with_dates_as_text(text)
    del data["nics"]["source"]
    with pytest.raises(jsonschema.ValidationError, match="source"):
        check_by_schema("systems/system", data)


def test_no_shipped_space_searches_what_no_configuration_may_set() -> None:
    # Guarded variables may be declared, but only where a site has to opt in by name.
    guarded = {name: set(load_system(name).guard) for name in list_systems()}
    for preset in list_presets():
        searched = set(load_space(preset).variables)
        assert not {name for name, variables in guarded.items() if variables & searched}, preset


def test_spaces_of_a_library_are_spaces_of_that_library() -> None:
    named = [library for name in list_systems() for library in load_system(name).libraries]
    assert sum(bool(library.spaces) for library in named) >= 10
    for library in named:
        assert {load_space(space).library for space in library.spaces} <= {library.name}


def test_lumi_modules_have_the_links_that_the_guide_counts() -> None:
    lumi = load_system("lumi")
    outwards = [0, 0, 0, 0]
    for link in lumi.links:
        assert not isinstance(link.pairs, str)
        for a, b in link.pairs:
            if a // 2 != b // 2:
                outwards[a // 2] += link.links
                outwards[b // 2] += link.links
    assert outwards == [5, 5, 5, 5]


def test_bandwidths_of_lumi() -> None:
    lumi = load_system("lumi")
    paths = [_path_bandwidth(lumi, 0, gpu) // GBIT for gpu in range(1, 8)]
    assert paths == [1600, 400, 400, 400, 400, 800, 800]
    direct = fabric_of(lumi).capacity
    assert direct[0, 1] == 200 * 10**9  # bytes/s; the guide: 400 GB/s both ways
    assert (0, 3) not in direct
    assert [fabric_of(lumi).injection(gpu) // GBIT for gpu in (0, 1)] == [2800, 2400]
    assert _node_bandwidth(lumi) == 800 * GBIT


def test_bandwidths_of_leonardo() -> None:
    leonardo = load_system("leonardo")
    assert {_path_bandwidth(leonardo, 0, gpu) // GBIT for gpu in (1, 2, 3)} == {800}
    assert fabric_of(leonardo).injection(2) == 2400 * GBIT
    assert _node_bandwidth(leonardo) == 400 * GBIT


@pytest.mark.parametrize("name", REACHED)
def test_bandwidths_that_the_sources_state(name: str) -> None:
    system = load_system(name)
    assert system.gpus
    pair, gpu, node = (gbytes * 10**9 for gbytes in REACHED[name])
    assert _path_bandwidth(system, 0, 1) == pair
    assert fabric_of(system).injection(0) == gpu
    assert _node_bandwidth(system) == node
    pairs = combinations(range(system.gpus.count), 2)
    assert all(_path_bandwidth(system, a, b) > 0 for a, b in pairs)


@pytest.mark.parametrize("name", NOT_ALL_JOINED)
def test_gpus_without_a_path_have_no_bandwidth(name: str) -> None:
    system = load_system(name)
    pair, gpu, node, (a, b) = NOT_ALL_JOINED[name]
    assert _path_bandwidth(system, 0, 1) == pair * 10**9
    assert fabric_of(system).injection(0) == gpu * 10**9
    assert _node_bandwidth(system) == node * 10**9
    assert _path_bandwidth(system, a, b) == 0


@pytest.mark.parametrize("name", NOT_SAID)
def test_what_no_source_says_is_left_out(name: str) -> None:
    system = load_system(name)
    assert not system.links
    assert _node_bandwidth(system) == NOT_SAID[name] * 10**9
    # Where no source says which GPUs share a port, neighbours are a guess.
    ports = fabric_of(system).ports
    assert system.gpus and ports and ports.assumed == (system.nics.sharing is None)
    assert ports.of_gpu == tuple(gpu * 4 // system.gpus.count for gpu in range(system.gpus.count))


@pytest.mark.parametrize("name", NOTHING_TO_JOIN)
def test_a_node_without_links(name: str) -> None:
    system = load_system(name)
    assert not system.links
    assert system.nics.count * system.nics.bandwidth == NOTHING_TO_JOIN[name] * 10**9


def test_frontier_has_the_nodes_of_lumi() -> None:
    # One board, described by two sites; only the figure for its memory differs.
    frontier, lumi = fabric_of(load_system("frontier")), fabric_of(load_system("lumi"))
    assert frontier.capacity == lumi.capacity
    assert frontier.ports == lumi.ports
    assert frontier.host_link == lumi.host_link


def test_what_studies_call_the_ceiling_between_nodes() -> None:
    # CommBench's models: ports that neighbours share (packed), or that are dealt out (Aurora).
    def nodes(name: str) -> list[float]:
        fabric = fabric_of(load_system(name))
        found = [fabric.group_bandwidth(k) for k in range(1, fabric.gpus + 1)]
        return [bytes_per_s / 10**9 for bytes_per_s in found if bytes_per_s]

    assert nodes("perlmutter") == [25, 50, 75, 100]
    assert nodes("frontier") == [25, 25, 37.5, 50, 62.5, 75, 87.5, 100]
    assert nodes("dgx-a100") == [25, 50, 75, 100, 125, 150, 175, 200]
    assert nodes("summit")[2] == 12.5 and nodes("summit")[5] == 25
    aurora = nodes("aurora")
    assert aurora[7] == 200 and aurora[8] == 112.5 and aurora[11] == 150


@pytest.mark.parametrize("name", list_systems())
def test_no_two_systems_are_recognized_by_the_same(name: str) -> None:
    here = load_system(name).recognized
    for other in list_systems():
        there = load_system(other).recognized
        if here is None or there is None or other == name:
            continue
        assert not set(here.cluster) & set(there.cluster)
        assert not here.environment.items() & there.environment.items()
        assert not set(here.hosts) & set(there.hosts)


def test_what_is_out_of_service_or_run_by_others_says_so() -> None:
    found = {name: load_system(name) for name in list_systems()}
    assert {name for name, system in found.items() if system.retired} == {"summit"}
    others = {name: system.scheduler.kind for name, system in found.items() if system.scheduler}
    assert others == {"aurora": "pbs", "lassen": "lsf", "polaris": "pbs", "summit": "lsf"}


@pytest.mark.parametrize("name", ["lumi", "frontier"])
def test_each_rank_is_bound_beside_its_gpu(name: str) -> None:
    here = load_system(name)
    assert here.binding and here.gpus and here.node.numa_nodes
    cores = [int(core) for core in here.binding.cpu.removeprefix("map_cpu:").split(",")]
    per_numa_node = here.node.cores // here.node.numa_nodes
    assert [core // per_numa_node for core in cores] == here.gpus.numa
    assert all(core % 8 for core in cores), "the first core of each L3 region is not for jobs"


@pytest.mark.parametrize("name", ["alps", "delta"])
def test_each_rank_is_bound_to_the_numa_node_of_its_gpu(name: str) -> None:
    here = load_system(name)
    assert here.binding and here.gpus
    numbers = here.binding.cpu.removeprefix("map_ldom:").split(",")
    assert [int(number) for number in numbers] == here.gpus.numa


@pytest.mark.parametrize("name", list_systems())
def test_the_json_form_reads_back(name: str) -> None:
    system = load_system(name)
    plain = system.model_dump(mode="json")
    assert plain["nics"]["bandwidth"] == system.nics.bandwidth
    assert set(plain) == set(System.model_fields)
