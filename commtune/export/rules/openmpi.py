"""Writes rules for Open MPI's coll/tuned: the classic format for 4.1 and 5.x, and JSON for 6.

The classic format has numbers. A call uses the entry with the largest communicator size and the
largest message size that don't exceed its own; algorithm 0 leaves the choice to Open MPI. For the
operations here, coll/tuned counts bytes as commtune does (coll_tuned_decision_dynamic.c of 4.1.4,
5.0.9). A variant with a version in its first line exists since 5.0.7, only for ``max_requests``.

The JSON format follows coll_tuned_dynamic_file.c of the branch v6.0.x: the first matching rule
applies, and Open MPI chooses if there is none. The reader needs ``seg_size``, which the published
schema lacks, and ``reduce_scatter_block``, which the schema spells differently. It ignores unknown
keys, so that remarks can have a key of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commtune.errors import ExportRefused
from commtune.export.document import comment_lines
from commtune.export.rules.rule_file import RuleFile, RuleFormat
from commtune.export.rules.table import RuleTable, Span
from commtune.formatting import format_size
from commtune.model import Configuration, Operation

_SWITCH = "OMPI_MCA_coll_tuned_use_dynamic_rules"
_PREFIX = "OMPI_MCA_coll_tuned_"
_FILENAME = f"{_PREFIX}dynamic_rules_filename"
#: The number of each collective, and its algorithms from 1 on (5.0.9; 4.1 lacks the last).
_COLLECTIVES: dict[str, tuple[int, tuple[str, ...]]] = {
    "allgather": (
        0,
        ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"),
    ),
    "allreduce": (
        2,
        (
            "basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring",
            "rabenseifner",
        ),
    ),
    "alltoall": (3, ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc")),
    "broadcast": (
        7,
        (
            "basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial",
            "knomial", "scatter_allgather", "scatter_allgather_ring",
        ),
    ),
    "reduce": (
        11,
        (
            "linear", "chain", "pipeline", "binary", "binomial", "in-order_binary",
            "rabenseifner",
        ),
    ),
    "reduce-scatter": (
        13, ("basic_linear", "recursive_doubling", "recursive_halving", "butterfly")
    ),
}  # fmt: skip
#: The default number of chains; 0 in a file would mean one chain.
_CHAINS = 4
_SUFFIXES = {"k": 2**10, "m": 2**20, "g": 2**30}


def _names(operation: str) -> tuple[str, str, str]:
    """Returns the variables of an operation's algorithm, segment size and chains."""
    base = f"{_PREFIX}{Operation(operation).mpi_name}_algorithm"
    return base, f"{base}_segmentsize", f"{base}_chain_fanout"


def _expressible(operation: str) -> frozenset[str]:
    """Returns the variables that a rule of an operation can express."""
    if operation not in _COLLECTIVES:
        return frozenset()
    return frozenset((_SWITCH, *_names(operation)))


def _write(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    lines = [f"{len(table.operations)} # collectives"]
    for operation in table.operations:
        lines += _collective(operation, table)
    return [RuleFile(_FILENAME, comment_lines(remarks, "#") + "\n".join(lines) + "\n")]


def _collective(operation: str, table: RuleTable) -> Iterator[str]:
    ranks = table.ranks(operation)
    yield f"{_COLLECTIVES[operation][0]} # {operation}"
    yield "3 # sizes of communicators"
    yield from _left_alone(0)
    yield f"{ranks} # ranks"
    yield from _sizes(operation, table.spans(operation))
    yield from _left_alone(ranks + 1)


def _left_alone(ranks: int) -> Sequence[str]:
    return f"{ranks} # ranks and more", "1", "0 0 0 0 # Open MPI's own choice"


def _sizes(operation: str, spans: Sequence[Span]) -> Iterator[str]:
    yield f"{len(spans)} # sizes of messages: from bytes, algorithm, chains, segment"
    for span in spans:
        words = str(span.settings) if span.settings else "Open MPI's own choice"
        chosen = _choose_algorithm(operation, span.settings, _COLLECTIVES[operation][1])
        numbers = " ".join(map(str, (span.first, *chosen)))
        yield f"{numbers} # from {format_size(span.first)}: {words}"


def _choose_algorithm(
    operation: str, settings: Configuration, algorithms: Sequence[str]
) -> tuple[int, int, int]:
    """Returns algorithm, chains and segment size (bytes), as the variables would set them.

    Args:
        algorithms: algorithms of the operation from 1 on; 0 leaves the choice to Open MPI.

    Raises:
        ExportRefused: the settings name no algorithm, or one that is not among these.
    """
    algorithm_name, segment_name, chains_name = _names(operation)
    rest = sorted(set(settings) - {_SWITCH})
    if not rest:
        return 0, 0, 0
    word = settings.get(algorithm_name, "")
    number = algorithms.index(word) + 1 if word in algorithms else _number(word)
    if number is None or not 1 <= number <= len(algorithms):
        raise ExportRefused(
            f"a rule needs an algorithm for {', '.join(rest)}: {algorithm_name} is {word!r}",
            hint="set one of " + ", ".join(algorithms),
        )
    chained = algorithms[number - 1] == "chain"
    chains = _number(settings.get(chains_name, str(_CHAINS))) if chained else 0
    segment = _number(settings.get(segment_name, "0"))
    if chains is None or segment is None:
        raise ExportRefused(f"a rule needs whole numbers: {settings}")
    return number, chains, segment


def _number(word: str) -> int | None:
    """Parses a whole number as in Open MPI's variables, which may end in k, m or g."""
    factor = _SUFFIXES.get(word[-1:].lower(), 1)
    digits = word if factor == 1 else word[:-1]
    return int(digits) * factor if digits.isascii() and digits.isdigit() else None


OPENMPI = RuleFormat(
    "openmpi-rules",
    "openmpi",
    ">=4.1,<6",
    _expressible,
    _write,
    {_SWITCH: "1"},
    "Open MPI asks han before tuned",
)

#: Algorithms of collectives that differ from 5.x, from 1 on.
_JSON_ALGORITHMS = {
    "allgather": (
        "linear", "bruck-k-fanout", "recursive_doubling", "ring", "neighbor", "two_proc",
        "sparbit", "direct-messaging",
    ),
    "allreduce": (*_COLLECTIVES["allreduce"][1], "allgather_reduce"),
    "reduce": (*_COLLECTIVES["reduce"][1], "knomial"),
}  # fmt: skip


def _write_json(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    tree = {
        "#": remarks,
        "rule_file_version": 3,
        "module": "tuned",
        "collectives": {
            Operation(operation).mpi_name: [_json_communicators(operation, table)]
            for operation in table.operations
        },
    }
    return [RuleFile(_FILENAME, json.dumps(tree, indent=1) + "\n")]


def _json_communicators(operation: str, table: RuleTable) -> dict[str, Any]:
    ranks = table.ranks(operation)
    return {
        "comm_size_min": ranks,
        "comm_size_max": ranks,
        "comm_rank_distribution": "single-node",
        "rules": list(_json_sizes(operation, table)),
    }


def _json_sizes(operation: str, table: RuleTable) -> Iterator[dict[str, Any]]:
    algorithms = _JSON_ALGORITHMS.get(operation, _COLLECTIVES[operation][1])
    for span in table.spans(operation):
        if span.settings:
            number, chains, segment = _choose_algorithm(operation, span.settings, algorithms)
            found = {
                "msg_size_min": span.first,
                "msg_size_max": "inf" if span.last is None else span.last,
                "alg": algorithms[number - 1],
                "faninout": chains,
                "seg_size": segment,
            }
            yield {key: value for key, value in found.items() if value or key == "msg_size_min"}


OPENMPI_JSON = replace(
    OPENMPI,
    name="openmpi-json",
    versions=">=6,<7",
    write=_write_json,
    untried="no release of Open MPI 6 was there; its reader, compiled by itself, takes it",
)
