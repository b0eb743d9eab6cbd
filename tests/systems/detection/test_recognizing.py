"""Which described system a machine is, or looks like."""

from __future__ import annotations

from dataclasses import replace

import pytest
from seen_machines import A100_NODE, GIB, LOGIN_NODE, hdr_ports

from commtune.systems.detection.recognition import (
    _is_same_adapter,
    _is_same_gpu,
    adapter_name,
    gpu_names,
    look_alikes,
    recognize_system,
)
from commtune.systems.detection.seen import Clues, SeenMachine, SeenPort
from commtune.systems.loading import load_system
from commtune.systems.schema import System, _Recognized

LEONARDO = load_system("leonardo")
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
    assert [match.system.recognized for match in found] == [known(hosts=[]).recognized]
    both = recognize_system(Clues("login1"), [other, known()])
    assert len(both) == 2


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


def test_network_ports_are_the_fastest_alike() -> None:
    seen = replace(A100_NODE, ports=(*A100_NODE.ports, SeenPort("eth1", "mlx5_core", None)))
    assert [port.name for port in seen.network_ports] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert replace(A100_NODE, ports=()).network_ports == ()
    slow, fast = hdr_ports(2), SeenPort("hsn0", "HPE Slingshot 11", 25e9)
    assert replace(A100_NODE, ports=(*slow, fast)).network_ports == (fast,)
    beside = replace(fast, bandwidth=slow[0].bandwidth)
    assert replace(A100_NODE, ports=(beside, *slow)).network_ports == slow
