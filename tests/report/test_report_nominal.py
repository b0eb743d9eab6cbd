"""What a report says of nominal bandwidth: from stored links, and honest where there are none."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from report_words import words_of
from stored_campaigns import Made
from stores import opened_store

from commtune.db.queries.description import describe_campaign
from commtune.formatting import format_percent
from commtune.report.page import Page
from commtune.report.record import read_record
from commtune.systems.loading import load_system
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.nominal.operations import FABRIC

LEONARDO = {FABRIC: asdict(fabric_of(load_system("leonardo")))}


def page_of(folder: Path, made: Made) -> tuple[Page, str]:
    """A campaign's page, and its words; bandwidth alone is drawn."""
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        made.store(store)
        page = Page(read_record(store, url, describe_campaign(url, made.name)))
    return page, words_of(page, "bandwidth")


def header(links: list[dict[str, Any]], memory: str = "device") -> dict[str, Any]:
    ranks = [
        {"rank": i, "node": 0, "local_rank": i,
         "gpu": {"name": "NVIDIA H200", "pci": f"0000:1{i}:00.0", "links": links}}
        for i in range(2)
    ]  # fmt: skip
    return {"record": "header", "memory": memory, "rank_info": ranks}


def test_a_described_system(tmp_path: Path) -> None:
    workload = {"ranks": 64, "nodes": 2}
    page, words = page_of(tmp_path, Made(trials=5, settings=LEONARDO, workload=workload))
    nominal = page.nominal.bytes_per_s
    assert nominal is not None and nominal == pytest.approx(
        50e9 * 2 * 63 / 64
    )  # all ports of a node
    assert "hierarchical, ports of a node" in words
    assert "from description leonardo 1" in words
    assert "ranks reduce, not switches" in words
    assert "bandwidth" in page.pictures
    largest = page.points[-1]
    seconds = largest.evidence.default_s
    # The made-up runs have no bus factor: bus bandwidth is their size over their time.
    share = largest.bytes / seconds / nominal
    assert page.share(largest, seconds) == pytest.approx(share)
    assert f"{format_percent(share)} → " in words


def test_links_that_the_driver_named(tmp_path: Path) -> None:
    links = [{"to": "switch", "pci": None, "links": 18, "version": "4.0", "link_Bps": 26.56e9}]
    made = Made(trials=5, header=header(links), workload={"backend": "xccl"})
    page, words = page_of(tmp_path, made)
    assert page.nominal.bytes_per_s == 450e9
    assert "from links that the driver names" in words


def test_gpus_without_known_links(tmp_path: Path) -> None:
    made = Made(trials=5, header=header([]), workload={"backend": "xccl"})
    page, words = page_of(tmp_path, made)
    assert page.nominal.bytes_per_s is None
    assert "No nominal bandwidth to compare with: neither a system description" in words
    assert "of nominal" not in words
    assert "bandwidth" not in page.pictures


def test_emulated_nodes_have_none(tmp_path: Path) -> None:
    workload = {"backend": "xccl", "emulated_nodes": 2}
    page, _ = page_of(tmp_path, Made(trials=5, settings=LEONARDO, workload=workload))
    assert "emulated" in page.nominal.why


def test_ranks_in_host_memory_of_one_node_are_not_compared(tmp_path: Path) -> None:
    page, words = page_of(tmp_path, Made(trials=5))
    assert page.nominal.bytes_per_s is None
    assert "ominal" not in words


def test_what_is_stored_is_links_and_not_a_share() -> None:
    stored = json.loads(json.dumps(LEONARDO))[FABRIC]
    assert [link["count"] for link in stored["links"]] == [4] * 6
    assert "bytes_per_s" not in stored


def test_patterns_are_named_and_held_against_their_own_ports(tmp_path: Path) -> None:
    """Leonardo's four ports of 100 Gb/s, of which two ranks of each node use two, both ways."""
    shape = {"group_size": 4, "active": 2, "direction": "bidirectional"}
    workload = {
        "operation": "rail", "ranks": 8, "nodes": 2, "backend": "xccl", "shape": shape,
        "rotate": True,
    }  # fmt: skip
    made = Made(trials=5, blocks=0, settings=LEONARDO, workload=workload)
    page, words = page_of(tmp_path, made)
    assert page.nominal.bytes_per_s == pytest.approx(2 * 2 * 12.5e9)
    assert (
        "rail (groups of 4, 2 of each active, bidirectional, rotating through the buffers) of"
    ) in words


def test_a_matrix_is_judged_by_its_stored_messages(tmp_path: Path) -> None:
    workload = {
        "operation": "matrix", "ranks": 8, "nodes": 2, "backend": "xccl",
        "shape": {"matrix": "0" * 64},
    }  # fmt: skip
    flows = [[0, 4, 100.0], [1, 5, 50.0]]
    made = Made(trials=5, blocks=0, settings={**LEONARDO, "flows": flows}, workload=workload)
    page, _ = page_of(tmp_path, made)
    # The largest fills its port, and half as much goes by another one meanwhile.
    assert page.nominal.bytes_per_s == pytest.approx(1.5 * 12.5e9)
    unknown = Made("other", trials=5, blocks=0, settings=LEONARDO, workload=workload)
    page, _ = page_of(tmp_path, unknown)
    assert "too many" in page.nominal.why
    mixed = {**workload, "shape": {"matrix": "0" * 64, "between": "mpi-staged"}}
    staged = Made("staged", trials=5, blocks=0, settings=made.settings, workload=mixed)
    page, _ = page_of(tmp_path, staged)
    assert "some go through the host" in page.nominal.why


@pytest.mark.slow
def test_parts_stand_beside_the_whole(tmp_path: Path) -> None:
    workload = {"operation": "striping", "shape": {"group_size": 2}, "ranks": 4}
    parts = {"split": 0.25, "translate": 0.5}
    made = Made(trials=5, workload=workload, parts=parts, loaded=0.0)
    page, words = page_of(tmp_path, made)
    assert "Its parts, each by itself" in words
    steps = {(step.bytes, step.part): step for step in page.steps}
    assert len(steps) == 2 * len(made.sizes)
    point = page.points[-1]
    split, translate = steps[point.bytes, "split"], steps[point.bytes, "translate"]
    assert split.default_s == pytest.approx(translate.default_s / 2)
    assert split.default_s == pytest.approx(point.evidence.default_s / 4, rel=0.05)
    assert split.tuned_s == pytest.approx(point.evidence.tuned_s / 4, rel=0.05)
    searched = Made("searched", trials=5, blocks=0, workload=workload, parts=parts)
    page, words = page_of(tmp_path, searched)
    assert "No size was confirmed." in words
    assert "Its parts, each by itself" in words
    page, words = page_of(tmp_path, Made("plain", trials=5))
    assert page.steps == ()
    assert "Its parts" not in words
