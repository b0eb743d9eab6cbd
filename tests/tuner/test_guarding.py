"""Guard variables of the environment cut spaces, and pass unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.protected import protected_settings
from commtune.campaign.protected_spaces import apply_protected
from commtune.errors import CampaignError
from commtune.spaces.loading import list_presets

OFF = {"NCCL_NVLS_ENABLE": "0"}


def campaign(more: str = "", space: str = "nccl", folder: Path | None = None) -> CampaignSpec:
    head = f"campaign: 1\nname: g\nspace: {space}\nworkload: {{backend: xccl}}\n"
    return parse_campaign(head + more, folder or Path.cwd())


def algorithms(spec: CampaignSpec) -> list[str | None]:
    return list(spec.plan.space.by_name["NCCL_ALGO"].values)


def test_nothing_is_cut_where_nothing_is_guarded() -> None:
    spec = campaign()
    assert apply_protected(spec, {"NCCL_ALGO": "Ring"}) == spec
    # On, it takes nothing away.
    assert apply_protected(spec, {"NCCL_NVLS_ENABLE": "1"}) == spec


def test_values_about_what_is_switched_off_are_not_searched() -> None:
    spec = campaign()
    cut = apply_protected(spec, OFF)
    assert [v for v in algorithms(spec) if v not in algorithms(cut)] == ["^NVLS,NVLSTree"]
    assert cut.plan.space.count() < spec.plan.space.count()
    (said,) = cut.remarks
    assert "NCCL_NVLS_ENABLE=0" in said
    assert "NCCL_ALGO is searched without '^NVLS,NVLSTree'" in said


@pytest.mark.parametrize(
    ("space", "gone"),
    [
        ("nccl-node", ["NCCL_NVLS_NCHANNELS", "NCCL_NVLS_CHUNKSIZE"]),
        ("nccl-infiniband", ["NCCL_NVLS_CHUNKSIZE", "NCCL_NVLSTREE_MAX_CHUNKSIZE"]),
    ],
)
def test_variables_that_only_nvls_reads_are_not_searched(space: str, gone: list[str]) -> None:
    spec = campaign(space=space)
    cut = apply_protected(spec, OFF)
    assert [n for n in spec.plan.space.by_name if n not in cut.plan.space.by_name] == gone
    assert not [name for name in cut.plan.space.variables if "NVLS" in name]
    assert cut.remarks[-1] == (
        "note: NCCL_NVLS_ENABLE=0 is set in this environment: not searched, since without effect "
        f"then: {', '.join(gone)}"
    )
    assert apply_protected(cut, OFF) == cut
    assert apply_protected(spec, {"NCCL_NVLS_ENABLE": "2"}) == spec


def test_no_shipped_space_searches_nvls_where_it_is_off() -> None:
    for name in list_presets():
        if name.startswith("nccl-"):
            cut = apply_protected(campaign(space=name), OFF).plan.space
            assert not [n for n in cut.variables if "NVLS" in n], name


SOCKETS = "narrow: {NCCL_NSOCKS_PERTHREAD: [2]}\npin: {NCCL_SOCKET_NTHREADS: unset}\n"


def test_variables_that_a_campaign_leaves_alone_cut_its_space_too() -> None:
    spec = campaign(f"{SOCKETS}protected_variables: [NCCL_SOCKET_NTHREADS]\n")
    assert "NCCL_NSOCKS_PERTHREAD" in spec.plan.space.by_name
    for value in ("4", ""):
        assert apply_protected(spec, {"NCCL_SOCKET_NTHREADS": value}) == spec
    cut = apply_protected(spec, {"NCCL_SOCKET_NTHREADS": "0"})
    assert "NCCL_NSOCKS_PERTHREAD" not in cut.plan.space.by_name
    assert "NCCL_SOCKET_NTHREADS=0" in cut.remarks[-1]
    assert apply_protected(campaign(SOCKETS), {"NCCL_SOCKET_NTHREADS": "0"}) == campaign(SOCKETS)


def test_what_a_system_guards_cuts_spaces_too(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "commtune/systems/descriptions/lumi.yaml").read_text()
    text += "guard:\n  NCCL_SOCKET_NTHREADS: {why: It can harm others., source: jobs}\n"
    (tmp_path / "ours.yaml").write_text(text)
    more = f"{SOCKETS}system: ./ours.yaml\nslurm: {{account: a}}\n"
    cut = apply_protected(campaign(more, folder=tmp_path), {"NCCL_SOCKET_NTHREADS": "0"})
    assert "NCCL_NSOCKS_PERTHREAD" not in cut.plan.space.by_name


def test_a_parameter_with_no_other_values_is_left_unset() -> None:
    cut = apply_protected(campaign('narrow: {NCCL_ALGO: ["^NVLS,NVLSTree"]}\n'), OFF)
    assert "NCCL_ALGO" not in cut.plan.space.by_name
    assert "NCCL_ALGO" not in cut.plan.space.variables


def test_a_guard_itself_is_never_searched() -> None:
    extended = campaign("extend:\n  - {name: NCCL_NVLS_ENABLE, kind: integer, values: [0, 1]}\n")
    assert "NCCL_NVLS_ENABLE" in extended.plan.space.variables
    cut = apply_protected(extended, OFF)
    assert "NCCL_NVLS_ENABLE" not in cut.plan.space.variables
    assert any("NCCL_NVLS_ENABLE is not searched" in said for said in cut.remarks)


def test_a_pin_against_a_guard_is_refused() -> None:
    text = (
        "extend:\n  - {name: NCCL_NVLS_ENABLE, kind: integer, values: [0, 1]}\n"
        "pin: {NCCL_NVLS_ENABLE: 1}\n"
    )
    with pytest.raises(CampaignError, match="pins it to 1"):
        apply_protected(campaign(text), OFF)
    same = campaign(text.replace("ENABLE: 1", "ENABLE: 0"))
    assert apply_protected(same, OFF).plan.space.pinned == OFF


def test_what_is_tried_first_is_cut_too() -> None:
    spec = campaign('first: [{NCCL_ALGO: "^NVLS,NVLSTree"}, {NCCL_ALGO: Ring}]\n')
    cut = apply_protected(spec, OFF)
    assert [dict(c) for c in cut.plan.first] == [{"NCCL_ALGO": "Ring"}]
    assert any("is not tried first" in said for said in cut.remarks)


def test_guards_that_are_set() -> None:
    environment = {"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "UCX_NET_DEVICES": "a", "X": "y"}
    assert protected_settings(("UCX_NET_DEVICES", "GONE"), environment) == {
        "UCX_NET_DEVICES": "a",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    }
