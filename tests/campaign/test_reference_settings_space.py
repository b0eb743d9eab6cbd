"""What a campaign's space gets for its reference settings, and what stays out of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from commtune.campaign.jobs import pin_by_system
from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.reference_settings import CampaignSets, TriedFirst, _fit_set
from commtune.documents.yaml_document import Document
from commtune.errors import SpaceError
from commtune.model import Configuration
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import load_space
from commtune.spaces.reference_additions import ExtendedSpace, add_reference_settings
from commtune.spaces.space import Space
from commtune.systems.loading import list_systems, load_system
from commtune.systems.reference_settings import all_reference_settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference-settings.md"
EAGER = "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD"
MPICH = "campaign: 1\nname: b\nspace: mpich\n"
SET = "reference_settings: [alcf-aurora-mpich-eager]\n"
RULES = """\
space: 1
name: small
library: mpich
parameters:
  - {name: MPIR_CVAR_CH4_SHM_POSIX_EAGER, kind: choice, values: [iqueue]}
  - {name: MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD, kind: bytes, values: [1024, 2097152]}
  - {name: OTHER, kind: integer, values: [1, 2],
     when: {MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD: set}}
  - {name: LIMIT, kind: integer, values: [10, 3000000]}
forbidden:
  - {when: {MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD: 2097152, OTHER: 2}, why: they hang}
relations:
  - {at_most: [MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD, LIMIT], why: it overflows}
"""
#: How reasons begin why something of a set that fits a described system is not tried there.
REASONS = re.compile(
    r"pinned to|protected on|needs an opt-in, opt_in: \[|not searched \((site|guard|diagnose)|"
    r"without effect here: |in no catalogue|the catalogue of \w+ does not describe it|"
    r"no value that the catalogue names|may harm others|it needs |keeps hardware safe"
)


def _described() -> list[tuple[str, str, str]]:
    """Each described system with a space of its and a set that fits both."""
    return [
        (name, space, one.name)
        for name in list_systems()
        for library in load_system(name).libraries
        for space in library.spaces
        for one in all_reference_settings().values()
        if one.is_for(name, library.name)
    ]


def _tried(name: str, space_name: str, set_name: str) -> tuple[Space, TriedFirst]:
    system, one, space = (
        load_system(name),
        all_reference_settings()[set_name],
        load_space(space_name),
    )
    # Aurora pins what the space of oneCCL searches, so a campaign has to.
    if name == "aurora" and "CCL_ATL_TRANSPORT" in space.by_name:
        space = customize_space(space, pin={"CCL_ATL_TRANSPORT": "mpi"})
    sets = CampaignSets((one,), system, ())
    larger = sets.extend_space(space, one_node=False)
    opened = customize_space(larger.space, opt_in=sets.list_opened(larger.space, (), ()))
    pinned = pin_by_system(Document(None, error_class=SpaceError), opened, system)
    (tried,) = sets.fit(pinned, larger)
    return pinned, tried


def _verdict(tried: TriedFirst) -> str:
    if not tried.missing:
        return "whole"
    return "in part" if tried.configuration else "not at all"


@pytest.mark.parametrize(("system", "space", "name"), _described())
def test_a_set_that_fits_is_tried_whole_or_says_why_not(
    system: str, space: str, name: str
) -> None:
    searched, tried = _tried(system, space, name)
    settings = all_reference_settings()[name].settings
    assert searched.check(tried.configuration) == []
    left_out = {what.partition("=")[0] for what in tried.left_out}
    assert left_out | set(tried.configuration) == set(settings)
    for variable, value in tried.configuration.items():
        setting = f"{variable}={settings[variable]}"
        assert value == tried.meant.get(setting, settings[variable])
    assert [why for why in tried.left_out.values() if not REASONS.match(why)] == []


def test_the_page_has_how_many_are_tried_whole() -> None:
    found = Counter(_verdict(_tried(*one)[1]) for one in _described())
    said = (
        f"There are {found.total()} combinations of a described system, one of its spaces and a "
        f"set for both. Without any opt-in, {found['whole']} are tried whole, "
        f"{found['in part']} in part and {found['not at all']} not at all"
    )
    assert said in " ".join(DOCUMENT.read_text(encoding="utf-8").split())


def campaign(more: str, head: str = MPICH) -> CampaignSpec:
    return parse_campaign(head + more, Path.cwd())


def test_a_value_that_the_preset_lacks_is_tried_first() -> None:
    plain, spec = campaign(""), campaign(SET)
    assert "1000000" not in plain.plan.space.by_name[EAGER].values
    parameter = spec.plan.space.by_name[EAGER]
    assert set(parameter.values) == {*plain.plan.space.by_name[EAGER].values, "1000000"}
    assert parameter.ordered
    assert spec.plan.first == (Configuration({EAGER: "1000000"}),)
    assert spec.plan.space.key != plain.plan.space.key == campaign("").plan.space.key
    assert spec.plan.space.key == campaign(SET).plan.space.key
    assert spec.remarks == (
        "note: reference:alcf-aurora-mpich-eager is tried first, as it stands",
        f"note: for its reference settings, the search also has {EAGER}=1000000",
    )


@pytest.mark.parametrize("key", ["narrow: {%s: [1024]}", "pin: {%s: 1024}", "pin: {%s: unset}"])
def test_what_the_campaign_narrows_or_pins_wins(key: str) -> None:
    wanted = next(v for v in load_space("mpich").by_name[EAGER].values if v is not None)
    spec = campaign(SET + (key % EAGER).replace("1024", wanted) + "\n")
    assert spec.plan.first == ()
    assert "1000000" not in getattr(spec.plan.space.by_name.get(EAGER), "values", ())
    assert not any("the search also has" in said for said in spec.remarks)


def small(tmp_path: Path, settings: dict[str, str]) -> ExtendedSpace:
    (tmp_path / "small.yaml").write_text(RULES, encoding="utf-8")
    return add_reference_settings(
        load_space(tmp_path / "small.yaml"), [settings], (), one_node=True
    )


def test_rules_know_a_value_that_came_in(tmp_path: Path) -> None:
    space = small(tmp_path, {EAGER: "1000000"}).space
    assert space.check({EAGER: "1000000", "OTHER": "1", "LIMIT": "3000000"}) == []
    assert "it overflows" in space.check({EAGER: "1000000", "LIMIT": "10"})[0]
    # Between a value that is forbidden and one that is not: in doubt, it is.
    assert "they hang" in space.check({EAGER: "1000000", "OTHER": "2"})[0]


def grown_nccl(settings: dict[str, str], *, one_node: bool = False) -> ExtendedSpace:
    return add_reference_settings(load_space("nccl-node"), [settings], (), one_node=one_node)


def test_a_number_of_old_releases_is_tried_by_its_name() -> None:
    head = (
        "campaign: 1\nname: b\nspace: rccl-slingshot\nsystem: lumi\nslurm: {account: a}\n"
        "workload: {backend: xccl, nodes: 2, ranks: 16}\nreference_settings: [lumi-paper-levers]\n"
    )
    spec = campaign("", head)
    (tried,) = spec.reference_settings
    assert all_reference_settings()["lumi-paper-levers"].settings["NCCL_NET_GDR_LEVEL"] == "3"
    assert tried.configuration["NCCL_NET_GDR_LEVEL"] == "PHB"
    assert "NCCL_NET_GDR_LEVEL=3 is tried as PHB, which is the same" in "\n".join(spec.remarks)
    assert tried.plain()["meant"] == {"NCCL_NET_GDR_LEVEL=3": "PHB"}
    assert "3" not in spec.plan.space.declared["NCCL_NET_GDR_LEVEL"].values
    (pinned,) = campaign("pin: {NCCL_NET_GDR_LEVEL: PHB}\n", head).reference_settings
    assert pinned.left_out["NCCL_NET_GDR_LEVEL=3"].startswith("pinned to this value")
    assert "NCCL_NET_GDR_LEVEL=3" not in pinned.missing


def test_a_variable_comes_in_with_its_value_beside_unset() -> None:
    larger = grown_nccl({"NCCL_PXN_DISABLE": "1", "FI_CXI_DEFAULT_CQ_SIZE": "131072"})
    assert larger.space.by_name["NCCL_PXN_DISABLE"].values == (None, "1")
    assert larger.space.by_name["FI_CXI_DEFAULT_CQ_SIZE"].values == (None, "131072")
    assert larger.reasons == {}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("NCCL_IB_SL", "1", "may harm others"),
        ("NCCL_IB_TC", "106", "may harm others"),
        ("NCCL_CROSS_NIC", "1", "may harm others"),
        ("FI_PROVIDER", "cxi", r"not searched \(site: "),
        ("NCCL_DEBUG", "INFO", r"not searched \(diagnose: "),
        ("NCCL_PXN_DISABLE", "2", "no value that the catalogue names"),
        ("FI_CXI_DEFAULT_CQ_SIZE", "9999999", "outside of what the catalogue says: 1024 to"),
        ("FI_CXI_DEFAULT_CQ_SIZE", "many", "not a number"),
        ("MPICH_SMP_SINGLE_COPY_MODE", "CMA", "without effect here: read by cray-mpich"),
        ("NO_SUCH_NAME", "1", "in no catalogue"),
    ],
)
def test_what_no_catalogue_calls_legal_and_harmless_stays_out(
    name: str, value: str, why: str
) -> None:
    larger = grown_nccl({name: value})
    assert larger.space == load_space("nccl-node")
    assert re.match(why, larger.reasons[name, value].words)


def test_what_acts_between_nodes_only_stays_out_of_a_campaign_on_one() -> None:
    larger = grown_nccl({"FI_CXI_DEFAULT_CQ_SIZE": "131072"}, one_node=True)
    assert "acts between nodes" in larger.reasons["FI_CXI_DEFAULT_CQ_SIZE", "131072"].words


def test_what_may_hang_needs_the_opt_in_that_is_named() -> None:
    head = (
        "campaign: 1\nname: b\nspace: nccl-node\nworkload: {backend: xccl, nodes: 2, ranks: 2}\n"
        "slurm: {}\nreference_settings: [alcf-polaris-nccl-alltoall]\n"
    )
    spec = campaign("", head)
    named = re.search(r"opt_in: \[(.*?)\]", "\n".join(spec.remarks))
    assert named is not None
    assert {"FI_CXI_RX_MATCH_MODE"} < set(named[1].split(", "))
    assert "FI_CXI_RX_MATCH_MODE" not in spec.plan.first[0]
    opened = campaign(f"opt_in: [{named[1]}]\n", head)
    assert opened.plan.first[0]["FI_CXI_RX_MATCH_MODE"] == "software"


def test_a_half_of_a_group_stays_out() -> None:
    space = load_space("nccl")
    larger = add_reference_settings(space, [{"NCCL_MIN_NCHANNELS": "5"}], (), one_node=False)
    assert larger.space == space


def test_a_number_that_stands_for_what_may_hang_needs_its_opt_in() -> None:
    settings = {"NCCL_P2P_LEVEL": "4"}
    larger = grown_nccl(settings)
    tried = _fit_set("x", settings, larger.space, {}, larger)
    why = 'needs an opt-in, opt_in: ["NCCL_P2P_LEVEL=SYS"]'
    assert tried.left_out == {"NCCL_P2P_LEVEL=4": why}
    opened = customize_space(larger.space, opt_in=["NCCL_P2P_LEVEL=SYS"])
    tried = _fit_set("x", settings, opened, {}, larger)
    assert tried.configuration == Configuration({"NCCL_P2P_LEVEL": "SYS"})


def test_what_is_barred_stays_out() -> None:
    space = load_space("nccl-node")
    found = add_reference_settings(
        space, [{"NCCL_PXN_DISABLE": "1"}], {"NCCL_PXN_DISABLE"}, one_node=False
    )
    assert found.space == space
