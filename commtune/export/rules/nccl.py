"""Writes rules for NCCL's tuner plugins: NVIDIA's example, and commtune's own plugin.

A rule gives algorithm, protocol and a limit of channels for a collective by size; the first
matching rule applies. Sizes are as commtune counts them: of all ranks together for all-gather and
reduce-scatter (``ncclGetAlgoInfo`` of 2.24 to 2.30).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from commtune.errors import ExportRefused
from commtune.export.rules.rule_file import RuleFile, RuleFormat
from commtune.export.rules.table import RuleTable, Span
from commtune.formatting import format_sizes
from commtune.model import Configuration

_COLLECTIVES = ("allgather", "allreduce", "broadcast", "reduce", "reduce-scatter")
_ALGORITHM, _PROTOCOL = "NCCL_ALGO", "NCCL_PROTO"
_ALGORITHMS = {
    "collnetchain": "collnet_chain",
    "collnetdirect": "collnet_direct",
    "nvls": "nvls",
    "nvlstree": "nvls_tree",
    "pat": "pat",
    "ring": "ring",
    "tree": "tree",
}
_PROTOCOLS = {"ll": "ll", "ll128": "ll128", "simple": "simple"}
#: Upper limits on channels, of which the stricter applies. NCCL makes at least as many channels
#: as the lower limits say, even if an upper limit is less (src/graph/connect.cc).
_LIMITS = ("NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS")
_LOWER_LIMITS = ("NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS")
_MOST_CHANNELS = 64
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
_LIMITED = [
    "A limit on channels was measured as {names}, for the whole process. A rule limits the",
    "channels of a call, and the communicator keeps all that it has: nearly the same.",
]


def expressible_variables(operation: str) -> frozenset[str]:
    """Returns the variables that a row of an operation can express."""
    if operation not in _COLLECTIVES:
        return frozenset()
    return frozenset((_ALGORITHM, _PROTOCOL, *_LIMITS))


def rows_of(table: RuleTable, any_channels: int) -> list[str]:
    """Returns a row for each range of sizes with a rule.

    Args:
        any_channels: the value that leaves the number of channels to the library.

    Raises:
        ExportRefused: a rule names no algorithm and protocol, or no number of channels.
    """
    return [row for operation in table.operations for row in _rows(operation, table, any_channels)]


def _write(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    rows = rows_of(table, _ANY_CHANNELS)
    used = {name for rule in table.rules for name in rule.settings if name in _LIMITS}
    limited = [line.format(names=", ".join(sorted(used))) for line in _LIMITED] if used else []
    lines = [*wrap_comments([*remarks, *_READERS, *limited]), f"# rules: {len(rows)}", *rows]
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
    # NCCL counts emulated nodes as nodes.
    emulated = table.documents[0].profile.conditions.emulated_nodes
    where = (emulated or rule.nodes, rule.ranks)
    for span in table.spans(operation):
        if span.settings:
            last = _LAST_SIZE if span.last is None else span.last
            choice = _choice(operation, span, table.documents[0].pinned, any_channels)
            fields = (operation.replace("-", ""), span.first, last, *choice, *where)
            yield ",".join(map(str, fields))


def _choice(
    operation: str, span: Span, pinned: Mapping[str, str], any_channels: int
) -> tuple[str, str, int]:
    """Returns algorithm, protocol and number of channels."""
    algorithm = _one_of(_ALGORITHM, _ALGORITHMS, operation, span, pinned)
    protocol = _one_of(_PROTOCOL, _PROTOCOLS, operation, span, pinned)
    return algorithm, protocol, _channels({**pinned, **span.settings}, any_channels)


def _one_of(
    name: str, words: dict[str, str], operation: str, span: Span, pinned: Mapping[str, str]
) -> str:
    value = span.settings.get(name, pinned.get(name))
    if (known := words.get((value or "").strip().lower())) is not None:
        return known
    found = f"have no {name}" if value is None else f"have {name}={value}"
    last = _LAST_SIZE if span.last is None else span.last
    raise ExportRefused(
        f"a rule needs one algorithm and one protocol, and the settings for "
        f"{operation}, {format_sizes(span.first, last)} {found}",
        hint=f"tune with {_ALGORITHM} and {_PROTOCOL} of single values, both of them set\n"
        "or export the profiles one by one: --format sh",
    )


def _channels(settings: Mapping[str, str], any_channels: int) -> int:
    most = _numbers(settings, _LIMITS)
    if not most:
        return any_channels
    return min(_MOST_CHANNELS, max([min(most), *_numbers(settings, _LOWER_LIMITS)]))


def _numbers(settings: Mapping[str, str], names: tuple[str, ...]) -> list[int]:
    values = [settings[name] for name in names if name in settings]
    for value in values:
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise ExportRefused(f"{value!r} is no number of channels ({Configuration(settings)})")
    return [int(value) for value in values]


NCCL_TUNER = RuleFormat(
    "nccl-tuner",
    "nccl",
    ">=2.24,<3",
    expressible_variables,
    _write,
    {"NCCL_TUNER_PLUGIN": "libnccl-tuner-commtune.so"},
    "",
)
