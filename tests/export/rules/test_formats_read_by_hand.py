"""Files of rules for libraries that are not here, read as their sources read them.

The readers below follow coll_tuned_dynamic_file.c of Open MPI's branch v6.0.x and csv_tuner.cc of
RCCL, and share nothing with what writes. Open MPI's source was compiled by itself too, with empty
headers, and given ``fixtures/openmpi-6.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rule_documents import DYNAMIC, document, nccl_documents, openmpi_documents, tuned

from commtune.errors import ExportRefused
from commtune.export.rules import RULE_FORMATS, render_rules
from commtune.export.rules.table import RuleTable

FIXTURES = Path(__file__).parent / "fixtures"
_LARGEST = 2**63 - 1


def open_mpi_6() -> str:
    table = RuleTable.of_documents(
        [
            *openmpi_documents("4"),
            document(8, 8, tuned("reduce_scatter_block", algorithm="butterfly"), "reduce-scatter"),
        ],
        "openmpi",
        "6.0.0",
    )
    export = render_rules(RULE_FORMATS["openmpi-json"], table, None)
    assert export.environment == DYNAMIC
    (file,) = export.files
    assert file.variable == "OMPI_MCA_coll_tuned_dynamic_rules_filename"
    return file.text


def looked_up(
    text: str, collective: str, ranks: int, local: int, size: int
) -> tuple[str, int, int] | None:
    """Algorithm, chains and segment size; ``None`` where Open MPI chooses."""
    for communicators in json.loads(text)["collectives"][collective]:
        if communicators.get("comm_rank_distribution") == "single-node" and ranks != local:
            continue
        if _holds(communicators, "comm_size", ranks):
            for rule in communicators["rules"]:
                if _holds(rule, "msg_size", size):
                    return rule["alg"], rule.get("faninout", 0), rule.get("seg_size", 0)
            return None
    return None


def _holds(rule: dict[str, Any], what: str, value: int) -> bool:
    most = rule.get(f"{what}_max", "inf")
    assert most == "inf" or isinstance(most, int)
    least: int = rule.get(f"{what}_min", 0)
    return least <= value <= (_LARGEST if most == "inf" else most)


def test_open_mpi_6_looks_up_what_the_profiles_say_on_one_node_only() -> None:
    text = open_mpi_6()
    # Its parser takes no comments: remarks have a key that it never asks for.
    assert any("NOT TRIED" in line for line in json.loads(text)["#"])
    sizes = (0, 7, 8, 2048, 2049, 16384, 16385, 2**33)
    seen = [looked_up(text, "allreduce", 4, 4, size) for size in sizes]
    ring, segmented = ("ring", 0, 0), ("segmented_ring", 0, 65536)
    assert seen == [None, None, ring, ring, segmented, segmented, None, None]
    for ranks, local in ((3, 3), (5, 5), (4, 2)):
        assert looked_up(text, "allreduce", ranks, local, 1024) is None
    assert looked_up(text, "bcast", 4, 4, 1024) == ("chain", 4, 0)
    assert looked_up(text, "reduce_scatter_block", 4, 4, 8) == ("butterfly", 0, 0)


def test_what_open_mpi_s_own_reader_took_is_what_is_written() -> None:
    """It read this very file without a word, and gave the rules that the test above has."""
    assert (FIXTURES / "openmpi-6.json").read_text() == open_mpi_6()


def rccl(own: Path | None) -> str:
    table = RuleTable.of_documents(nccl_documents(), "rccl", "2.30.4")
    (file,) = render_rules(RULE_FORMATS["rccl-tuner"], table, own).files
    assert file.variable == "NCCL_TUNER_CONFIG_FILE"
    return file.text


def row_of(text: str, collective: str, size: int, nodes: int, ranks: int) -> list[str] | None:
    """Algorithm, protocol and channels of the first row that fits, as RCCL takes it."""
    for line in text.splitlines():
        assert len(line) < 256
        if line and line[0] != "#":
            fields = [field.strip() for field in line.split(",")]
            assert 8 <= len(fields) <= 10
            where = zip(fields[6:8], (nodes, ranks), strict=True)
            if (
                fields[0] == collective
                and int(fields[1]) <= size <= int(fields[2])
                and all(int(asked) in (-1, own) for asked, own in where)
            ):
                return fields[3:6]
    return None


def test_rccl_takes_our_rows_first_and_amd_s_for_the_rest() -> None:
    text = rccl(FIXTURES / "rccl-own.csv")
    assert "NOT TRIED" in text
    assert row_of(text, "allreduce", 8, 2, 16) == ["ring", "ll", "-1"]
    # Where RCCL is to choose channels it wants -1; it warns of 0.
    assert row_of(text, "allreduce", 2049, 2, 16) == ["tree", "simple", "-1"]
    # Below and above what was measured, with other ranks, and for another collective: AMD's own.
    assert row_of(text, "allreduce", 7, 2, 16) == ["tree", "ll", "8"]
    assert row_of(text, "allreduce", 2049, 4, 32) == ["ring", "ll128", "16"]
    assert row_of(text, "allgather", 4096, 2, 16) == ["ring", "ll", "4"]
    assert row_of(text, "broadcast", 8, 2, 16) is None


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (None, "must be copied"),
        ("", "has no rows"),
        ("# nothing\n", "has no rows"),
        ("allreduce,0,8,ring\n", r"is no table of RCCL's: 'allreduce,0,8,ring'"),
    ],
)
def test_rccl_s_own_rows_are_needed(tmp_path: Path, own: str | None, words: str) -> None:
    file = None if own is None else tmp_path / "own.csv"
    if file is not None and own is not None:
        file.write_text(own)
    with pytest.raises(ExportRefused, match=words):
        rccl(file)


def test_a_device_has_no_rows() -> None:
    with pytest.raises(ExportRefused, match="not a regular file"):
        rccl(Path("/dev/zero"))
