"""Named sets that a campaign tries first: what is kept of them, and what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.protected_spaces import apply_protected
from commtune.campaign.reference_settings import _fit_set
from commtune.errors import CampaignError
from commtune.model import Configuration
from commtune.systems.reference_settings import all_reference_settings

HEAD = "campaign: 1\nname: b\nspace: nccl\nworkload: {backend: xccl}\n"
CONDITIONAL = """\
space: 1
name: small
library: mpich
parameters:
  - {name: MODE, kind: choice, values: [a, b]}
  - {name: LEVEL, kind: integer, values: [1, 2], when: {MODE: a}}
  - {name: OTHER, kind: integer, values: [1, 2]}
forbidden:
  - {when: {MODE: b, OTHER: 2}, why: they hang}
"""


def campaign(more: str, head: str = HEAD) -> CampaignSpec:
    return parse_campaign(head + more, Path.cwd())


def small(tmp_path: Path) -> CampaignSpec:
    (tmp_path / "small.yaml").write_text(CONDITIONAL, encoding="utf-8")
    return parse_campaign("campaign: 1\nname: b\nspace: ./small.yaml\n", tmp_path)


def test_a_campaign_without_the_key_is_as_before() -> None:
    spec = campaign("first: [{NCCL_ALGO: Ring}]\n")
    assert (spec.reference_settings, spec.remarks) == ((), ())
    assert spec.plan.first == (Configuration({"NCCL_ALGO": "Ring"}),)


def test_what_the_space_has_is_tried_after_what_the_file_lists() -> None:
    spec = campaign("first: [{NCCL_ALGO: Ring}]\nreference_settings: [cscs-alps-uenv-nccl]\n")
    assert spec.plan.first == (
        Configuration({"NCCL_ALGO": "Ring"}),
        Configuration({"NCCL_NET_GDR_LEVEL": "PHB", "NCCL_PROTO": "^LL128"}),
    )
    (said,) = spec.remarks
    assert "reference:cscs-alps-uenv-nccl is tried first, without" in said
    (tried,) = spec.reference_settings
    every = {
        f"{n}={v}" for n, v in all_reference_settings()["cscs-alps-uenv-nccl"].settings.items()
    }
    kept = {f"{n}={v}" for n, v in tried.configuration.items()}
    assert kept | set(tried.left_out) == every
    assert kept.isdisjoint(tried.left_out)
    assert all(setting in said for setting in tried.left_out)
    assert "site fixes it" in tried.left_out["NCCL_NET=AWS Libfabric"]
    assert "opt_in: [NCCL_CROSS_NIC]" in tried.left_out["NCCL_CROSS_NIC=1"]


def test_an_opt_in_keeps_more_of_it() -> None:
    spec = campaign("reference_settings: [cscs-alps-uenv-nccl]\nopt_in: [NCCL_CROSS_NIC]\n")
    (tried,) = spec.reference_settings
    assert tried.configuration["NCCL_CROSS_NIC"] == "1"


def test_pinned_variables_are_left_out_and_said() -> None:
    spec = campaign(
        "reference_settings: [cscs-alps-uenv-nccl]\n"
        'pin: {NCCL_PROTO: "^LL128", NCCL_NET_GDR_LEVEL: PIX}\n'
    )
    (tried,) = spec.reference_settings
    assert tried.left_out["NCCL_PROTO=^LL128"].startswith("pinned to this value")
    assert tried.left_out["NCCL_NET_GDR_LEVEL=PHB"].startswith("pinned to 'PIX'")
    assert spec.plan.first == ()
    assert "pinned to 'PIX' in every run: NCCL_NET_GDR_LEVEL=PHB" in spec.remarks[0]


def test_variables_that_pass_from_the_environment_are_left_out() -> None:
    spec = campaign(
        "reference_settings: [isambard-ai]\n"
        "protected_variables: [FI_PROVIDER, FI_CXI_RDZV_PROTO]\n"
    )
    (tried,) = spec.reference_settings
    assert "from your environment" in tried.left_out["FI_CXI_RDZV_PROTO=alt_read"]


def test_what_the_system_guards_is_left_out() -> None:
    head = "campaign: 1\nname: b\nspace: openmpi-host\nslurm: {account: a}\nsystem: leonardo\n"
    spec = campaign("reference_settings: [cineca-leonardo-study]\n", head)
    (tried,) = spec.reference_settings
    assert tried.left_out["UCX_IB_SL=1"] == "protected on leonardo"


def test_auto_takes_those_for_the_system_and_the_library() -> None:
    head = (
        "campaign: 1\nname: b\nspace: rccl\nslurm: {account: a}\nsystem: lumi\n"
        "workload: {backend: xccl, nodes: 2, ranks: 16}\n"
    )
    spec = campaign("reference_settings: auto\n", head)
    assert [tried.name for tried in spec.reference_settings] == [
        "lumi-docs-pytorch", "lumi-blink-rccl", "lumi-paper-levers",
    ]  # fmt: skip
    assert spec.plan.first
    assert all(not spec.plan.space.check(c) for c in spec.plan.first)


def test_auto_without_any_says_so() -> None:
    head = "campaign: 1\nname: b\nspace: nccl\nslurm: {account: a}\nsystem: neuron\n"
    spec = campaign("reference_settings: auto\n", head)
    assert spec.plan.first == ()
    assert spec.remarks == (
        "note: no reference settings that are fit to try are known for neuron with nccl",
    )


def test_an_unknown_set_is_named_with_its_line() -> None:
    with pytest.raises(CampaignError) as caught:
        campaign("seed: 1\nreference_settings: [cscs-vetnodes]\n")
    assert caught.value.line == len(HEAD.splitlines()) + 2


def test_sets_that_come_to_the_same_are_tried_once() -> None:
    one = campaign("reference_settings: [isambard-ai]\n").plan.first
    both = campaign(
        "reference_settings: [isambard-ai, hpe-shs-ccl, reference:isambard-ai]\n"
    ).plan.first
    assert one == both == (Configuration({"NCCL_NET_GDR_LEVEL": "PHB"}),)


def test_a_set_for_another_library_and_system_is_said() -> None:
    head = "campaign: 1\nname: b\nspace: rccl\nslurm: {account: a}\nsystem: lumi\n"
    said = "\n".join(
        campaign("reference_settings: [olcf-frontier-rccl, isambard-ai]\n", head).remarks
    )
    assert "NCCL_NET_PLUGIN is yours to set: path of librccl-net.so" in said
    assert "reference:isambard-ai is for nccl, not for rccl" in said
    assert "reference:olcf-frontier-rccl is for frontier, not lumi" in said


@pytest.mark.parametrize(
    ("written", "words", "hint"),
    [
        ("auto", "needs to know the system", "system: NAME"),
        (
            "[cscs-vetnodes]",
            "no reference settings are called 'cscs-vetnodes'",
            "nearest: cscs-vetnode",
        ),
        ("cscs-vetnode", "is not a list of reference settings", "[NAME, NAME]"),
        ("[nersc-perlmutter-nccl]", "can't be tried as it stands: FI_MR_CACHE_MONITOR", "first"),
    ],
)
def test_wrong_words_are_refused(written: str, words: str, hint: str) -> None:
    with pytest.raises(CampaignError) as error:
        campaign(f"reference_settings: {written}\n")
    assert words in error.value.message
    assert hint in error.value.hint


def test_a_value_without_its_condition_is_left_out(tmp_path: Path) -> None:
    space = small(tmp_path).plan.space
    found = _fit_set("x", {"LEVEL": "1", "OTHER": "2"}, space, {})
    assert found.configuration == Configuration({"OTHER": "2"})
    assert found.left_out == {"LEVEL=1": "it needs MODE a"}
    assert _fit_set("x", {"LEVEL": "1", "MODE": "a"}, space, {}).left_out == {}


def test_a_value_that_is_left_out_takes_its_dependants_along(tmp_path: Path) -> None:
    space = small(tmp_path).plan.space
    found = _fit_set("x", {"MODE": "a", "LEVEL": "1"}, space, {"MODE": "guarded"})
    assert found.configuration.is_default
    assert found.left_out == {"MODE=a": "guarded", "LEVEL=1": "it needs MODE a"}


def test_a_forbidden_combination_is_not_tried_at_all(tmp_path: Path) -> None:
    found = _fit_set("x", {"MODE": "b", "OTHER": "2"}, small(tmp_path).plan.space, {})
    assert found.configuration.is_default
    assert set(found.left_out) == {"MODE=b", "OTHER=2"}


def test_a_value_that_the_space_lacks_is_named_with_those_it_has(tmp_path: Path) -> None:
    found = _fit_set("x", {"OTHER": "3"}, small(tmp_path).plan.space, {})
    assert found.left_out == {"OTHER=3": "the space small has other values of OTHER (1, 2)"}


def test_half_of_a_group_is_no_choice_of_it() -> None:
    space = campaign("").plan.space
    found = _fit_set("x", {"NCCL_MIN_NCHANNELS": "4"}, space, {})
    assert "channels" in found.left_out["NCCL_MIN_NCHANNELS=4"]


@pytest.mark.parametrize(
    "name", [n for n, one in all_reference_settings().items() if not one.entry.unfit]
)
def test_what_is_left_of_every_set_is_in_the_space(name: str) -> None:
    for space in ("nccl", "openmpi-host"):
        spec = campaign(
            f"reference_settings: [{name}]\n", f"campaign: 1\nname: b\nspace: {space}\n"
        )
        assert all(not spec.plan.space.check(c) for c in spec.plan.first)


def test_a_guard_of_the_environment_takes_its_part_only() -> None:
    more = (
        "extend:\n  - {name: NCCL_NVLS_ENABLE, kind: integer, values: [0, 1]}\n"
        "  - {name: NCCL_IB_TIMEOUT, kind: integer, values: [20]}\n"
    )
    spec = campaign(more)
    settings = {"NCCL_NVLS_ENABLE": "1", "NCCL_IB_TIMEOUT": "20"}
    tried = _fit_set("x", settings, spec.plan.space, {})
    assert dict(tried.configuration) == settings
    plan = replace(spec.plan, first=(tried.configuration,))
    cut = apply_protected(
        replace(spec, plan=plan, reference_settings=(tried,)), {"NCCL_NVLS_ENABLE": "0"}
    )
    assert cut.plan.first == (Configuration({"NCCL_IB_TIMEOUT": "20"}),)
    words = "in the space that is left, reference:x is tried first, without\n  "
    assert words in cut.remarks[-1]
    assert cut.remarks[-1].endswith(": NCCL_NVLS_ENABLE=1")
