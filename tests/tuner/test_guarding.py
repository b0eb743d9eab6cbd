"""Guard variables of the environment cut spaces, and pass unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.errors import CampaignError
from commtune.tuner.campaign_file import CampaignSpec, parse_campaign
from commtune.tuner.guarding import guarded, guards_of

OFF = {"NCCL_NVLS_ENABLE": "0"}


def campaign(more: str = "") -> CampaignSpec:
    head = "campaign: 1\nname: g\nspace: nccl\nworkload: {backend: xccl}\n"
    return parse_campaign(head + more, Path.cwd())


def algorithms(spec: CampaignSpec) -> list[str | None]:
    return list(spec.plan.space.by_name["NCCL_ALGO"].values)


def test_nothing_is_cut_where_nothing_is_guarded() -> None:
    spec = campaign()
    assert guarded(spec, {"NCCL_ALGO": "Ring"}) == spec
    # On, it takes nothing away.
    assert guarded(spec, {"NCCL_NVLS_ENABLE": "1"}) == spec


def test_values_about_what_is_switched_off_are_not_searched() -> None:
    spec = campaign()
    cut = guarded(spec, OFF)
    assert [v for v in algorithms(spec) if v not in algorithms(cut)] == ["^NVLS,NVLSTree"]
    assert cut.plan.space.count() < spec.plan.space.count()
    (said,) = cut.remarks
    assert "NCCL_NVLS_ENABLE=0" in said
    assert "NCCL_ALGO is searched without '^NVLS,NVLSTree'" in said


def test_a_parameter_with_no_other_values_is_left_unset() -> None:
    cut = guarded(campaign('narrow: {NCCL_ALGO: ["^NVLS,NVLSTree"]}\n'), OFF)
    assert "NCCL_ALGO" not in cut.plan.space.by_name
    assert "NCCL_ALGO" not in cut.plan.space.variables


def test_a_guard_itself_is_never_searched() -> None:
    extended = campaign("extend:\n  - {name: NCCL_NVLS_ENABLE, kind: integer, values: [0, 1]}\n")
    assert "NCCL_NVLS_ENABLE" in extended.plan.space.variables
    cut = guarded(extended, OFF)
    assert "NCCL_NVLS_ENABLE" not in cut.plan.space.variables
    assert any("NCCL_NVLS_ENABLE is not searched" in said for said in cut.remarks)


def test_a_pin_against_a_guard_is_refused() -> None:
    text = (
        "extend:\n  - {name: NCCL_NVLS_ENABLE, kind: integer, values: [0, 1]}\n"
        "pin: {NCCL_NVLS_ENABLE: 1}\n"
    )
    with pytest.raises(CampaignError, match="pins it to 1"):
        guarded(campaign(text), OFF)
    same = campaign(text.replace("ENABLE: 1", "ENABLE: 0"))
    assert guarded(same, OFF).plan.space.pinned == OFF


def test_what_is_tried_first_is_cut_too() -> None:
    spec = campaign('first: [{NCCL_ALGO: "^NVLS,NVLSTree"}, {NCCL_ALGO: Ring}]\n')
    cut = guarded(spec, OFF)
    assert [dict(c) for c in cut.plan.first] == [{"NCCL_ALGO": "Ring"}]
    assert any("is not tried first" in said for said in cut.remarks)


def test_guards_that_are_set() -> None:
    environment = {"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "UCX_NET_DEVICES": "a", "X": "y"}
    assert guards_of(("UCX_NET_DEVICES", "GONE"), environment) == {
        "UCX_NET_DEVICES": "a",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    }
