"""Writes rules for Intel MPI as JSON, for I_MPI_TUNING.

For each collective in the file, the file replaces Intel MPI's own table at all sizes and numbers
of ranks, and can't refer to it. Algorithm 0 is the library's basic logic, which can take twice as
long as the table's choice. So each measured size needs a rule. Numbers of ranks and sizes are
upper bounds, -1 means none. Sizes are those of one rank's block. Observed with 2021.18.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commtune.errors import ExportRefused
from commtune.export.rules.rule_file import RuleFile, RuleFormat, commented_json
from commtune.export.rules.table import RuleTable
from commtune.formatting import format_sizes
from commtune.model import DEFAULT, Configuration, Operation

_BASIC = "0"
_ANY = -1


def _variable(operation: str) -> str:
    return f"I_MPI_ADJUST_{Operation(operation).mpi_name.upper()}"


def _expressible(operation: str) -> frozenset[str]:
    return frozenset({_variable(operation)} if Operation(operation).mpi_name else ())


def _write(table: RuleTable, remarks: list[str], _: Path | None) -> list[RuleFile]:
    tree = {
        f"coll={Operation(operation).mpi_name.capitalize()}": _by_ranks(table, operation)
        for operation in table.operations
    }
    return [RuleFile("I_MPI_TUNING", commented_json(remarks, tree))]


def _by_ranks(table: RuleTable, operation: str) -> dict[str, Any]:
    _refuse_gaps(table, operation)
    ranks = table.ranks(operation)
    other = {"comm_id=-1": {f"msg_size={_ANY}": _leaf(operation, DEFAULT)}}
    by_size: dict[str, Any] = {}
    for span in table.spans(operation, to_all_sizes=True):
        # A span that includes no whole block has the bound of the one before.
        bound = f"msg_size={_bound(span.last, operation, ranks)}"
        by_size.setdefault(bound, _leaf(operation, span.settings))
    ruled = {
        f"comm_size={ranks - 1}": other,
        f"comm_size={ranks}": {"comm_id=-1": by_size},
        f"comm_size={_ANY}": other,
    }
    return {f"ppn={ranks}": ruled, f"ppn={_ANY}": {f"comm_size={_ANY}": other}}


def _refuse_gaps(table: RuleTable, operation: str) -> None:
    own = [rule for rule in table.rules if rule.operation == operation]
    left = [rule for rule in own if _variable(operation) not in rule.settings]
    if left:
        sizes = ", ".join(format_sizes(rule.bytes_low, rule.bytes_high) for rule in left)
        first = table.documents[0]
        raise ExportRefused(
            f"intel-json needs an algorithm at every measured size of {operation}, and there is "
            f"none at {sizes}: the file would take Intel MPI's own table away there, and what "
            "comes in its place may be slower",
            hint="export one profile for the whole process: "
            f"commtune export {first.campaign}/{first.profile.name} --format sh",
        )


def _bound(last: int | None, operation: str, ranks: int) -> int:
    if last is None:
        return _ANY
    return last // ranks if Operation(operation).is_total else last


def _leaf(operation: str, settings: Configuration) -> dict[str, Any]:
    name = _variable(operation)
    number = settings.get(name, _BASIC)
    if not (number.isascii() and number.isdigit()):
        raise ExportRefused(f"a rule needs one algorithm by its number: {name}={number}")
    return {f"{Operation(operation).mpi_name.upper()}={number}": {}}


INTEL_MPI = RuleFormat(
    "intel-json",
    "intel-mpi",
    ">=2021.18,<2021.19",
    _expressible,
    _write,
    between_nodes="Intel MPI's rules were not tried",
    release_bound="the file has numbers of algorithms of",
    replaces_table=True,
)
