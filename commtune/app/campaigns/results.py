"""Exports stored measurements for other tools, as tables and as Optuna studies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from commtune.db.queries.results import COLUMNS, Results, find_results
from commtune.db.queries.results import read_results_page as read_results_page
from commtune.documents.files import replaced_file
from commtune.documents.nearest import require_known
from commtune.errors import NoAnswer, UserError
from commtune.export.tables import write_csv, write_jsonl, write_parquet
from commtune.formatting import format_size
from commtune.model import Outcome

_WRITERS: dict[str, Any] = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def write_results(
    campaigns: Sequence[str], format: str | None, output: Path | TextIO, db: str | None = None
) -> int:
    """Writes all measurements of these campaigns, or of all; returns the number of rows.

    Args:
        format: csv, jsonl or parquet; ``None`` for the file's suffix, or else csv.
        output: the file, or an open text stream.

    Raises:
        UserError: there is no such format, or the file's path is wrong.
        EnvironmentFault: the file can't be written.
        UnknownName, NoAnswer: there is no such campaign, or no database.
        MissingComponent: pyarrow is not installed, and the format is parquet.
    """
    file = output if isinstance(output, Path) else None
    chosen = _choose_format(format, file)
    found = find_results(db, campaigns)
    # JSON lines have the configuration as an object, so that variables need no columns.
    nested = chosen == "jsonl"
    columns = COLUMNS if nested else found.columns
    rows = (row[: len(COLUMNS)] for row in found) if nested else found
    write = _WRITERS[chosen]
    if file is None:
        return int(write(columns, rows, output))
    mode, encoding = ("wb", None) if chosen == "parquet" else ("w", "utf-8")
    with replaced_file(file) as part, part.open(mode, encoding=encoding) as out:
        return int(write(columns, rows, out))


def _choose_format(asked: str | None, file: Path | None) -> str:
    ending = file.suffix.lower().removeprefix(".") if file else ""
    chosen = asked or (ending if ending in _WRITERS else "csv")
    require_known("--format", chosen, _WRITERS)
    if chosen == "parquet" and file is None:
        raise UserError(
            "Parquet can't be written to standard output",
            hint="name a file: --output results.parquet",
        )
    return chosen


_Row = dict[str, Any]
#: What studies are about, by operation and size (bytes).
_Studies = dict[tuple[str, int], _Row]

#: Columns that are attributes of a trial, and of a study.
_OF_TRIAL = ("run", "phase", "outcome", "trial", "origin", "block", "position")
_OF_STUDY = ("campaign", "simulated", "system", "stack", "backend", "ranks", "nodes")


def export_study(campaign: str, output: Path, db: str | None = None) -> tuple[int, int]:
    """Writes a campaign's runs as Optuna trials into an SQLite file, which it replaces.

    Each run is a trial in the study of each operation and size; failed runs are failed trials.
    Returns the numbers of studies, and of trials in all of them.

    Raises:
        UnknownName: there is no such campaign.
        NoAnswer: it has no measurements yet.
        UserError, EnvironmentFault: the file can't be written.
    """
    # Imported here, because the import of Optuna takes a second.
    from commtune.export.optuna_study import write_studies

    found = find_results(db, [campaign])
    studies, values = _survey(found)
    if not studies:
        raise NoAnswer(
            f"campaign {campaign} has no measurements yet",
            hint="'commtune status' shows its state",
        )
    with replaced_file(output) as part:
        count = write_studies(
            part,
            {_name(*key, about): about for key, about in studies.items()},
            values,
            (trial for run in _runs(found) for trial in _trials(run, studies, values)),
        )
    return len(studies), count


def _survey(found: Results) -> tuple[_Studies, dict[str, list[str | None]]]:
    """Returns a campaign's studies, and the values of its variables; ``None`` is unset."""
    studies: _Studies = {}
    values: defaultdict[str, set[str]] = defaultdict(set)
    for run in _runs(found):
        for name, value in json.loads(run[0]["configuration"]).items():
            values[name].add(value)
        for row in run:
            if row["bytes"] is not None:
                about = {name: row[name] for name in (*_OF_STUDY, "operation", "bytes")}
                studies[row["operation"], row["bytes"]] = about
    choices = {name: [None, *sorted(values[name], key=_by_number)] for name in sorted(values)}
    return dict(sorted(studies.items())), choices


def _by_number(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return float("inf"), value


def _runs(found: Results) -> Iterator[list[_Row]]:
    """Yields the rows of each run."""
    rows = (dict(zip(COLUMNS, row, strict=False)) for row in found)
    return (list(run) for _, run in groupby(rows, key=lambda row: row["run"]))


def _name(operation: str, size: int, about: _Row) -> str:
    made_up = " (simulated or replayed)" if about["simulated"] else ""
    return f"{about['campaign']}: {operation}, {format_size(size)}{made_up}"


def _trials(run: list[_Row], studies: _Studies, variables: Iterable[str]) -> Iterator[Any]:
    from commtune.export.optuna_study import StudyTrial

    any_row = run[0]
    is_good = any_row["outcome"] == Outcome.OK
    started = datetime.fromisoformat(any_row["started"])
    configuration = json.loads(any_row["configuration"])
    known: dict[str, Any] = {
        "params": {name: configuration.get(name) for name in variables},
        "started": started,
        "ended": started + timedelta(seconds=any_row["wall_s"] or 0.0),
        "attributes": {name: any_row[name] for name in _OF_TRIAL}
        | ({"message": any_row["detail"]} if any_row["detail"] else {}),
    }
    measured = {(row["operation"], row["bytes"]): row["median_s"] for row in run}
    # A failed run may have measured some sizes, but is a failure at every size of its operations.
    operations = {row["operation"] for row in run}
    for key, about in studies.items():
        if key in measured if is_good else key[0] in operations:
            median_s = measured[key] if is_good else None
            yield StudyTrial(study=_name(*key, about), median_s=median_s, **known)
