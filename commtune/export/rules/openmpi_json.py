"""Open MPI's rules for coll/tuned in JSON, which 6.0 brings.

The reader was read in coll_tuned_dynamic_file.c of the branch v6.0.x: the first rule that fits is
taken, and without one Open MPI chooses. It wants ``seg_size``, which the published schema does not
know, and ``reduce_scatter_block``, which the schema writes in one word. It looks at the keys that
it knows only, so that remarks can have a key of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commtune.export.rules.openmpi import (
    COLLECTIVES,
    FILENAME,
    SWITCH,
    choose_algorithm,
    expressible,
)
from commtune.export.rules.rule_file import RuleFile, RuleFormat
from commtune.export.rules.table import RuleTable
from commtune.model import Operation

#: Those that are not as in 5.x, from 1 on.
_ALGORITHMS = {
    "allgather": (
        "linear", "bruck-k-fanout", "recursive_doubling", "ring", "neighbor", "two_proc",
        "sparbit", "direct-messaging",
    ),
    "allreduce": (*COLLECTIVES["allreduce"][1], "allgather_reduce"),
    "reduce": (*COLLECTIVES["reduce"][1], "knomial"),
}  # fmt: skip


def _write(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    tree = {
        "#": remarks,
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {
            Operation(operation).mpi_name: [_communicators(operation, table)]
            for operation in table.operations
        },
    }
    return [RuleFile(FILENAME, json.dumps(tree, indent=1) + "\n")]


def _communicators(operation: str, table: RuleTable) -> dict[str, Any]:
    ranks = table.ranks(operation)
    return {
        "comm_size_min": ranks,
        "comm_size_max": ranks,
        "comm_rank_distribution": "single-node",
        "rules": list(_sizes(operation, table)),
    }


def _sizes(operation: str, table: RuleTable) -> Iterator[dict[str, Any]]:
    algorithms = _ALGORITHMS.get(operation, COLLECTIVES[operation][1])
    for span in table.spans(operation):
        if span.settings:
            number, chains, segment = choose_algorithm(operation, span.settings, algorithms)
            found = {
                "msg_size_min": span.first,
                "msg_size_max": "inf" if span.last is None else span.last,
                "alg": algorithms[number - 1],
                "faninout": chains,
                "seg_size": segment,
            }
            yield {key: value for key, value in found.items() if value or key == "msg_size_min"}


OPENMPI_JSON = RuleFormat(
    "openmpi-json",
    "openmpi",
    ">=6,<7",
    expressible,
    _write,
    {SWITCH: "1"},
    "Open MPI asks han before tuned",
    untried="no release of Open MPI 6 was there; its reader, compiled by itself, takes it",
)
