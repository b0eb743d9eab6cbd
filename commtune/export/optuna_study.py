"""Writes measurements as Optuna studies into an SQLite file that optuna-dashboard opens."""

from __future__ import annotations

import errno
import json
import sqlite3
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, distribution_to_json
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

optuna.logging.set_verbosity(optuna.logging.ERROR)


@dataclass(frozen=True)
class StudyTrial:
    """A trial of an Optuna study.

    Attributes:
        params: value of every variable; ``None`` for unset.
        median_s: the objective to minimize, seconds; ``None`` for a failed trial.
        attributes: user attributes, as plain data.
    """

    study: str
    params: Mapping[str, str | None]
    median_s: float | None
    started: datetime
    ended: datetime
    attributes: Mapping[str, Any] = field(default_factory=dict)


def write_studies(
    file: Path,
    studies: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, Iterable[str | None]],
    trials: Iterable[StudyTrial],
) -> int:
    """Writes studies with their trials into a new file; returns the number of trials.

    Args:
        studies: user attributes of each study, by name.
        values: the categorical choices of each variable.

    Raises:
        OSError: the file can't be written.
    """
    try:
        # By a function, since a file's name may have characters that mean something in a URL.
        storage = RDBStorage(
            "sqlite://",
            engine_kwargs={"creator": partial(sqlite3.connect, file), "poolclass": NullPool},
        )
        try:
            numbers = {name: _new_study(storage, name, about) for name, about in studies.items()}
        finally:
            storage.engine.dispose()
        with closing(sqlite3.connect(file)) as connection, connection:
            return _insert_trials(connection, trials, numbers, values)
    except (sqlite3.Error, SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise _os_error(error, file) from error


def _os_error(error: BaseException, file: Path) -> OSError:
    while error.__cause__ is not None:  # SQLAlchemy and Optuna wrap SQLite's error
        error = error.__cause__
    is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
    code = errno.ENOSPC if is_full else None
    return OSError(code, str(error).partition("\n")[0], str(file))


def _new_study(storage: RDBStorage, name: str, about: Mapping[str, Any]) -> int:
    study = optuna.create_study(storage=storage, study_name=name, direction="minimize")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(["median_s"])
    for key, value in about.items():
        study.set_user_attr(key, value)
    return study._study_id


def _insert_trials(
    connection: sqlite3.Connection,
    trials: Iterable[StudyTrial],
    studies: Mapping[str, int],
    values: Mapping[str, Iterable[str | None]],
) -> int:
    """Inserts trials as rows into Optuna's tables; returns their number.

    Optuna's own API takes 27 ms of CPU time per trial, and so minutes for a campaign.
    """
    made: Counter[str] = Counter()
    choices = {name: CategoricalDistribution(tuple(of)) for name, of in values.items()}
    written = {name: distribution_to_json(one) for name, one in choices.items()}
    number = 0
    for number, trial in enumerate(trials, start=1):
        of_study = (made[trial.study], studies[trial.study])
        made[trial.study] += 1
        state = TrialState.FAIL if trial.median_s is None else TrialState.COMPLETE
        connection.execute(
            "INSERT INTO trials (trial_id, number, study_id, state, datetime_start,"
            " datetime_complete) VALUES (?, ?, ?, ?, ?, ?)",
            (number, *of_study, state.name, _local(trial.started), _local(trial.ended)),
        )
        connection.executemany(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)"
            " VALUES (?, ?, ?, ?)",
            (
                (number, name, choices[name].to_internal_repr(value), written[name])
                for name, value in trial.params.items()
            ),
        )
        connection.executemany(
            "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (?, ?, ?)",
            ((number, key, json.dumps(value)) for key, value in trial.attributes.items()),
        )
        if trial.median_s is not None:
            connection.execute(
                "INSERT INTO trial_values (trial_id, objective, value, value_type)"
                " VALUES (?, 0, ?, 'FINITE')",
                (number, trial.median_s),
            )
    return number


def _local(moment: datetime) -> str:
    """Formats a time as SQLAlchemy does: Optuna's times are local, without a time zone."""
    return f"{moment.astimezone().replace(tzinfo=None):%Y-%m-%d %H:%M:%S.%f}"
