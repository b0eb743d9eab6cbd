"""Nominal bandwidths against the numbers that the studies and the reference name.

Gb/s are 1e9 bits per second, one direction. "The study" is De Sensi et al., SC24; "CommBench" is
Hidayetoglu et al., ICS 2024.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import combinations

import pytest

from commtune.systems.loading import load_system
from commtune.systems.nominal.collectives import Nominal, bus_factor
from commtune.systems.nominal.fabric import (
    Fabric,
    Link,
    Ports,
    _shortest_paths,
    disjoint_rings,
    fabric_of,
    packed_ports,
)
from commtune.systems.nominal.operations import nominal_bandwidth
from commtune.systems.nominal.traffic import Memory, NominalQuestion

GBIT = 1e9 / 8
GBYTE = 1e9
LUMI = fabric_of(load_system("lumi"))
LEONARDO = fabric_of(load_system("leonardo"))
#: 4 GH200, 6 NVLinks of 200 Gb/s between each two, a 200 Gb/s port each: the study's table 1.
ALPS = Fabric(
    "Alps, of the study",
    4,
    tuple(Link(a, b, 6, 200 * GBIT) for a, b in combinations(range(4), 2)),
    Ports(4, 200 * GBIT, (0, 1, 2, 3)),
)
#: 8 GPUs, each with 18 links of 25 GB/s to a switch.
NVSWITCH = Fabric("8 H200", 8, tuple(Link(gpu, 8, 18, 25 * GBYTE) for gpu in range(8)))


def gbits(found: Nominal) -> float:
    assert found.bytes_per_s is not None, found.why
    return found.bytes_per_s / GBIT


def asked(operation: str, ranks: int, nodes: int = 1, **more: object) -> NominalQuestion:
    return replace(NominalQuestion(operation, ranks, nodes), **more)  # type: ignore[arg-type]


def test_pairs_of_a_lumi_node() -> None:
    matrix = LUMI.pair_bandwidths()
    widths = [matrix[0, gpu] / GBIT for gpu in range(1, 8)]
    assert widths == [1600, 400, 400, 400, 400, 800, 800]
    assert len(matrix) == 8 * 7


@pytest.mark.parametrize(("fabric", "pair"), [(ALPS, 1200), (LEONARDO, 800), (NVSWITCH, 3600)])
def test_a_pair_of_a_node_that_is_alike_everywhere(fabric: Fabric, pair: float) -> None:
    assert {width / GBIT for width in fabric.pair_bandwidths().values()} == {pair}
    found = nominal_bandwidth(fabric, asked("ping-pong", fabric.gpus))
    assert gbits(found) == pair
    assert (
        gbits(nominal_bandwidth(fabric, asked("bidirectional", fabric.gpus))) == pair
    )  # one direction


def test_a_pair_says_from_which_links() -> None:
    found = nominal_bandwidth(LEONARDO, asked("ping-pong", 4))
    assert found.why == "4 links x 25 GB/s from GPU 0 to GPU 3"
    assert found.origin == "description leonardo 1"
    assert "paper" in LEONARDO.sources
    over = nominal_bandwidth(LUMI, asked("pairs", 8, first=0, second=7))
    assert over.why == "by way of GPU 6: 2 links x 50 GB/s from GPU 0 to GPU 6"


def test_injection_of_a_gpu() -> None:
    """The reference: 3.6, 2.4 and, by RCCL's links, 2.4 or 2.8 Tb/s."""
    assert [fabric.injection(0) / GBIT for fabric in (ALPS, LEONARDO)] == [3600, 2400]
    assert [LUMI.injection(gpu) / GBIT for gpu in range(8)] == [2800, 2400] * 4


def test_edge_forwarding_index_of_an_mi250x_node() -> None:
    """The study: four shortest paths cross 1-5 and 3-7, so 100 Gb/s for each pair of dies."""
    everyone = [(a, b, 1.0) for a in range(8) for b in range(8) if a != b]
    found = LUMI.edge_loads(everyone)
    busiest = min(LUMI.capacity[edge] / load for edge, load in found.items())
    edges = {e for e, load in found.items() if LUMI.capacity[e] / load == pytest.approx(busiest)}
    assert edges == {(1, 5), (5, 1), (3, 7), (7, 3)}
    assert {found[edge] for edge in edges} == {4.0}
    assert busiest / GBIT == pytest.approx(100)
    assert len(_shortest_paths(LUMI, 0, 3)) == 2


def test_alltoall_inside_a_node() -> None:
    """Full mesh: injection. MI250X: 100 Gb/s to each of 7 dies, and 150 by the narrowest cut."""
    assert gbits(nominal_bandwidth(ALPS, asked("alltoall", 4))) == 3600
    assert gbits(nominal_bandwidth(LEONARDO, asked("alltoall", 4))) == 2400
    found = nominal_bandwidth(LUMI, asked("alltoall", 8))
    assert gbits(found) == pytest.approx(7 * 100)
    assert found.limit is not None
    assert found.limit / GBIT == pytest.approx(7 * 150)  # so the study's 600 is no ceiling
    assert "100 Gb/s (12.5 GB/s) each" in found.why


def test_the_cut_that_the_reference_names() -> None:
    capacity = dict(LUMI.node_cuts)[frozenset({0, 1, 6, 7})]
    assert capacity / GBIT == 6 * 400
    assert capacity / GBIT / 16 == 150


@pytest.mark.parametrize(
    ("fabric", "bus", "algorithm"), [(ALPS, 3600, 2400), (LEONARDO, 2400, 1600)]
)
def test_allreduce_of_a_full_mesh(fabric: Fabric, bus: float, algorithm: float) -> None:
    """The study's 3.6 and 2.4 Tb/s are bus bandwidths; 2/3 of them is the algorithm's."""
    found = nominal_bandwidth(fabric, asked("allreduce", 4))
    assert gbits(found) == bus
    assert gbits(found) / bus_factor("allreduce", 4) == pytest.approx(algorithm)
    assert found.limit is None  # what all links together carry is no more


def test_allreduce_of_an_mi250x_node() -> None:
    """The study: four rings of 400 Gb/s, so 800 Gb/s where every byte is sent twice."""
    assert disjoint_rings(LUMI, tuple(range(8))) == (2, 400 * GBIT)  # two, each both ways
    found = nominal_bandwidth(LUMI, asked("allreduce", 8))
    assert gbits(found) == 4 * 400
    assert gbits(found) / 2 == 800
    assert gbits(found) / bus_factor("allreduce", 8) == pytest.approx(914.2857)
    assert found.limit is not None and found.limit / GBIT == 2600  # (2800 + 2400) / 2


def test_rings_share_no_link() -> None:
    assert disjoint_rings(LEONARDO, (0, 1, 2, 3)) == (6, 200 * GBIT)  # all 12 links of each GPU
    assert disjoint_rings(NVSWITCH, tuple(range(8))) == (0, 0.0)
    assert disjoint_rings(LUMI, (0, 1)) == (0, 0.0)


@pytest.mark.parametrize("operation", ["allgather", "reduce-scatter"])
def test_allgather_and_its_reverse(operation: str) -> None:
    assert gbits(nominal_bandwidth(ALPS, asked(operation, 4))) == 3600
    found = nominal_bandwidth(LUMI, asked(operation, 8))
    assert gbits(found) == 1600
    # What 6 of 8 dies hold must get to the other module over its 5 links.
    assert found.limit is not None and found.limit / GBIT == pytest.approx(7 * 5 * 400 / 6)


@pytest.mark.parametrize("operation", ["broadcast", "reduce"])
def test_broadcast_and_its_reverse(operation: str) -> None:
    assert gbits(nominal_bandwidth(ALPS, asked(operation, 4))) == 3600
    assert gbits(nominal_bandwidth(NVSWITCH, asked(operation, 8))) == 3600
    found = nominal_bandwidth(LUMI, asked(operation, 8))
    assert gbits(found) == 1600
    assert found.limit is not None and found.limit / GBIT == 2000  # out of a module


def test_fewer_ranks_than_gpus() -> None:
    for operation in ("allreduce", "allgather", "alltoall", "ping-pong", "broadcast"):
        assert gbits(nominal_bandwidth(LUMI, asked(operation, 2))) == 1600, operation
    assert gbits(nominal_bandwidth(NVSWITCH, asked("allreduce", 4))) == 3600


@pytest.mark.parametrize(("fabric", "each"), [(ALPS, 200), (LEONARDO, 100), (LUMI, 100)])
def test_alltoall_between_nodes_tends_to_the_share_of_a_port(fabric: Fabric, each: float) -> None:
    few = gbits(nominal_bandwidth(fabric, asked("alltoall", 2 * fabric.gpus, 2)))
    many = gbits(nominal_bandwidth(fabric, asked("alltoall", 1024 * fabric.gpus, 1024)))
    assert few > 1.7 * each
    assert many == pytest.approx(each, rel=1e-3)


def test_alltoall_over_two_alps_nodes() -> None:
    """Of 7 others 4 are outside: 7/4 of the port."""
    assert gbits(nominal_bandwidth(ALPS, asked("alltoall", 8, 2))) == pytest.approx(200 * 7 / 4)


@pytest.mark.parametrize(
    ("operation", "nodes", "bus"),
    [
        ("allreduce", 2, 400 * 2 * 7 / 8),  # every byte out and in once: above the ports' 400
        ("allreduce", 1024, 400),
        ("allgather", 2, 400 * 2 * 7 / 8),
        ("broadcast", 2, 400),
        ("rail", 2, 400),
    ],
)
def test_between_leonardo_nodes(operation: str, nodes: int, bus: float) -> None:
    question = asked(operation, 4 * nodes, nodes, group_size=4, active=4)
    assert gbits(nominal_bandwidth(LEONARDO, question)) == pytest.approx(bus, rel=2e-3)


def test_the_links_decide_where_ports_are_wider() -> None:
    wide = replace(LUMI, ports=Ports(8, 4000 * GBIT, tuple(range(8))))
    found = nominal_bandwidth(wide, asked("allreduce", 16, 2))
    assert gbits(found) == pytest.approx(
        1600 / bus_factor("allreduce", 8) * bus_factor("allreduce", 16)
    )
    assert found.why.startswith("inside a node: ")


@pytest.mark.parametrize("gpus_a_port", [1, 2, 3, 4])
def test_packed_sharing_is_equation_1_of_commbench(gpus_a_port: int) -> None:
    f, gpus = 25 * GBYTE, 12
    fabric = Fabric(
        "x", gpus, ports=Ports(gpus // gpus_a_port, f, packed_ports(gpus, gpus // gpus_a_port))
    )
    for k in range(1, gpus + 1):
        whole = f * (1 + max(0, k - gpus_a_port) / gpus_a_port)
        assert fabric.group_bandwidth(k) == pytest.approx(
            whole if k <= gpus_a_port else k * f / gpus_a_port
        )
        assert fabric.group_bandwidth(k) == pytest.approx(whole)


def test_round_robin_is_equation_2_of_commbench() -> None:
    f = 25 * GBYTE  # Aurora: 12 tiles, 8 ports
    fabric = Fabric("Aurora", 12, ports=Ports(8, f, (0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3)))
    for k in range(1, 13):
        assert fabric.group_bandwidth(k) == pytest.approx(f * k / -(-k // 8))
    assert fabric.group_bandwidth(8) == 200 * GBYTE
    assert fabric.group_bandwidth(9) == 112.5 * GBYTE  # the ninth has to share


@pytest.mark.parametrize("operation", ["rail", "symmetric", "asymmetric"])
@pytest.mark.parametrize("active", [1, 2, 3, 4, 8])
def test_group_patterns_are_what_active_gpus_send(operation: str, active: int) -> None:
    sent = LUMI.group_bandwidth(active)
    assert sent is not None
    for direction, both in (("outbound", 1), ("bidirectional", 2)):
        question = asked(operation, 32, 4, group_size=8, active=active, direction=direction)
        assert gbits(nominal_bandwidth(LUMI, question)) == pytest.approx(both * sent / GBIT)
    if operation != "asymmetric":
        question = replace(question, direction="omnidirectional")
        assert gbits(nominal_bandwidth(LUMI, question)) == pytest.approx(2 * sent / GBIT)


def test_incast() -> None:
    assert (
        gbits(nominal_bandwidth(NVSWITCH, asked("incast", 8))) == 3600
    )  # all into one GPU's links
    assert gbits(nominal_bandwidth(NVSWITCH, asked("one-to-many", 8))) == 3600
    # From 4 ranks elsewhere into the one port of rank 0; 3 more come by NVLink meanwhile.
    assert gbits(nominal_bandwidth(ALPS, asked("incast", 8, 2))) == pytest.approx(200 * 7 / 4)


def test_ring_shift() -> None:
    assert gbits(nominal_bandwidth(NVSWITCH, asked("ring", 8))) == 3600
    assert gbits(nominal_bandwidth(ALPS, asked("ring", 4))) == 1200
    assert gbits(nominal_bandwidth(ALPS, asked("ring", 8, 2))) == 200


def test_steps_of_striping_follow_each_other() -> None:
    # Rank 0 gives away three quarters of the message, all at once over a link each of 800 Gb/s.
    found = nominal_bandwidth(LEONARDO, asked("striping", 8, 2, group_size=4))
    assert gbits(found) == pytest.approx(1 / (0.25 / 800 + 0.25 / 100 + 0.25 / 800))
    assert found.limit == 400 * GBIT
    assert found.limit_why.startswith("translate alone: ")
    assert found.assumptions[0] == "its steps don't overlap"
    # In one node it leaves rank 0 by one way: all links to the switch.
    found = nominal_bandwidth(NVSWITCH, asked("striping", 8, group_size=4))
    assert gbits(found) == pytest.approx(1 / (0.75 / 3600 + 0.25 / 3600 + 0.75 / 3600))
    # Groups of one have nothing to share out.
    alone = nominal_bandwidth(NVSWITCH, asked("striping", 2, group_size=1))
    assert gbits(alone) == gbits(nominal_bandwidth(NVSWITCH, asked("ping-pong", 2)))


def test_striping_between_hosts_is_what_ports_carry() -> None:
    found = nominal_bandwidth(LEONARDO, asked("striping", 8, 2, group_size=4, memory=Memory.HOST))
    assert gbits(found) == 400
    assert "copies inside the host's memory cost nothing" in found.assumptions


def test_a_matrix_is_as_fast_as_its_busiest_link() -> None:
    flows = ((0, 1, 300.0), (0, 2, 100.0), (2, 1, 600.0))
    found = nominal_bandwidth(LEONARDO, asked("matrix", 4, flows=flows))
    assert gbits(found) == pytest.approx(800 * 1000 / 600)  # 2 to 1 decides


def test_a_gpu_with_itself() -> None:
    """The reference: every byte is read and written, so 85 % of 1.55 TB/s are 2b/t."""
    found = nominal_bandwidth(LUMI, asked("self", 8))
    assert found.bytes_per_s == 0.82e12
    assert found.why == "13120 Gb/s (1640 GB/s) of memory, each byte read and written"
    assert "memory is not described" in nominal_bandwidth(LEONARDO, asked("self", 4)).why


def test_staging_is_store_and_forward() -> None:
    inside = nominal_bandwidth(LEONARDO, asked("ping-pong", 4, memory=Memory.STAGED))
    assert gbits(inside) == pytest.approx(256 / 2)
    between = nominal_bandwidth(LEONARDO, asked("ping-pong", 8, 2, memory=Memory.STAGED))
    assert gbits(between) == pytest.approx(1 / (2 / 256 + 1 / 100))
    assert "nothing overlaps" in between.assumptions


def test_host_memory() -> None:
    found = nominal_bandwidth(LEONARDO, asked("allreduce", 64, 2, memory=Memory.HOST))
    assert gbits(found) == pytest.approx(400 * 2 * 63 / 64)
    pair = nominal_bandwidth(LEONARDO, asked("ping-pong", 2, 2, memory=Memory.HOST))
    assert gbits(pair) == 100
    assert pair.limit is not None and pair.limit / GBIT == 400  # a library may use all ports


@pytest.mark.parametrize(
    ("fabric", "question", "why"),
    [
        (LEONARDO, asked("allreduce", 2, memory=Memory.HOST), "inside host memory"),
        (LEONARDO, asked("allreduce", 7, 2), "not spread evenly"),
        (LEONARDO, asked("allreduce", 8), "8 ranks a node, but 4 GPUs are described"),
        (LEONARDO, asked("allreduce", 1), "a rank alone"),
        (NVSWITCH, asked("allreduce", 16, 2), "no network port is described"),
        (NVSWITCH, asked("ping-pong", 2, memory=Memory.STAGED), "its processor is not described"),
        (LEONARDO, asked("dance", 4), "there is no model of dance"),
        (replace(LEONARDO, links=()), asked("allreduce", 4), "not joined by links"),
        (replace(LEONARDO, links=()), asked("alltoall", 4), "not joined by links"),
        (LEONARDO, asked("symmetric", 4 * 500, 500, group_size=4, active=4,
                         direction="omnidirectional"), "too many messages"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_said(fabric: Fabric, question: NominalQuestion, why: str) -> None:
    found = nominal_bandwidth(fabric, question)
    assert found.bytes_per_s is None
    assert why in found.why
    assert found.share(1.0) is None
    assert found.reached(1e9).startswith("no nominal bandwidth: ")


def test_switches_that_reduce_are_beyond_the_nominal() -> None:
    found = nominal_bandwidth(NVSWITCH, asked("allreduce", 8))
    assert gbits(found) == 3600
    assert any("NVLS" in assumption for assumption in found.assumptions)
    assert found.limit is not None and found.limit / GBIT == pytest.approx(3600 * 2 * 7 / 8)


def test_assumed_ports_are_said() -> None:
    ports = LEONARDO.ports
    assert ports is not None and not ports.assumed
    found = nominal_bandwidth(
        replace(LEONARDO, ports=replace(ports, assumed=True)), asked("allreduce", 8, 2)
    )
    assert any("share a network port" in assumption for assumption in found.assumptions)


def test_a_share_in_words() -> None:
    found = nominal_bandwidth(LEONARDO, asked("ping-pong", 4))
    assert found.reached(50 * GBYTE) == (
        "50% of nominal 800 Gb/s (100 GB/s) by widest of the shortest paths"
    )
    assert "does not hold here" in found.reached(110 * GBYTE)


def test_large_nodes_take_no_time() -> None:
    """16 GPUs: cuts are taken around single GPUs, which are bounds as well."""
    big = Fabric("x", 16, tuple(Link(gpu, 16, 18, 25 * GBYTE) for gpu in range(16)))
    for operation in ("alltoall", "allreduce", "allgather", "broadcast", "incast"):
        assert gbits(nominal_bandwidth(big, asked(operation, 16))) == 3600


def test_a_fabric_reads_back_from_plain_data() -> None:
    import json

    for fabric in (LUMI, LEONARDO, ALPS, NVSWITCH):
        assert Fabric.of_plain(json.loads(json.dumps(asdict(fabric)))) == fabric
