"""A stored campaign as studies of Optuna: one for each operation and message size."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from commtune.db.connection.location import database_url
from commtune.db.queries.results import COLUMNS, Results, find_results
from commtune.documents.files import replaced_file
from commtune.errors import NoAnswer
from commtune.formatting import format_size
from commtune.model import Outcome

_Row = dict[str, Any]

#: Columns that are attributes of a trial, and of a study.
_OF_TRIAL = ("run", "phase", "outcome", "trial", "origin", "block", "position")
_OF_STUDY = ("campaign", "simulated", "system", "stack", "backend", "ranks", "nodes")


@dataclass(frozen=True)
class WrittenStudies:
    """What was written: studies, and trials in all of them together."""

    studies: int
    trials: int


def export_study(campaign: str, output: Path, db: str | None = None) -> WrittenStudies:
    """Writes a campaign's runs as trials into an SQLite file; an older file is replaced.

    A trial is one run. It failed where the run did.

    Raises:
        UnknownName: there is no such campaign.
        NoAnswer: it has measured nothing yet.
        UserError: the file can't be written.
    """
    # Imported here: Optuna takes a second, which other commands needn't wait for.
    from commtune.export.optuna_study import write_studies

    found = find_results(database_url(db), [campaign])
    seen = _Seen.of(found)
    if not seen.studies:
        raise NoAnswer(
            f"campaign {campaign} has no measurements yet",
            hint="'commtune status' shows its state",
        )
    with replaced_file(output) as part:
        count = write_studies(
            part,
            {_name(*key, about): about for key, about in seen.studies.items()},
            seen.values,
            (trial for run in _runs(found) for trial in _trials(run, seen)),
        )
    return WrittenStudies(len(seen.studies), count)


@dataclass(frozen=True)
class _Seen:
    """What a campaign measured.

    Attributes:
        studies: what is known of all runs, by operation and size (bytes).
        values: those of each variable; ``None`` is unset.
    """

    studies: Mapping[tuple[str, int], _Row]
    values: Mapping[str, list[str | None]]

    @classmethod
    def of(cls, found: Results) -> _Seen:
        studies: dict[tuple[str, int], _Row] = {}
        values: defaultdict[str, set[str]] = defaultdict(set)
        for run in _runs(found):
            for name, value in json.loads(run[0]["configuration"]).items():
                values[name].add(value)
            for row in run:
                if row["bytes"] is not None:
                    about = {name: row[name] for name in _OF_STUDY}
                    key = row["operation"], row["bytes"]
                    studies[key] = about | dict(zip(("operation", "bytes"), key, strict=True))
        choices = {name: [None, *sorted(values[name], key=_by_number)] for name in sorted(values)}
        return cls(dict(sorted(studies.items())), choices)


def _by_number(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return float("inf"), value


def _runs(found: Results) -> Iterator[list[_Row]]:
    """The rows of each run."""
    rows = (dict(zip(COLUMNS, row, strict=False)) for row in found)
    return (list(run) for _, run in groupby(rows, key=lambda row: row["run"]))


def _name(operation: str, size: int, about: _Row) -> str:
    made_up = " (simulated or replayed)" if about["simulated"] else ""
    return f"{about['campaign']}: {operation}, {format_size(size)}{made_up}"


def _trials(run: list[_Row], seen: _Seen) -> Iterator[Any]:
    from commtune.export.optuna_study import StudyTrial

    any_row = run[0]
    is_good = any_row["outcome"] == Outcome.OK
    started = datetime.fromisoformat(any_row["started"])
    configuration = json.loads(any_row["configuration"])
    known: dict[str, Any] = {
        "params": {name: configuration.get(name) for name in seen.values},
        "started": started,
        "ended": started + timedelta(seconds=any_row["wall_s"] or 0.0),
        "attributes": {name: any_row[name] for name in _OF_TRIAL}
        | ({"message": any_row["detail"]} if any_row["detail"] else {}),
    }
    measured = {(row["operation"], row["bytes"]): row["median_s"] for row in run}
    # What failed may have measured some sizes: it failed at every one that it was made for.
    operations = {row["operation"] for row in run}
    for key, about in seen.studies.items():
        if key in measured if is_good else key[0] in operations:
            median_s = measured[key] if is_good else None
            yield StudyTrial(study=_name(*key, about), median_s=median_s, **known)
