"""Which described system a machine is, and how it stands to what is described."""

from __future__ import annotations

from dataclasses import replace

import pytest
from seen_machines import A100_NODE, GIB, LOGIN_NODE, hdr_ports

from commtune.systems.detection.recognition import (
    FactVerdict,
    _is_same_adapter,
    _is_same_gpu,
    adapter_name,
    compare_machine,
    gpu_names,
    look_alikes,
    recognize_system,
    surest_matches,
)
from commtune.systems.detection.seen import Clues, SeenGpus, SeenMachine, SeenPort
from commtune.systems.loading import load_system
from commtune.systems.schema import System, _OtherScheduler, _Recognized

LEONARDO = load_system("leonardo")
LINKS = "links of the GPUs"
BY_ALL = _Recognized(
    source=["site"],
    cluster=["leonardo", "leo2"],
    environment={"SITE": "cineca", "OTHER": "x"},
    hosts=["lrdn*.leonardo.local", "login*"],
)


def known(**changes: object) -> System:
    by = BY_ALL.model_copy(update=changes)
    return LEONARDO.model_copy(update={"recognized": by})


@pytest.mark.parametrize(
    ("clues", "by"),
    [
        (Clues(cluster="leonardo"), ("Slurm's cluster name leonardo",)),
        (Clues(environment={"SITE": "cineca"}), ("the variable SITE=cineca",)),
        (Clues("login07"), ("the host name login07 (login*)",)),
        (Clues("LOGIN07.example.org"), ("the host name LOGIN07.example.org (login*)",)),
        (Clues("lrdn0001.leonardo.local"),
         ("the host name lrdn0001.leonardo.local (lrdn*.leonardo.local)",)),
        (Clues("login1", "leo2"),
         ("Slurm's cluster name leo2", "the host name login1 (login*)")),
        (Clues("mylogin07"), None),
        (Clues("lrdn0001.leonardo.local.org"), None),
        (Clues("lrdn0001"), None),
        (Clues(cluster="leonardo2"), None),
        (Clues(environment={"SITE": "cscs"}), None),
        (Clues(), None),
    ],
)  # fmt: skip
def test_by_what_a_machine_is_recognized(clues: Clues, by: tuple[str, ...] | None) -> None:
    assert [match.by for match in recognize_system(clues, [known()])] == ([by] if by else [])


def test_only_a_star_stands_for_anything() -> None:
    system = known(hosts=["n[0-9].a?c"])
    assert recognize_system(Clues("n[0-9].a?c"), [system])
    assert not recognize_system(Clues("n1.abc"), [system])


def test_what_is_not_described_recognizes_nothing() -> None:
    assert not recognize_system(Clues("login07", "leonardo"), [LEONARDO.model_copy(
        update={"recognized": None}
    )])  # fmt: skip


def test_the_cluster_counts_more_than_the_host() -> None:
    other = known(cluster=["other"], environment={}, hosts=["login*"])
    found = recognize_system(Clues("login1", "leonardo"), [other, known(hosts=[])])
    assert [match.system.recognized for match in surest_matches(found)] == [
        known(hosts=[]).recognized
    ]
    assert len(found) == 2
    both = recognize_system(Clues("login1"), [other, known()])
    assert len(surest_matches(both)) == 2


def test_a_node_of_the_same_shape_looks_like_it() -> None:
    found = look_alikes(A100_NODE, [load_system("lumi"), LEONARDO])
    assert [match.system.name for match in found] == ["leonardo"]
    assert found[0].by == ("4 x NVIDIA A100-SXM-64GB", "4 x ConnectX-6, 12.5 GB/s each")


def with_gpus(**changes: object) -> SeenMachine:
    assert A100_NODE.gpus
    return replace(A100_NODE, gpus=replace(A100_NODE.gpus, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen",
    [
        with_gpus(count=8),
        with_gpus(model="NVIDIA H100 80GB HBM3"),
        with_gpus(memory=80 * GIB),
        with_gpus(vendor="amd", model="gfx90a"),
        replace(A100_NODE, ports=hdr_ports(4, 200)),
        replace(A100_NODE, ports=hdr_ports(2)),
        replace(A100_NODE, ports=tuple(replace(p, model="ConnectX-7") for p in hdr_ports(4))),
        LOGIN_NODE,
    ],
)
def test_another_shape_does_not(seen: SeenMachine) -> None:
    assert look_alikes(seen, [LEONARDO]) == []


def test_ports_that_say_no_speed_leave_the_gpus() -> None:
    virtual = replace(A100_NODE, ports=(SeenPort("eth0", "virtio_net", None),))
    found = look_alikes(virtual, [LEONARDO])
    assert [match.by for match in found] == [("4 x NVIDIA A100-SXM-64GB",)]


def verdicts(seen: SeenMachine, system: System = LEONARDO) -> dict[str, FactVerdict]:
    return {fact.what: fact.verdict for fact in compare_machine(seen, system)}


def test_a_node_as_it_is_described() -> None:
    found = verdicts(A100_NODE)
    unlisted = {name for name, verdict in found.items() if verdict is not FactVerdict.AGREES}
    assert unlisted == set()
    assert {"GPU model", "GPUs", "GPU memory", "cores", "NUMA nodes", "memory", "ports",
            "port model", "port speed", LINKS,
            "partition boost_usr_prod"} == set(found)  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (with_gpus(count=3), "GPUs"),
        (with_gpus(model="NVIDIA H100 80GB HBM3"), "GPU model"),
        (with_gpus(memory=40 * GIB), "GPU memory"),
        (replace(A100_NODE, cores=64), "cores"),
        (replace(A100_NODE, numa_nodes=1), "NUMA nodes"),
        (replace(A100_NODE, memory=251 * GIB), "memory"),
        (replace(A100_NODE, ports=hdr_ports(3)), "ports"),
        (replace(A100_NODE, ports=hdr_ports(4, 200)), "port speed"),
    ],
)
def test_what_differs(seen: SeenMachine, what: str) -> None:
    found = verdicts(seen)
    assert found[what] is FactVerdict.DIFFERS
    kept = {
        name: verdict for name, verdict in found.items() if name not in (what, "links of the GPUs")
    }
    assert set(kept.values()) == {FactVerdict.AGREES}


def test_a_port_that_is_named_counts_beside_faster_ones() -> None:
    faster = SeenPort("mlx5_9", "ConnectX-7", 50e9, rdma=True)
    seen = replace(A100_NODE, ports=(*A100_NODE.ports, faster))
    assert verdicts(seen)["ports"] is FactVerdict.AGREES


def test_a_login_node_shows_what_slurm_says() -> None:
    found = {fact.what: fact for fact in compare_machine(LOGIN_NODE, LEONARDO)}
    for what in ("GPU model", "NUMA nodes", "network ports"):
        assert found[what].verdict is FactVerdict.UNSEEN
        assert "no GPU is here" in found[what].found
    for what in ("GPUs", "cores", "memory", "partition boost_usr_prod"):
        assert found[what].verdict is FactVerdict.AGREES, what
    assert found["GPUs"].found == "4, says Slurm"


def test_without_slurm_partitions_cannot_be_seen() -> None:
    found = verdicts(replace(A100_NODE, slurm=None))
    assert found["partition boost_usr_prod"] is FactVerdict.UNSEEN


def test_partitions_that_differ() -> None:
    slurm = A100_NODE.slurm
    assert slurm
    gone = replace(A100_NODE, slurm=replace(slurm, partitions=slurm.partitions[:1]))
    assert verdicts(gone)["partition boost_usr_prod"] is FactVerdict.DIFFERS
    short = replace(slurm.partitions[1], longest=3600.0)
    seen = replace(A100_NODE, slurm=replace(slurm, partitions=(short,)))
    fact = compare_machine(seen, LEONARDO)[-1]
    assert (fact.verdict, fact.described, fact.found) == (
        FactVerdict.DIFFERS, "to 64 nodes, to 24 h 00 min", "to 64 nodes, to 1 h 00 min",
    )  # fmt: skip


def test_another_scheduler() -> None:
    pbs = _OtherScheduler(source=["site"], kind="pbs")
    system = LEONARDO.model_copy(update={"slurm": None, "scheduler": pbs})
    assert verdicts(replace(A100_NODE, slurm=None), system)["scheduler PBS"] is FactVerdict.UNSEEN
    seen = replace(A100_NODE, slurm=None, scheduler="lsf")
    assert verdicts(seen, system)["scheduler PBS"] is FactVerdict.DIFFERS


def test_a_node_without_gpus_that_is_described_so() -> None:
    plain = LEONARDO.model_copy(update={"gpus": None, "links": []})
    assert verdicts(replace(A100_NODE, gpus=None), plain)["cores"] is FactVerdict.AGREES
    assert verdicts(A100_NODE, plain)["GPUs"] is FactVerdict.DIFFERS
    assert verdicts(LOGIN_NODE, plain)["NUMA nodes"] is FactVerdict.UNSEEN


@pytest.mark.parametrize(
    ("described", "found", "same"),
    [
        ("NVIDIA A100, custom, SXM", "NVIDIA A100-SXM-64GB", True),
        ("one die (GCD) of an AMD MI250X", "gfx90a", True),
        ("AMD MI300A", "gfx942", True),
        ("AMD MI300A", "gfx90a", False),
        ("GH200", "NVIDIA GH200 120GB", True),
        ("H200", "NVIDIA GH200 120GB", False),
        ("GH200", "NVIDIA H200", False),
        ("NVIDIA L40S", "NVIDIA L40", False),
        ("Quadro Thing", "Quadro Thing", True),
        ("NVIDIA H100", "Quadro Thing", False),
    ],
)
def test_names_of_gpus(described: str, found: str, same: bool) -> None:
    assert _is_same_gpu(described, found) is same


def test_a_target_stands_for_several_gpus() -> None:
    assert "MI250X" in gpu_names("gfx90a")
    assert gpu_names("NVIDIA H200") == ("H200",)


@pytest.mark.parametrize(
    ("device", "name"),
    [("MT4129", "ConnectX-7"), ("MT4123_x", "ConnectX-6"), ("MT9999", "MT9999"),
     ("cxi_ss1", "HPE Slingshot 11"), ("rdmap0s6", "AWS Elastic Fabric Adapter"),
     ("hfi1_0", "Omni-Path"), ("virtio_net", "virtio_net")],
)  # fmt: skip
def test_names_of_adapters(device: str, name: str) -> None:
    assert adapter_name(device) == name


def test_adapters_that_may_be_the_same() -> None:
    assert _is_same_adapter("ConnectX-6, HDR100 ports", "ConnectX-6") is True
    assert _is_same_adapter("Cassini", "HPE Slingshot 11") is True
    assert _is_same_adapter("ConnectX-6", "ConnectX-7") is False
    assert _is_same_adapter("ConnectX-6", "mlx5_core") is None
    assert _is_same_adapter("Mellanox HDR", "ConnectX-6") is None
    assert _is_same_adapter("virtio_net", "virtio_net") is True


def test_a_speed_in_the_place_of_a_model_is_no_other_model() -> None:
    system = LEONARDO.model_copy(
        update={"nics": LEONARDO.nics.model_copy(update={"model": "Mellanox HDR100"})}
    )
    assert look_alikes(A100_NODE, [system])
    assert verdicts(A100_NODE, system)["port model"] is FactVerdict.UNSEEN


def test_network_ports_are_the_fastest_alike() -> None:
    seen = replace(A100_NODE, ports=(*A100_NODE.ports, SeenPort("eth1", "mlx5_core", None)))
    assert [port.name for port in seen.network_ports] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert replace(A100_NODE, ports=()).network_ports == ()
    slow, fast = hdr_ports(2), SeenPort("hsn0", "HPE Slingshot 11", 25e9)
    assert replace(A100_NODE, ports=(*slow, fast)).network_ports == (fast,)
    beside = replace(fast, bandwidth=slow[0].bandwidth)
    assert replace(A100_NODE, ports=(beside, *slow)).network_ports == slow


def test_gpus_of_another_vendor_are_not_seen() -> None:
    gpus = LEONARDO.gpus
    assert gpus
    intel = LEONARDO.model_copy(update={"gpus": gpus.model_copy(update={"vendor": "intel"})})
    fact = compare_machine(replace(A100_NODE, gpus=None, slurm=None), intel)[0]
    assert (fact.verdict, fact.found) == (FactVerdict.UNSEEN, "Intel's GPUs are not read")
    seen = replace(A100_NODE, gpus=SeenGpus("amd", "gfx90a", 8))
    assert verdicts(seen)["GPU model"] is FactVerdict.DIFFERS
