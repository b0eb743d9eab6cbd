"""What drivers say of GPUs and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from made_files import write_file

from commtune.cluster.machine.gpus import (
    _QUERY,
    _REMOTE,
    _STATUS,
    _TOPOLOGY,
    Gpu,
    _find_nvlinks,
    _parse_matrix,
    _parse_query,
    _parse_remote,
    _parse_status,
    inspect_gpus,
)

# Recorded on a virtual machine with two NVIDIA H200 (driver 580).
H200_TOPOLOGY = """\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\t0-31\t0\t\tN/A
GPU1\tNV18\t X \t0-31\t0\t\tN/A

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks
"""
H200_QUERY = """\
NVIDIA H200, 143771, 00000000:00:06.0
NVIDIA H200, 143771, 00000000:00:07.0
"""
H200 = Gpu("nvidia", "NVIDIA H200", "580.159.04")
SWITCH = "ffffffff:ff:ff.0"


def status(gpus: int, links: int, speed: str = "26.562 GB/s") -> str:
    """As nvidia-smi nvlink --status prints it."""
    lines = []
    for gpu in range(gpus):
        lines.append(f"GPU {gpu}: NVIDIA H200 (UUID: GPU-00000000-0000-0000-0000-000000000000)")
        lines += [f"\t Link {link}: {speed}" for link in range(links)]
    return "\n".join(lines)


def remote(*ends: Sequence[str]) -> str:
    """As nvidia-smi nvlink --remotelinkinfo prints it: of each GPU, where its links lead."""
    lines = []
    for gpu, own in enumerate(ends):
        lines.append(f"GPU {gpu}: NVIDIA H200 (UUID: GPU-00000000-0000-0000-0000-000000000000)")
        lines += [f"\t Link {i}: Remote Device {end}: Link {i}" for i, end in enumerate(own)]
    return "\n".join(lines)


def matrix(rows: Sequence[str]) -> str:
    """As nvidia-smi topo -m prints it, with a port and affinities beside the GPUs."""
    head = "\t" + "\t".join(f"GPU{i}" for i in range(len(rows))) + "\tNIC0\tCPU Affinity"
    lines = [f"GPU{i}\t" + "\t".join(row.split()) + "\tNODE\t0-31" for i, row in enumerate(rows)]
    return "\n".join([head, *lines, "NIC0\t" + "NODE\t" * len(rows) + " X "])


def addresses(count: int) -> list[str]:
    return [f"0000:{0x18 + i:02x}:00.0" for i in range(count)]


def test_what_is_asked_for() -> None:
    assert _parse_query(H200_QUERY) == [
        (143771 * 2**20, "0000:00:06.0"), (143771 * 2**20, "0000:00:07.0"),
    ]  # fmt: skip
    assert _parse_query("NVIDIA GB10, [N/A], 0000000F:01:00.0") == [(None, "000f:01:00.0")]
    assert _parse_query("No devices were found") == []


def test_the_matrix() -> None:
    assert _parse_matrix(H200_TOPOLOGY) == {(0, 1): 18, (1, 0): 18}
    assert _parse_matrix(H200_TOPOLOGY.replace("\t", "   ")) == {(0, 1): 18, (1, 0): 18}
    assert _parse_matrix(matrix(["X SYS", "SYS X"])) == {}


def test_links_and_their_ends() -> None:
    assert _parse_status(status(1, 2)) == {0: [26.562e9, 26.562e9]}
    assert _parse_status(status(1, 2, "<inactive>")) == {0: []}
    assert _parse_remote(remote(["00000000:D5:00.0", SWITCH])) == {0: ["00000000:D5:00.0", SWITCH]}
    assert _parse_remote("Unable to retrieve NVLink information\n") == {}


def test_two_gpus_whose_ends_are_a_switch() -> None:
    found = _find_nvlinks(
        addresses(2), H200_TOPOLOGY, status(2, 18), remote([SWITCH] * 18, [SWITCH] * 18)
    )
    assert [[(b["to"], b["links"], b["link_Bps"]) for b in own] for own in found] == [
        [("switch", 18, 25e9)], [("switch", 18, 25e9)],
    ]  # fmt: skip


def test_fewer_links_than_pairs_need_lead_to_a_switch() -> None:
    rows = [" ".join("X" if a == b else "NV18" for b in range(4)) for a in range(4)]
    for own in _find_nvlinks(addresses(4), matrix(rows), status(4, 18), ""):
        assert [(b["to"], b["links"]) for b in own] == [("switch", 18)]


@pytest.mark.parametrize("told", [True, False])
def test_direct_links(told: bool) -> None:
    """Four GPUs, four links between each two, as A100 nodes without a switch have."""
    rows = [" ".join("X" if a == b else "NV4" for b in range(4)) for a in range(4)]
    pci = addresses(4)
    ends = [[f"0000{p}".upper() for p in pci if p != own for _ in range(4)] for own in pci]
    said = remote(*ends) if told else ""
    found = _find_nvlinks(pci, matrix(rows), status(4, 12, "25.781 GB/s"), said)
    assert [(b["to"], b["pci"], b["links"], b["link_Bps"]) for b in found[1]] == [
        ("gpu", pci[0], 4, 25e9), ("gpu", pci[2], 4, 25e9), ("gpu", pci[3], 4, 25e9),
    ]  # fmt: skip


def test_links_to_processors_are_none_between_gpus() -> None:
    """Two GPUs joined by three links, and each to its processor by three."""
    pci = addresses(2)
    ends = [["00000004:04:00.0"] * 3 + [f"0000{pci[1]}"] * 3,
            ["00000004:05:00.0"] * 3 + [f"0000{pci[0]}"] * 3]  # fmt: skip
    found = _find_nvlinks(
        pci, matrix(["X NV3", "NV3 X"]), status(2, 6, "25.781 GB/s"), remote(*ends)
    )
    assert [(b["to"], b["links"]) for own in found for b in own] == [("gpu", 3), ("gpu", 3)]


@pytest.mark.parametrize(
    ("said", "sold"),
    [("20.000 GB/s", 20e9), ("25 GB/s", 25e9), ("26.562 GB/s", 25e9), ("50 GB/s", 50e9),
     ("53.125 GB/s", 50e9), ("100 GB/s", 100e9)],
)  # fmt: skip
def test_speeds_as_links_are_sold(said: str, sold: float) -> None:
    found = _find_nvlinks(addresses(2), H200_TOPOLOGY, status(2, 18, said), "")
    assert found[0][0]["link_Bps"] == sold


@pytest.mark.parametrize(("topology", "speeds"), [("", status(2, 18)), (H200_TOPOLOGY, "")])
def test_without_links_nothing_is_made_up(topology: str, speeds: str) -> None:
    assert _find_nvlinks(addresses(2), topology, speeds, "") == [(), ()]


def recorded(arguments: Sequence[str]) -> str:
    ends = remote([SWITCH] * 18, [SWITCH] * 18)
    texts: dict[tuple[str, ...], str]
    texts = {_QUERY: H200_QUERY, _TOPOLOGY: H200_TOPOLOGY, _STATUS: status(2, 18), _REMOTE: ends}
    return texts[tuple(arguments)]


def test_two_h200(tmp_path: Path) -> None:
    for number in (6, 7):
        write_file(tmp_path / f"sys/bus/pci/devices/0000:00:0{number}.0/numa_node", "0\n")
    seen = inspect_gpus([H200, H200], tmp_path, recorded)
    assert seen and seen.fabric
    assert (seen.vendor, seen.model, seen.count) == ("nvidia", "NVIDIA H200", 2)
    assert (seen.memory, seen.numa) == (143771 * 2**20, (0, 0))
    assert seen.fabric.injection(1) == 450e9
    assert "nvidia-smi topo -m" in seen.asked


def test_numa_nodes_that_the_kernel_does_not_know(tmp_path: Path) -> None:
    write_file(tmp_path / "sys/bus/pci/devices/0000:00:06.0/numa_node", "-1\n")
    seen = inspect_gpus([H200, H200], tmp_path, recorded)
    assert seen and seen.numa == ()


def test_a_job_with_one_of_several(tmp_path: Path) -> None:
    write_file(tmp_path / "sys/bus/pci/devices/0000:00:06.0/numa_node", "0\n")
    seen = inspect_gpus([H200] * 4, tmp_path, recorded)
    assert seen and (seen.count, seen.visible, seen.memory) == (4, 2, 143771 * 2**20)
    assert (seen.numa, seen.fabric) == ((), None)


def test_without_nvidia_smi_the_drivers_files_say_where(tmp_path: Path) -> None:
    for number, node in ((6, 0), (7, 1)):
        write_file(
            tmp_path / f"proc/driver/nvidia/gpus/0000:00:0{number}.0/information", "Model: H200"
        )
        write_file(tmp_path / f"sys/bus/pci/devices/0000:00:0{number}.0/numa_node", f"{node}\n")
    seen = inspect_gpus([H200, H200], tmp_path, lambda _: "")
    assert seen and (seen.numa, seen.memory, seen.fabric) == ((0, 1), None, None)


# The links between the dies of a node with four MI250X: pairs of dies, and links side by side.
MI250X = {
    (0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 6): 2, (2, 4): 2,
    (0, 2): 1, (1, 3): 1, (1, 5): 1, (3, 7): 1, (4, 6): 1, (5, 7): 1,
}  # fmt: skip


def mi250x_node(root: Path) -> None:
    """KFD's topology: four processors, then eight dies; every die also has a link to one."""
    nodes = "sys/class/kfd/kfd/topology/nodes"
    for cpu in range(4):
        write_file(root / f"{nodes}/{cpu}/properties", "cpu_cores_count 32\nsimd_count 0\n")
    for die in range(8):
        here, bus = f"{nodes}/{4 + die}", 0xC1 + die
        properties = (
            f"simd_count 440\ngfx_target_version 90010\nlocation_id {bus << 8}\ndomain 0\n"
        )
        write_file(root / f"{here}/properties", properties)
        write_file(
            root / f"{here}/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 68702699520\n"
        )
        write_file(root / f"sys/bus/pci/devices/0000:{bus:02x}:00.0/numa_node", f"{die // 2}\n")
        link = f"type 2\nnode_to {die // 2}\nweight 20\nmin_bandwidth 0\nmax_bandwidth 36000\n"
        write_file(root / f"{here}/io_links/0/properties", link)
        for number, (pair, count) in enumerate(MI250X.items(), 1):
            if die in pair:
                other = 4 + sum(pair) - die
                link = f"type 11\nnode_to {other}\nweight 15\nmin_bandwidth 50000\n"
                link += f"max_bandwidth {50000 * count}\n"
                write_file(root / f"{here}/io_links/{number}/properties", link)
        far = "type 11\nnode_to 9\nweight 30\nmin_bandwidth 50000\nmax_bandwidth 50000\n"
        write_file(root / f"{here}/io_links/90/properties", far)


def test_eight_dies_of_mi250x(tmp_path: Path) -> None:
    mi250x_node(tmp_path)
    seen = inspect_gpus([Gpu("amd", "gfx90a", "6.3")] * 8, tmp_path, lambda _: "")
    assert seen and seen.fabric
    assert (seen.count, seen.memory) == (8, 68702699520)
    assert seen.numa == (0, 0, 1, 1, 2, 2, 3, 3)
    assert {(link.a, link.b): link.count for link in seen.fabric.links} == MI250X
    assert {link.bandwidth for link in seen.fabric.links} == {50e9}


def test_kernels_that_name_no_bandwidth_name_no_links(tmp_path: Path) -> None:
    mi250x_node(tmp_path)
    for file in tmp_path.glob("sys/class/kfd/kfd/topology/nodes/*/io_links/*/properties"):
        file.write_text(file.read_text().replace("50000", "0"))
    seen = inspect_gpus([Gpu("amd", "gfx90a", "6.3")] * 8, tmp_path, lambda _: "")
    assert seen and seen.fabric is None


def test_no_gpu(tmp_path: Path) -> None:
    assert inspect_gpus([], tmp_path, recorded) is None
