"""Writes rules for NCCL's tuner plugins: NVIDIA's example, and commtune's own plugin.

A rule gives algorithm and protocol for a collective by size; the first matching rule applies. Its
number of channels would replace NCCL's own one, which is smaller at small sizes, and is no limit
like ``NCCL_MAX_CTAS``: it is left to NCCL (``ncclGetAlgoInfo`` of 2.24 to 2.30). Sizes are as
commtune counts them: of all ranks together for all-gather and reduce-scatter.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from commtune.errors import ExportRefused
from commtune.export.rules.rule_file import RuleFile, RuleFormat
from commtune.export.rules.table import RuleTable, Span
from commtune.formatting import format_sizes

_COLLECTIVES = ("allgather", "allreduce", "broadcast", "reduce", "reduce-scatter")
_ALGORITHM, _PROTOCOL = "NCCL_ALGO", "NCCL_PROTO"
#: The words of the file by variable, whose own words lack the underscores.
_WORDS = {
    _ALGORITHM: ("collnet_chain", "collnet_direct", "nvls", "nvls_tree", "pat", "ring", "tree"),
    _PROTOCOL: ("ll", "ll128", "simple"),
}
#: Leaves the number of channels to NCCL; -1 is one channel in NVIDIA's example.
_ANY_CHANNELS = 0
_LAST_SIZE = 2**64 - 1
#: NVIDIA's example reads at most 255 characters at a time, and takes the rest for another line.
_COMMENT_WIDTH = 200
_READERS = [
    "Read by commtune's tuner plugin; 'commtune build --tuner' makes it and prints its path.",
    "NVIDIA's example plugin reads it from NCCL_TUNER_CONFIG_FILE. With that one, calls without a",
    "rule run on one channel.",
]


def expressible_variables(operation: str) -> frozenset[str]:
    """Returns the variables that a row of an operation can express."""
    if operation not in _COLLECTIVES:
        return frozenset()
    return frozenset(_WORDS)


def rows_of(table: RuleTable, any_channels: int) -> list[str]:
    """Returns a row for each range of sizes with a rule.

    Args:
        any_channels: the value that leaves the number of channels to the library.

    Raises:
        ExportRefused: a rule names no algorithm and protocol.
    """
    return [row for operation in table.operations for row in _rows(operation, table, any_channels)]


def _write(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    rows = rows_of(table, _ANY_CHANNELS)
    lines = [*wrap_comments([*remarks, *_READERS]), f"# rules: {len(rows)}", *rows]
    return [RuleFile("COMMTUNE_TUNER_FILE", "\n".join(lines) + "\n")]


def wrap_comments(lines: list[str]) -> Iterator[str]:
    """Yields comments, wrapped to the readers' line length."""
    for line in lines:
        yield from textwrap.wrap(
            line,
            _COMMENT_WIDTH,
            initial_indent="# ",
            subsequent_indent="#   ",
            drop_whitespace=False,
        ) or ["#"]


def _rows(operation: str, table: RuleTable, any_channels: int) -> Iterator[str]:
    rule = next(rule for rule in table.rules if rule.operation == operation)
    first = table.documents[0]
    # NCCL counts emulated nodes as nodes.
    emulated = first.profile.conditions.emulated_nodes
    where = (emulated or rule.nodes, rule.ranks)
    for span in table.spans(operation):
        if span.settings:
            last = _LAST_SIZE if span.last is None else span.last
            choice = [_one_of(name, operation, span, first.pinned) for name in _WORDS]
            fields = (operation.replace("-", ""), span.first, last, *choice, any_channels, *where)
            yield ",".join(map(str, fields))


def _one_of(name: str, operation: str, span: Span, pinned: Mapping[str, str]) -> str:
    """Returns the word of the only algorithm, or protocol, that a setting allows."""
    value = span.settings.get(name, pinned.get(name))
    for word in _WORDS[name]:
        if word.replace("_", "") == (value or "").strip().lower():
            return word
    found = f"have no {name}" if value is None else f"have {name}={value}"
    last = _LAST_SIZE if span.last is None else span.last
    raise ExportRefused(
        f"a rule needs one algorithm and one protocol, and the settings for "
        f"{operation}, {format_sizes(span.first, last)} {found}",
        hint=f"tune with {_ALGORITHM} and {_PROTOCOL} of single values, both of them set\n"
        "or export the profiles one by one: --format sh",
    )


NCCL_TUNER = RuleFormat(
    "nccl-tuner",
    "nccl",
    ">=2.24,<3",
    expressible_variables,
    _write,
    {"NCCL_TUNER_PLUGIN": "libnccl-tuner-commtune.so"},
)
