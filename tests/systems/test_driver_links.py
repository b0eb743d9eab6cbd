"""The links that a driver names, made into the graph of a node."""

from __future__ import annotations

from typing import Any

import pytest

from commtune.systems import Question, fabric_of_ranks, nominal
from commtune.systems.driver import address

GBYTE = 1e9


def rank(number: int, pci: str, *links: tuple[str, int, float], node: int = 0) -> dict[str, Any]:
    said = [{"peer": p, "count": c, "bytes_per_s_each": b} for p, c, b in links]
    return {
        "rank": number, "node": node, "local_rank": number,
        "gpu": {"name": "NVIDIA H200", "pci": pci, "links": said},
    }  # fmt: skip


def h200s(count: int) -> list[dict[str, Any]]:
    return [rank(i, f"0000:{0x18 + i:02x}:00.0", ("switch", 18, 25 * GBYTE)) for i in range(count)]


def test_a_node_with_a_switch() -> None:
    fabric = fabric_of_ranks(h200s(4))
    assert fabric is not None and fabric.gpus == 4
    for operation in ("ping-pong", "allreduce", "alltoall", "ring", "incast", "broadcast"):
        found = nominal(fabric, Question(operation, 4))
        assert found.bytes_per_s == pytest.approx(450 * GBYTE), operation
        assert found.origin == "links that the driver names"
    found = nominal(fabric, Question("ping-pong", 4))
    assert found.why == "18 links x 25 GB/s from GPU 0 to the switch"
    assert nominal(fabric, Question("allreduce", 8, 2)).bytes_per_s is None


def test_links_between_gpus_are_counted_once() -> None:
    a, b, c = "0000:07:00.0", "00000000:0F:00.0", "0000:47:00.0"
    ranks = [
        rank(0, a, (b.lower(), 4, 25 * GBYTE), (c, 4, 25 * GBYTE)),
        rank(1, b, (a, 4, 25 * GBYTE), (c, 2, 25 * GBYTE), ("cpu", 1, 32 * GBYTE)),
    ]
    fabric = fabric_of_ranks(ranks)
    assert fabric is not None and fabric.gpus == 3  # the third is used by no rank
    assert [(link.a, link.b, link.count) for link in fabric.links] == [
        (0, 1, 4), (0, 2, 4), (1, 2, 2),
    ]  # fmt: skip
    assert nominal(fabric, Question("ping-pong", 2)).bytes_per_s == 100 * GBYTE


def test_only_the_node_of_rank_0_is_read() -> None:
    other = [{**r, "rank": r["rank"] + 4, "node": 1} for r in h200s(4)]
    assert fabric_of_ranks([*h200s(4), *other]) == fabric_of_ranks(h200s(4))


@pytest.mark.parametrize(
    "ranks",
    [
        [{"rank": 0, "node": 0, "local_rank": 0}],
        [{"rank": 0, "node": 0, "local_rank": 0, "gpu": None}],
        [{"rank": 0, "node": 0, "local_rank": 0, "gpu": {"name": "x"}}],
        [rank(0, "0000:18:00.0"), rank(1, "0000:19:00.0")],
        [
            rank(0, "0000:18:00.0", ("switch", 18, 1.0)),
            rank(1, "0000:18:00.0", ("switch", 1, 1.0)),
        ],
        [rank(0, "0000:18:00.0", ("switch", 0, 25 * GBYTE))],
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
    assert address(written) == read
