"""Intel MPI's rules, read back as Intel MPI 2021.18.1 was seen to read them.

The reader shares nothing with what writes. That the library reads alike: tests/cluster/
test_tracing_intel.py and tests/end_to_end/test_rule_files.py.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from rule_documents import KIB, document

from commtune.errors import ExportRefused
from commtune.export.document import ExportDocument
from commtune.export.rules import RULE_FORMATS, render_rules
from commtune.export.rules.rule_file import RuleExport
from commtune.export.rules.table import RuleTable

_LAYERS = ("coll", "ppn", "comm_size", "comm_id", "msg_size")


def adjust(collective: str, value: str) -> dict[str, str]:
    return {f"I_MPI_ADJUST_{collective}": value}


def rendered(*documents: ExportDocument, version: str = "2021.18.1") -> RuleExport:
    table = RuleTable.of_documents(documents, "intel-mpi", version)
    return render_rules(RULE_FORMATS["intel-json"], table, None)


def read_by_intel_mpi(export: RuleExport) -> dict[str, Any]:
    """JSON with comments, in which every layer is there and no node is empty, which crashes."""
    (file,) = export.files
    assert file.variable == "I_MPI_TUNING"
    tree = json.loads(re.sub(r"^//.*$", "", file.text, flags=re.M), object_pairs_hook=_once)
    _check(tree, _LAYERS)
    assert isinstance(tree, dict)
    return tree


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs), "a key stands twice"
    return dict(pairs)


def _check(tree: dict[str, Any], layers: tuple[str, ...]) -> None:
    assert tree
    if not layers:
        ((leaf, below),) = tree.items()
        assert re.fullmatch(r"[A-Z_]+=\d+", leaf)
        assert below == {}
        return
    assert all(key.startswith(f"{layers[0]}=") for key in tree)
    if layers[0] != "coll":
        bounds = [_bound(key) for key in tree]
        assert bounds == sorted(bounds)
        assert bounds[-1] == math.inf
    for below in tree.values():
        _check(below, layers[1:])


def _bound(key: str) -> float:
    number = int(key.partition("=")[2])
    return math.inf if number == -1 else number


def looked_up(tree: dict[str, Any], collective: str, ranks: int, block: int) -> str:
    """The first that is not below what is asked for, layer by layer."""
    found = tree[f"coll={collective}"]
    for asked in (ranks, ranks, 0, block):
        found = next(below for key, below in found.items() if asked <= _bound(key))
    (leaf,) = found
    assert isinstance(leaf, str)
    return leaf


def test_intel_mpi_finds_a_rule_at_every_size_and_algorithm_0_for_other_ranks() -> None:
    tree = read_by_intel_mpi(
        rendered(
            document(8, KIB, adjust("ALLREDUCE", "7"), "allreduce"),
            document(4 * KIB, 16 * KIB, adjust("ALLREDUCE", "8"), "allreduce"),
            document(8, KIB, adjust("BCAST", "17"), "broadcast"),
        )
    )
    assert set(tree) == {"coll=Allreduce", "coll=Bcast"}
    sizes = (0, 7, 8, 2048, 2049, 16384, 16385, 2**33)
    seen = [looked_up(tree, "Allreduce", 4, size) for size in sizes]
    assert seen == [f"ALLREDUCE={n}" for n in (7, 7, 7, 7, 8, 8, 8, 8)]
    others = {looked_up(tree, "Allreduce", ranks, KIB) for ranks in (1, 2, 3, 5, 8, 4096)}
    assert others == {"ALLREDUCE=0"}
    assert looked_up(tree, "Bcast", 4, KIB) == "BCAST=17"


@pytest.mark.parametrize(
    ("operation", "collective"),
    [
        ("allgather", "Allgather"),
        ("alltoall", "Alltoall"),
        ("reduce-scatter", "Reduce_scatter_block"),
    ],
)
def test_sizes_of_all_ranks_together_are_blocks_of_one_to_intel_mpi(
    operation: str, collective: str
) -> None:
    upper = collective.upper()
    tree = read_by_intel_mpi(
        rendered(
            document(8, KIB, adjust(upper, "3"), operation),
            document(4 * KIB, 16 * KIB, adjust(upper, "4"), operation),
        )
    )
    seen = [looked_up(tree, collective, 4, block) for block in (1, 2, 512, 513, 4096, 4097)]
    assert seen == [f"{upper}={n}" for n in (3, 3, 3, 4, 4, 4)]


def test_a_range_between_two_blocks_changes_neither() -> None:
    tree = read_by_intel_mpi(
        rendered(
            document(12, 12, adjust("ALLGATHER", "3"), "allgather"),
            document(13, 13, adjust("ALLGATHER", "4"), "allgather"),
            document(16, 16, adjust("ALLGATHER", "5"), "allgather"),
        )
    )
    seen = [looked_up(tree, "Allgather", 4, block) for block in (2, 3, 4, 5)]
    assert seen == [f"ALLGATHER={n}" for n in (3, 3, 5, 5)]


def test_operations_without_a_rule_keep_intel_mpi_s_table() -> None:
    export = rendered(
        document(8, KIB, adjust("ALLREDUCE", "7"), "allreduce"),
        document(8, KIB, {}, "broadcast"),
    )
    assert set(read_by_intel_mpi(export)) == {"coll=Allreduce"}
    assert "4 ranks only; other communicators lose the library's own" in export.files[0].text


def test_sizes_without_an_algorithm_are_refused() -> None:
    """Algorithm 0 in their place may be slower than what Intel MPI's own table has."""
    shared = {"I_MPI_SHM": "icx"}
    with pytest.raises(ExportRefused, match="of allreduce, and there is none at 2 KiB, 8 KiB to"):
        rendered(
            document(8, KIB, {**shared, **adjust("ALLREDUCE", "7")}, "allreduce"),
            document(2 * KIB, 2 * KIB, shared, "allreduce"),
            document(4 * KIB, 4 * KIB, {**shared, **adjust("ALLREDUCE", "8")}, "allreduce"),
            document(8 * KIB, 16 * KIB, shared, "allreduce"),
        )
    explicit = rendered(
        document(8, KIB, adjust("ALLREDUCE", "7"), "allreduce"),
        document(2 * KIB, 2 * KIB, adjust("ALLREDUCE", "0"), "allreduce"),
    )
    assert looked_up(read_by_intel_mpi(explicit), "Allreduce", 4, 2 * KIB) == "ALLREDUCE=0"


def test_what_holds_for_the_process_is_loaded_with_the_file() -> None:
    shared = {"I_MPI_SHM": "icx"}
    export = rendered(
        document(8, KIB, {**shared, **adjust("ALLREDUCE", "7")}, "allreduce"),
        document(4 * KIB, 4 * KIB, {**shared, **adjust("ALLREDUCE", "8")}, "allreduce"),
    )
    assert export.environment == shared
    with pytest.raises(ExportRefused, match=r"can't say by size any of .*: I_MPI_SHM"):
        rendered(document(8, KIB, shared, "allreduce"))


@pytest.mark.parametrize("value", ["8:0-1024", "-1", "ring"])
def test_a_rule_has_one_algorithm(value: str) -> None:
    with pytest.raises(ExportRefused, match=f"one algorithm .*I_MPI_ADJUST_ALLREDUCE={value}"):
        rendered(document(8, KIB, adjust("ALLREDUCE", value), "allreduce"))


@pytest.mark.parametrize("version", ["2021.13.1", "2021.19.0"])
def test_rules_are_for_the_version_that_was_tried(version: str) -> None:
    with pytest.raises(ExportRefused, match=r"is for intel-mpi >=2021.18,<2021.19"):
        rendered(document(8, 8, adjust("ALLREDUCE", "7"), "allreduce"), version=version)
