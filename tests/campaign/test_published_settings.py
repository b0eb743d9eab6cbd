"""Settings that our sources used on a machine can be tried there, as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.app.campaigns.submitting import example_allocation
from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.reproducing import write_reproduction
from commtune.commands.reference.findings import findings_reproduce_command
from commtune.errors import CampaignError, UserError
from commtune.systems.findings import NamedFinding, all_findings
from commtune.systems.loading import load_system
from commtune.systems.reference_settings import used_settings

#: By findings with a setting: the finding, a system of it, its space there and the setting.
EXPERIMENTS = [
    (f"{one.name} {system} {space}", system, space, setting)
    for one in all_findings()
    for setting in (one.finding.setting, *one.finding.also)
    if setting
    for system in one.finding.systems
    for library in load_system(system).libraries
    if library.name in one.finding.libraries
    for space in library.spaces[-1:]
]


def campaign(system: str, space: str, text: str) -> CampaignSpec:
    described = load_system(system)
    assert described.gpus is not None
    backend = "xccl" if "ccl" in space.split("-")[0] else "mpi-device"
    head = (
        f"campaign: 1\nname: p\nspace: {space}\nsystem: {system}\nslurm: {{account: a}}\n"
        f"workload: {{backend: {backend}, nodes: 2, ranks: {2 * described.gpus.count}}}\n"
    )
    return parse_campaign(head + text, Path())


def written(setting: dict[str, str]) -> str:
    return ", ".join(f'{name}: "{value}"' for name, value in setting.items())


def test_there_are_experiments_on_all_machines_of_the_study() -> None:
    assert {system for _, system, _, _ in EXPERIMENTS} == {"alps", "leonardo", "lumi"}
    assert len(EXPERIMENTS) == 14


@pytest.mark.parametrize(
    ("system", "space", "setting"),
    [experiment[1:] for experiment in EXPERIMENTS],
    ids=[experiment[0] for experiment in EXPERIMENTS],
)
def test_what_a_finding_set_can_be_tried_and_pinned(
    system: str, space: str, setting: dict[str, str]
) -> None:
    # Only what the site protects needs a word of consent.
    guarded = [f'"{n}={v}"' for n, v in setting.items() if n in load_system(system).guard]
    head = f"opt_in: [{', '.join(guarded)}]\n"
    spec = campaign(system, space, f"{head}first: [{{{written(setting)}}}]\n")
    (first,) = spec.plan.first
    assert first.keys() == setting.keys()
    assert spec.plan.space.check(first) == []
    pinned = campaign(system, space, f"{head}pin: {{{written(setting)}}}\n").plan.space.pinned
    assert dict(first).items() <= pinned.items()


#: Findings that no campaign repeats on a system of theirs, and what is said of it.
REFUSED = {
    ("lassen-pairs", "lassen"): "jobs of Lassen are run by LSF",
    ("openpower-latency", "lassen"): "jobs of Lassen are run by LSF",
    ("openpower-thresholds", "lassen"): "jobs of Lassen are run by LSF",
    ("openpower-thresholds", "summit"): "Summit is out of service",
    ("x-bus", "lassen"): "jobs of Lassen are run by LSF",
    ("edr", "lassen"): "jobs of Lassen are run by LSF",
    ("host-to-gpu", "lassen"): "no backend sends from host memory to a GPU's",
    ("summit-pairs", "summit"): "Summit is out of service",
    ("put-against-get", "aurora"): "no backend for GPUs by Intel",
    ("groups-against-collectives", "delta"): "names no MPI with a search space",
    ("host-against-device", "delta"): "names no MPI with a search space",
} | {
    (name, system): why
    for name in (
        "striping",
        "intra-node-step",
        "nccl-latency",
        "self",
        "ports-packed",
        "groups-against-collectives",
        "host-against-device",
    )
    for system, why in (
        ("aurora", "no backend for GPUs by Intel"),
        ("summit", "out of service since 2024-11-15"),
    )
    if (name, system) not in (("intra-node-step", "aurora"), ("host-against-device", "aurora"))
}


def every(names: list[NamedFinding]) -> list[object]:
    return [
        pytest.param(one, system, id=f"{one.name} {system}")
        for one in names
        for system in one.finding.systems
    ]


@pytest.mark.parametrize(("named", "system"), every(list(all_findings())))
def test_a_finding_is_repeated_by_campaigns_or_says_why_not(
    named: NamedFinding, system: str
) -> None:
    found = named.finding
    refused = REFUSED.get((named.name, system))
    if refused:
        with pytest.raises(UserError, match=refused):
            write_reproduction(named, system)
        return
    texts = write_reproduction(named, system)
    specs = [parse_campaign(text, Path()) for text in texts]
    assert len({spec.plan.name for spec in specs}) == len(specs)
    # Each measures something of its own.
    assert len({text.partition("\nsystem: ")[2] for text in texts}) == len(texts)
    for spec in specs:
        workload = spec.plan.workload
        assert not found.operations or workload.operation in found.operations
        assert workload.nodes >= (found.least_nodes or 1)
        assert workload.nodes <= (found.most_nodes or workload.nodes)
        assert max(workload.sizes) <= (found.most_bytes or 1 << 30)
        assert spec.plan.budget.trials == len(spec.plan.first)
        # Its job is shown on any machine: neither the system's libraries nor its Slurm are asked.
        script = example_allocation(spec, Path(f"{spec.plan.name}.yaml"))
        assert f"tune {Path.cwd() / spec.plan.name}.yaml" in script
        nodes = workload.nodes + (spec.plan.aggressor.nodes if spec.plan.aggressor else 0)
        assert f"#SBATCH --nodes={nodes}\n" in script or f"#PBS -l select={nodes}:" in script


def test_the_jobs_of_all_campaigns_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    findings_reproduce_command("mpi-middle-sizes", account="p1", dry_run=True)
    script = capsys.readouterr().out
    assert script.count("#SBATCH --account=p1\n") == 2
    assert script.startswith("# mpi-middle-sizes-leonardo-1.yaml\n#!/bin/bash\n")


@pytest.mark.parametrize(
    ("named", "system"), every([one for one in all_findings() if one.finding.setting])
)
def test_the_setting_of_a_finding_is_tried_against_the_default(
    named: NamedFinding, system: str
) -> None:
    found = named.finding
    (text,) = write_reproduction(named, system)
    spec = parse_campaign(text, Path())
    (first,) = spec.plan.first
    assert dict(first) in (found.setting, *found.also)
    assert min(spec.plan.workload.sizes) >= (found.least_bytes or 8)
    fewest = found.least_nodes or 1
    assert spec.plan.workload.nodes <= (found.most_nodes or max(2, fewest))
    assert spec.plan.space.library in found.libraries
    # No opt-in beyond what the site itself asks for.
    asked = not found.setting.keys().isdisjoint(load_system(system).guard)
    assert ("opt_in" in text) == asked


def test_parts_that_a_system_cannot_run_are_left_out() -> None:
    rails = next(one for one in all_findings() if one.name == "rails")
    (text,) = write_reproduction(rails, "aurora")
    assert "# A part is left out here: the benchmark has no backend for GPUs by Intel." in text
    assert "\npbs: {account: YOUR_PROJECT}\n" in text
    assert parse_campaign(text, Path()).plan.workload.backend == "mpi-host"
    with pytest.raises(UserError, match="was not measured on summit"):
        write_reproduction(rails, "summit")


@pytest.mark.parametrize(
    ("system", "space", "setting"),
    [
        ("frontier", "cray-mpich-amd-quick", {"HSA_ENABLE_SDMA": "0"}),
        ("frontier", "cray-mpich-amd-quick", {"MPICH_GPU_IPC_THRESHOLD": "1"}),
        ("lumi", "cray-mpich-amd-quick", {"MPICH_GPU_ALLREDUCE_BLK_SIZE": "134217728"}),
        ("frontier", "rccl-slingshot-quick", {"NCCL_CROSS_NIC": "1"}),
        ("frontier", "rccl-slingshot-quick", {"HSA_FORCE_FINE_GRAIN_PCIE": "1"}),
        ("alps", "nccl-slingshot-quick", {"NCCL_P2P_LEVEL": "NVL"}),
        # What the papers set on other machines.
        (
            "frontier",
            "rccl-slingshot",
            {
                "NCCL_IGNORE_CPU_AFFINITY": "1",
                "NCCL_NET_GDR_LEVEL": "PHB",
                "NCCL_NCHANNELS_PER_PEER": "32",
            },
        ),
        (
            "leonardo",
            "nccl-infiniband",
            {"NCCL_IGNORE_CPU_AFFINITY": "1", "NCCL_NET_GDR_LEVEL": "PHB"},
        ),
    ],
)
def test_what_a_site_or_a_study_set_needs_no_opt_in(
    system: str, space: str, setting: dict[str, str]
) -> None:
    (first,) = campaign(system, space, f"first: [{{{written(setting)}}}]\n").plan.first
    assert dict(first) == setting


def test_the_sites_own_settings_for_slingshot_are_tried_together() -> None:
    spec = campaign("frontier", "rccl-slingshot", "reference_settings: [olcf-frontier-rccl]\n")
    (tried,) = spec.reference_settings
    assert tried.left_out.keys() == {"NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3"}
    assert tried.configuration["FI_CXI_RDZV_PROTO"] == "alt_read"
    assert tried.configuration["FI_CXI_RDZV_THRESHOLD"] == "0"
    (said,) = [remark for remark in spec.remarks if "without an opt-in" in remark]
    assert "NCCL_CROSS_NIC=1" in said and "FI_CXI_RX_MATCH_MODE=hybrid" in said
    assert any("add slurm: {network: disable_rdzv_get}" in remark for remark in spec.remarks)
    # What a campaign says of a parameter itself counts.
    own = "reference_settings: [olcf-frontier-rccl]\nopt_in: [NCCL_CROSS_NIC=2]\n"
    searched = campaign("frontier", "rccl-slingshot", own).plan.space
    assert searched.by_name["NCCL_CROSS_NIC"].values == (None, "2")


def test_jobs_can_be_started_for_the_alternative_protocol() -> None:
    text = (
        "campaign: 1\nname: p\nspace: rccl-slingshot-quick\nsystem: frontier\n"
        "slurm: {account: a, network: disable_rdzv_get}\n"
        "workload: {backend: xccl, nodes: 2, ranks: 16}\n"
        "first:\n"
        "  - {FI_CXI_RDZV_PROTO: alt_read, FI_CXI_RDZV_THRESHOLD: 0, FI_CXI_RDZV_EAGER_SIZE: 0}\n"
    )
    spec = parse_campaign(text, Path())
    assert spec.job_request is not None
    assert spec.job_request.question()["network"] == "disable_rdzv_get"
    assert not any("disable_rdzv_get" in remark for remark in spec.remarks)
    without = parse_campaign(text.replace(", network: disable_rdzv_get", ""), Path())
    assert without.job_request is not None
    assert (
        "network" not in without.job_request.question()
    )  # as it was stored before there was the key
    assert any("disable_rdzv_get" in remark for remark in without.remarks)


#: What the studies set, by system: the spaces that search it, or why none does.
_LUMI = {
    "NCCL_IGNORE_CPU_AFFINITY=1": {"rccl-slingshot"},
    "NCCL_NET_GDR_LEVEL=3": {"rccl-slingshot"},
    "NCCL_NCHANNELS_PER_PEER=32": {"rccl-slingshot"},
    "MPICH_GPU_IPC_THRESHOLD=1": {"cray-mpich-amd"},
    "HSA_ENABLE_SDMA=0": {"cray-mpich-amd", "rccl-slingshot"},
    "NCCL_IB_SL=1": "is without effect on lumi: the verbs transport reads it",
    "UCX_IB_SL=1": "is without effect on lumi: the verbs transport reads it",
}
STUDIED = {
    "lumi": _LUMI,
    "frontier": _LUMI
    | dict.fromkeys(
        ("NCCL_IB_SL=1", "UCX_IB_SL=1"),
        "is without effect on frontier: the verbs transport reads it",
    ),
    "alps": {
        "NCCL_IGNORE_CPU_AFFINITY=1": {"nccl-slingshot"},
        "NCCL_NET_GDR_LEVEL=3": {"nccl-slingshot"},
        "NCCL_NCHANNELS_PER_PEER=32": "read by rccl, not by",
        "MPICH_GPU_IPC_THRESHOLD=1": {"cray-mpich-gpu"},
        "HSA_ENABLE_SDMA=0": "read by rccl, not by",
        "NCCL_IB_SL=1": "is without effect on alps: the verbs transport reads it",
        "UCX_IB_SL=1": "is without effect on alps: the verbs transport reads it",
    },
    "leonardo": {
        "NCCL_IGNORE_CPU_AFFINITY=1": {"nccl-infiniband"},
        "NCCL_NET_GDR_LEVEL=3": {"nccl-infiniband"},
        "NCCL_NCHANNELS_PER_PEER=32": "read by rccl, not by",
        "MPICH_GPU_IPC_THRESHOLD=1": "read by cray-mpich, not by",
        "HSA_ENABLE_SDMA=0": "read by rccl, not by",
        # The site's rule; `test_lanes_of_leonardo_are_open_...` opens it.
        "NCCL_IB_SL=1": "is protected on leonardo|read by nccl, not by",
        "UCX_IB_SL=1": "is protected on leonardo|read by ucx, not by",
    },
}


@pytest.mark.parametrize(
    ("system", "setting"), [(system, one) for system, tried in STUDIED.items() for one in tried]
)
def test_what_the_studies_set_is_searched_or_refused_with_the_reason(
    system: str, setting: str
) -> None:
    name, _, value = setting.partition("=")
    outcome = STUDIED[system][setting]
    for library in load_system(system).libraries:
        for space in library.spaces[-1:]:
            text = f'narrow: {{{name}: ["{value}"]}}\n'
            if space in outcome:
                searched = campaign(system, space, text).plan.space
                # NCCL reads the 3 of old scripts as PHB.
                assert {value, "PHB"} & {*searched.by_name[name].values}
            else:
                reason = outcome if isinstance(outcome, str) else "without effect here: read by"
                with pytest.raises(CampaignError, match=reason):
                    campaign(system, space, text)


def test_lanes_of_infiniband_are_without_effect_on_slingshot() -> None:
    with pytest.raises(CampaignError) as caught:
        campaign("alps", "nccl-slingshot-quick", "narrow: {NCCL_IB_SL: 1}\n")
    assert caught.value.message == (
        "NCCL_IB_SL is without effect on alps: the verbs transport reads it, and the network is "
        "Slingshot 11"
    )


def test_elsewhere_the_same_setting_needs_an_opt_in() -> None:
    with pytest.raises(CampaignError, match="'NCCL_CROSS_NIC' needs an opt-in"):
        campaign("frontier", "rccl-slingshot-quick", "narrow: {NCCL_CROSS_NIC: [0, 1]}\n")
    with pytest.raises(CampaignError, match="NCCL_CROSS_NIC needs an opt-in"):
        campaign("perlmutter", "nccl-slingshot", "first: [{NCCL_CROSS_NIC: 2}]\n")
    assert used_settings("frontier", "rccl")["NCCL_CROSS_NIC", "1"]
    assert not used_settings("leonardo", "nccl")["NCCL_IB_SL", "1"]  # by agreement with the site


def test_what_no_campaign_searches_is_refused_with_the_reason() -> None:
    with pytest.raises(CampaignError) as caught:
        campaign("alps", "nccl-slingshot-quick", "pin: {FI_PROVIDER: cxi}\n")
    assert caught.value.message.startswith(
        "FI_PROVIDER=cxi is not in the space: not searched (site: "
    )
    assert caught.value.line == 7
    assert caught.value.hint == "your own `extend` brings in what you know to be right here"


@pytest.mark.parametrize(
    ("system", "space", "name", "readers"),
    [
        ("alps", "nccl-slingshot-quick", "NCCL_NCHANNELS_PER_PEER", "rccl, not by nccl"),
        ("alps", "cray-mpich-gpu-quick", "HSA_ENABLE_SDMA", "rccl, not by cray-mpich"),
        ("lumi", "rccl-slingshot-quick", "MPICH_GPU_IPC_THRESHOLD", "cray-mpich, not by rccl"),
        ("leonardo", "nccl-infiniband-quick", "UCX_IB_SL", "ucx, not by nccl"),
    ],
)
def test_what_another_library_reads_is_refused_with_its_name(
    system: str, space: str, name: str, readers: str
) -> None:
    for text in (f"first: [{{{name}: 1}}]", f"narrow: {{{name}: 1}}", f"pin: {{{name}: 1}}"):
        with pytest.raises(CampaignError, match=f"without effect here: read by .*{readers}"):
            campaign(system, space, f"{text}\n")


@pytest.mark.parametrize(
    ("space", "name", "other"),
    [
        ("nccl-infiniband-quick", "NCCL_IB_SL", "UCX_IB_SL"),
        ("openmpi-ucx-gpu", "UCX_IB_SL", "NCCL_IB_SL"),
    ],
)
def test_lanes_of_leonardo_are_open_to_who_names_the_allowed_ones(
    space: str, name: str, other: str
) -> None:
    opened = f'opt_in: ["{name}=1"]\n'
    with pytest.raises(CampaignError) as caught:
        campaign("leonardo", space, f"first: [{{{name}: 1}}]\n")
    # The site's rule, and how the site opens it.
    assert caught.value.message.startswith(f"{name} is protected on leonardo: ")
    assert caught.value.hint == "if the site agrees: " + opened.strip()
    spec = campaign("leonardo", space, f"{opened}first: [{{{name}: 1}}]\n")
    assert spec.plan.space.by_name[name].values == (None, "1")
    assert spec.protected_variables == (other,)
    assert campaign("leonardo", space, f"{opened}pin: {{{name}: 1}}\n").plan.space.pinned[name]
    tried = campaign("leonardo", space, f"{opened}reference_settings: [cineca-leonardo-study]\n")
    assert tried.reference_settings[0].configuration[name] == "1"
    with pytest.raises(CampaignError, match=f"{name} is protected on leonardo") as caught:
        campaign("leonardo", space, f"opt_in: [{name}]\n")
    assert caught.value.hint == (f'name the values that the site allows: opt_in: ["{name}=VALUE"]')
