"""Writes the table of RCCL's built-in tuner: rows as for NCCL, followed by AMD's own.

RCCL reads one table: the file in the variable replaces AMD's. The first matching row applies, so
AMD's rows, which are copied to the end, apply to all that was not tuned. The format follows
src/plugin/tuner/csv_tuner.cc of rocm-systems (2026); -1 leaves channels to RCCL, and 0 gives a
warning.
"""

from __future__ import annotations

import re
from pathlib import Path

from commtune.documents.files import read_file
from commtune.errors import ExportRefused
from commtune.export.rules.nccl import expressible_variables, rows_of, wrap_comments
from commtune.export.rules.rule_file import RuleFile, RuleFormat
from commtune.export.rules.table import RuleTable

_ANY_CHANNELS = -1
_ORIGIN = "# RCCL's own rows, of "
_FIELDS = range(8, 11)
#: RCCL reads at most 255 characters at a time, and takes the rest for another line.
_LINE_LENGTH = 255
_WHERE = (
    "name RCCL's own: --library-rules /opt/rocm/share/rccl/tuner/rccl_tuner_ARCHITECTURE.csv\n"
    "or, where RCCL has its table inside, that file of its sources (rccl/tuner)"
)


def copied_from(text: str) -> Path | None:
    """Returns the file from which a table copies rows; ``None`` if it copies none."""
    found = re.search(rf"^{_ORIGIN}(.+)$", text, flags=re.M)
    return Path(found[1]) if found else None


def _write(table: RuleTable, remarks: list[str], own: Path | None) -> list[RuleFile]:
    if own is None:
        raise ExportRefused(
            "rccl-tuner takes the place of AMD's table, whose rows must be copied", hint=_WHERE
        )
    rows = rows_of(table, _ANY_CHANNELS)
    lines = [*wrap_comments(remarks), *rows, f"{_ORIGIN}{own.absolute()}", *_own_rows(own)]
    return [RuleFile("NCCL_TUNER_CONFIG_FILE", "\n".join(lines) + "\n")]


def _own_rows(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in read_file(file).decode().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ExportRefused(f"can't read RCCL's rows in {file}: {error}", hint=_WHERE) from error
    rows = [line for line in lines if line and not line.startswith("#")]
    for row in rows:
        if len(row.split(",")) not in _FIELDS or len(row) > _LINE_LENGTH:
            raise ExportRefused(f"{file} is no table of RCCL's: {row[:60]!r}", hint=_WHERE)
    if not rows:
        raise ExportRefused(f"{file} has no rows", hint=_WHERE)
    return rows


RCCL_TUNER = RuleFormat(
    "rccl-tuner",
    "rccl",
    ">=2.30,<3",
    expressible_variables,
    _write,
    untried="no AMD GPU was there; a copy of its parsing code takes it",
)
