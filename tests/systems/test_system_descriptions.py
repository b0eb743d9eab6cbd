"""The shipped descriptions: valid, sourced, inside their JSON Schema, and true of themselves."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
import yaml

from commtune.spaces import load_space, presets
from commtune.systems import (
    System,
    direct_bandwidth,
    injection_bandwidth,
    load_system,
    node_bandwidth,
    path_bandwidth,
    systems,
)
from commtune.systems.schema import json_schema_text

PACKAGE = resources.files("commtune.systems")
GBIT = 10**9 // 8


def test_the_shipped_ones() -> None:
    assert systems() == ["leonardo", "lumi"]


@pytest.mark.parametrize("name", systems())
def test_a_description_says_what_it_is(name: str) -> None:
    system = load_system(name)
    assert system.name == name
    assert not system.measured_here  # nobody has run commtune there yet
    assert system.conflicts and system.unknown


def test_the_json_schema_is_up_to_date() -> None:
    shipped = (PACKAGE / "system.schema.json").read_text(encoding="utf-8")
    assert shipped == json_schema_text(), (
        "write it again: python -c 'from commtune.systems.schema import json_schema_text; "
        'print(json_schema_text(), end="")\' > commtune/systems/system.schema.json'
    )


def _with_dates_as_text(text: str) -> Any:
    # Editors see dates as YAML's own kind of value; commtune reads them as text.
    data = yaml.safe_load(text)
    return {**data, "checked": str(data["checked"])}


@pytest.mark.parametrize("name", systems())
def test_editors_accept_a_description(name: str) -> None:
    text = (PACKAGE / "descriptions" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../system.schema.json\n")
    schema = json.loads((PACKAGE / "system.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(_with_dates_as_text(text))


def test_editors_refuse_a_fact_without_a_source() -> None:
    text = (PACKAGE / "descriptions" / "lumi.yaml").read_text(encoding="utf-8")
    schema = json.loads((PACKAGE / "system.schema.json").read_text(encoding="utf-8"))
    data = _with_dates_as_text(text)
    del data["nics"]["source"]
    with pytest.raises(jsonschema.ValidationError, match="source"):
        jsonschema.Draft202012Validator(schema).validate(data)


@pytest.mark.parametrize("name", systems())
def test_no_shipped_space_searches_what_no_configuration_may_set(name: str) -> None:
    # Guarded variables may be declared, but only where a site has to opt in by name.
    guarded = set(load_system(name).guard)
    for preset in presets():
        assert not guarded & set(load_space(preset).variables), preset


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
    paths = [path_bandwidth(lumi, 0, gpu) // GBIT for gpu in range(1, 8)]
    assert paths == [1600, 400, 400, 400, 400, 800, 800]
    assert direct_bandwidth(lumi, 0, 1) == 200 * 10**9  # bytes/s; the guide: 400 GB/s both ways
    assert direct_bandwidth(lumi, 0, 3) == 0
    assert [injection_bandwidth(lumi, gpu) // GBIT for gpu in (0, 1)] == [2800, 2400]
    assert node_bandwidth(lumi) == 800 * GBIT


def test_bandwidths_of_leonardo() -> None:
    leonardo = load_system("leonardo")
    assert {path_bandwidth(leonardo, 0, gpu) // GBIT for gpu in (1, 2, 3)} == {800}
    assert injection_bandwidth(leonardo, 2) == 2400 * GBIT
    assert node_bandwidth(leonardo) == 400 * GBIT


def test_lumi_binds_each_rank_beside_its_gpu() -> None:
    lumi = load_system("lumi")
    assert lumi.binding and lumi.gpus and lumi.node.numa_nodes
    cores = [int(core) for core in lumi.binding.cpu.removeprefix("map_cpu:").split(",")]
    per_numa_node = lumi.node.cores // lumi.node.numa_nodes
    assert [core // per_numa_node for core in cores] == lumi.gpus.numa
    assert all(core % 8 for core in cores), "the first core of each L3 region is not for jobs"


@pytest.mark.parametrize("name", systems())
def test_the_json_form_reads_back(name: str) -> None:
    system = load_system(name)
    plain = system.model_dump(mode="json")
    assert plain["nics"]["bandwidth"] == system.nics.bandwidth
    assert set(plain) == set(System.model_fields)
