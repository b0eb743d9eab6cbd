"""The links that a driver names, made into the graph of a node."""

from __future__ import annotations

from typing import Any

import pytest

from commtune.systems.nominal.fabric import fabric_of_ranks, normalise_address
from commtune.systems.nominal.operations import nominal_bandwidth
from commtune.systems.nominal.traffic import NominalQuestion

GBYTE = 1e9


def bundle(to: str, links: int, pci: str | None = None, **more: object) -> dict[str, Any]:
    """As the benchmark writes it; H100 and H200 say 26.6 GB/s for a link of nominally 25."""
    return {"to": to, "pci": pci, "links": links, "version": "4.0", "link_Bps": 26.562e9, **more}


def rank(number: int, pci: str, *links: dict[str, Any], node: int = 0) -> dict[str, Any]:
    return {
        "rank": number, "node": node, "local_rank": number,
        "gpu": {"name": "NVIDIA H200", "pci": pci, "links": list(links)},
    }  # fmt: skip


def h200s(count: int) -> list[dict[str, Any]]:
    """Their 18 links lead to 4 switches."""
    switches = [bundle("switch", n, f"0000:0{n}:0{i}.0") for i, n in enumerate((4, 5, 4, 5))]
    return [rank(i, f"0000:{0x18 + i:02x}:00.0", *switches) for i in range(count)]


def test_a_node_with_switches() -> None:
    fabric = fabric_of_ranks(h200s(4))
    assert fabric is not None and fabric.gpus == 4
    for operation in ("ping-pong", "allreduce", "alltoall", "ring", "incast", "broadcast"):
        found = nominal_bandwidth(fabric, NominalQuestion(operation, 4))
        assert found.bytes_per_s == pytest.approx(450 * GBYTE), operation
        assert found.origin == "links that the driver names"
    found = nominal_bandwidth(fabric, NominalQuestion("ping-pong", 4))
    assert found.why == "18 links x 25 GB/s from GPU 0 to the switch"
    assert nominal_bandwidth(fabric, NominalQuestion("allreduce", 8, 2)).bytes_per_s is None


def test_ends_that_the_driver_cannot_name_are_said() -> None:
    fabric = fabric_of_ranks([rank(i, f"0000:1{i}:00.0", bundle("unknown", 18)) for i in (0, 1)])
    assert fabric is not None
    found = nominal_bandwidth(fabric, NominalQuestion("ping-pong", 2))
    assert found.bytes_per_s == 450 * GBYTE
    assert "taken for a switch" in found.origin


def test_links_between_gpus_are_counted_once() -> None:
    a, b, c = "0000:07:00.0", "00000000:0F:00.0", "0000:47:00.0"
    ranks = [
        rank(0, a, bundle("gpu", 4, b.lower()), bundle("gpu", 4, c)),
        rank(1, b, bundle("gpu", 4, a), bundle("gpu", 2, c), bundle("cpu", 1)),
    ]
    fabric = fabric_of_ranks(ranks)
    assert fabric is not None and fabric.gpus == 3  # the third is used by no rank
    assert [(link.a, link.b, link.count) for link in fabric.links] == [
        (0, 1, 4), (0, 2, 4), (1, 2, 2),
    ]  # fmt: skip
    assert nominal_bandwidth(fabric, NominalQuestion("ping-pong", 2)).bytes_per_s == 100 * GBYTE


@pytest.mark.parametrize(
    ("version", "said", "used"),
    [("1.0", 20e9, 20), ("2.2", None, 25), ("3.1", 25.781e9, 25), ("5.0", 53.125e9, 50),
     (None, 40e9, 40), ("9.0", 100e9, 100)],
)  # fmt: skip
def test_bandwidth_is_what_a_version_is_sold_for(
    version: str | None, said: float | None, used: float
) -> None:
    links = bundle("switch", 2, version=version, link_Bps=said)
    fabric = fabric_of_ranks([rank(i, f"0000:1{i}:00.0", links) for i in (0, 1)])
    assert fabric is not None
    assert {link.bandwidth for link in fabric.links} == {used * GBYTE}


def test_only_the_node_of_rank_0_is_read() -> None:
    other = [{**r, "rank": r["rank"] + 4, "node": 1} for r in h200s(4)]
    assert fabric_of_ranks([*h200s(4), *other]) == fabric_of_ranks(h200s(4))


ONE = bundle("switch", 1)


@pytest.mark.parametrize(
    "ranks",
    [
        [{"rank": 0, "node": 0, "local_rank": 0}],
        [{"rank": 0, "node": 0, "local_rank": 0, "gpu": None}],
        [{"rank": 0, "node": 0, "local_rank": 0, "gpu": {"name": "x"}}],
        [{"rank": 0, "node": 0, "local_rank": 0, "gpu": {"pci": "0000:18:00.0", "links": None}}],
        [rank(0, "0000:18:00.0"), rank(1, "0000:19:00.0")],
        [rank(0, "0000:18:00.0", ONE), rank(1, "0000:18:00.0", ONE)],
        [rank(0, "0000:18:00.0", bundle("switch", 0))],
        [rank(0, "0000:18:00.0", bundle("switch", 2, version=None, link_Bps=None))],
    ],
)
def test_what_says_too_little(ranks: list[dict[str, Any]]) -> None:
    assert fabric_of_ranks(ranks) is None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0000:1b:00.0", "0000:1b:00"), ("00000000:1B:00.0", "0000:1b:00"),
        ("10DE:1b:00.0", "10de:1b:00"), ("switch", None), (None, None), (7, None),
    ],
)  # fmt: skip
def test_addresses(written: object, read: str | None) -> None:
    assert normalise_address(written) == read
