"""The shipped spaces: valid, sourced, inside their JSON Schema, and true of the real library."""

from __future__ import annotations

import random
import re
import sys
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from components import require_component
from json_schemas import check_by_schema
from waiting import PATIENCE_S

from commtune import process
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import list_presets, load_space
from commtune.spaces.parameter import Kind, Risk
from commtune.spaces.space import Space

PACKAGE = resources.files("commtune.spaces")
MPIVARS = sorted((Path(__file__).parents[2] / ".mpi").glob("mpich*/bin/mpivars"))
FILES = sorted(Path(str(PACKAGE / "presets")).rglob("*.yaml"))
#: One space of each family, the largest: the others are cut from it.
LARGEST = [
    n for n in list_presets() if f"{n}-thorough" not in list_presets() and not n.endswith("-quick")
]
PROMISED = {
    "nccl": [
        "NCCL_IGNORE_CPU_AFFINITY", "NCCL_NET_GDR_LEVEL", "NCCL_ALGO", "NCCL_PROTO",
        "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD",
        "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_IB_SL",
    ],
    "rccl": ["NCCL_NCHANNELS_PER_PEER", "HSA_ENABLE_SDMA"],
    "ucx": ["UCX_RNDV_THRESH", "UCX_IB_SL"],
    "cray-mpich-cxi": ["MPICH_GPU_IPC_THRESHOLD", "MPICH_GPU_ALLREDUCE_BLK_SIZE"],
}  # fmt: skip


preset = cache(load_space)


def declared_variables(space: Space) -> set[str]:
    return {v for parameter in space.declared.values() for v in parameter.variables}


def test_the_presets() -> None:
    alone = {"cray-mpich-cxi", "intel-host", "mpich-host", "mpich-host-allreduce", "nccl"}
    alone |= {"mvapich", "openmpi-hcoll", "openmpi-host", "rccl", "ucx"}
    sized = {
        "cray-mpich-amd", "cray-mpich-gpu", "intel-mpi", "intel-mpi-infiniband", "mpich",
        "mpich-gpu", "mvapich-gdr", "nccl-efa", "nccl-infiniband",
        "nccl-node", "nccl-roce", "nccl-slingshot", "nccl-sockets", "oneccl", "openmpi",
        "openmpi-ucc", "openmpi-ucx-gpu", "rccl-infiniband", "rccl-node", "rccl-slingshot",
    }  # fmt: skip
    in_three = {f"{name}{size}" for name in sized for size in ("-quick", "", "-thorough")}
    assert set(list_presets()) == alone | in_three
    assert len(list_presets()) == len(set(list_presets()))


@pytest.mark.parametrize("name", [n for n in list_presets() if n.endswith("-quick")])
def test_sizes_grow(name: str) -> None:
    family = name.removesuffix("-quick")
    quick, standard, thorough = (preset(n) for n in (name, family, f"{family}-thorough"))
    assert quick.by_name.keys() < standard.by_name.keys() < thorough.by_name.keys()
    assert 9 <= len(quick.parameters) <= 16
    assert quick.count() < standard.count() < thorough.count()
    assert len({quick.key, standard.key, thorough.key}) == 3


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_is_complete(name: str) -> None:
    space = preset(name)
    assert space.name == name
    assert space.summary and space.library and space.versions
    for parameter in space.declared.values():
        assert parameter.source, f"{parameter.name} has no source"
        assert parameter.default, f"{parameter.name} does not say its default"
        assert parameter.applies_to, f"{parameter.name} does not say where it has an effect"
        if Risk.HARM_TO_OTHERS in parameter.risks:
            assert parameter.name in space.left_out


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGEST)
def test_every_value_of_a_preset_can_be_reached(name: str) -> None:
    # A value that no legal configuration has would be a mistake in a condition.
    space, rng = preset(name), random.Random(3)
    space = customize_space(space, opt_in=list(space.left_out))
    wanted = {(p.name, v) for p in space.parameters for v in p.values if v is not None}
    for _ in range(400):
        wanted -= set(space.assignment(space.sample(rng)).items())
    for parameter, value in wanted:
        without = customize_space(space, pin={parameter: "unset"}).count()
        narrowed = customize_space(space, narrow={parameter: [value]})
        assert narrowed.count() > without, f"{parameter}={value}"


def test_the_embedded_default_has_about_twelve_thousand_configurations() -> None:
    space = preset("mpich-host-allreduce")
    keys = {configuration.key for configuration in space.configurations()}
    assert len(keys) == space.count() == 12632


@pytest.mark.parametrize("name", PROMISED)
def test_promised_variables_are_there(name: str) -> None:
    assert set(PROMISED[name]) <= declared_variables(preset(name))


def test_names_that_only_rccl_has() -> None:
    assert "NCCL_NCHANNELS_PER_PEER" not in declared_variables(preset("nccl"))


def test_dangerous_settings_need_an_opt_in() -> None:
    nccl = preset("nccl")
    assert {"NCCL_IB_SL", "NCCL_CROSS_NIC"} <= set(nccl.left_out)
    assert "UCX_IB_SL" in preset("ucx").left_out
    for name in ("nccl", "rccl"):
        assert "LL128" not in preset(name).by_name["NCCL_PROTO"].values
    (problem,) = nccl.check({"NCCL_PROTO": "LL128"})
    assert "opt_in: [NCCL_PROTO=LL128]" in problem
    opened = customize_space(nccl, opt_in=["NCCL_PROTO=LL128", "NCCL_IB_SL"])
    assert opened.check({"NCCL_PROTO": "LL128", "NCCL_IB_SL": "1"}) == []
    assert opened.count() > nccl.count()


def test_channel_limits_are_never_crossed() -> None:
    for name in ("nccl", "rccl"):
        for setting in preset(name).by_name["channels"].settings.values():
            low = int(setting.get("NCCL_MIN_NCHANNELS", 0))
            assert low <= int(setting.get("NCCL_MAX_NCHANNELS", 1000))


def test_sockets_have_a_limit() -> None:
    nccl = preset("nccl")
    (problem,) = nccl.check({"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"})
    assert "the product must be at most 64" in problem
    assert not nccl.check({"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "4"})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_editors_accept_a_preset(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    up = "../" * len(file.relative_to(str(PACKAGE)).parts[1:])
    assert text.startswith(f"# yaml-language-server: $schema={up}space.schema.json\n")
    check_by_schema("spaces/space", yaml.safe_load(text))


def test_editors_refuse_an_unknown_key() -> None:
    wrong: dict[str, Any] = {"space": 1, "name": "x", "library": "y"}
    wrong["parameters"] = [{"name": "A", "kind": "bool", "speling": "n/y"}]
    with pytest.raises(jsonschema.ValidationError):
        check_by_schema("spaces/space", wrong)


@cache
def mpich_variables() -> dict[str, tuple[str, list[str]]]:
    """What mpivars says: for each variable its default, and the words of its enumeration."""
    found = process.run_process(
        [MPIVARS[-1]], environment={}, timeout_s=PATIENCE_S, whole_output=True
    )
    described: dict[str, tuple[str, list[str]]] = {}
    for entry in re.split(r"\n\t(?=MPIR_CVAR)", found.output.split("Performance Variables")[0]):
        match = re.match(r"(MPIR_CVAR_\w+)\s*=([^\t]*)", entry)
        if match:
            words = re.findall(r"^(\w+) *- ", entry, flags=re.MULTILINE)
            described[match[1]] = (match[2], words)
    return described


@pytest.mark.parametrize("name", ["mpich-host-allreduce", "mpich-host"])
def test_mpich_knows_every_variable_value_and_default(name: str) -> None:
    require_component("mpivars of MPICH in .mpi", bool(MPIVARS))
    known = mpich_variables()
    space = preset(name)
    assert set(space.variables) <= set(known)
    for parameter in space.parameters:
        if parameter.kind is Kind.GROUP:
            continue
        default, words = known[parameter.name]
        if parameter.kind is Kind.CHOICE and words:
            assert set(parameter.settings) <= set(words), parameter.name
            assert parameter.default == words[int(default)], parameter.name
        else:
            assert parameter.default == default, parameter.name


def test_mpich_knows_the_variables_and_words_of_the_spaces_from_the_catalogue() -> None:
    require_component("mpivars of MPICH in .mpi", bool(MPIVARS))
    known = mpich_variables()
    space = preset("mpich-thorough")
    assert set(space.variables) <= set(known)
    for parameter in space.parameters:
        words = known[parameter.name][1]
        if parameter.kind is Kind.CHOICE and words:
            assert set(parameter.settings) <= set(words), parameter.name


def test_importing_spaces_stays_light() -> None:
    code = "import sys, commtune.spaces.loading; print(*sorted(sys.modules))"
    root = str(Path(__file__).parents[2])
    found = process.run_process(
        [sys.executable, "-c", code],
        environment={"PYTHONPATH": root},
        timeout_s=PATIENCE_S,
        whole_output=True,
    )
    loaded = set(found.output.split())
    assert "pydantic" in loaded
    for heavy in ("numpy", "optuna", "sqlalchemy", "typer", "rich", "psutil"):
        assert heavy not in loaded
