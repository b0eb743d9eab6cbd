"""Stores trials and runs: a run before its launch, and its results once; reads both."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import compress
from typing import Any

from sqlalchemy import Column, Connection, Select, bindparam, delete, insert, select, update

from commtune import model
from commtune.db import codec
from commtune.db.checked_columns import sound_columns, sound_rows
from commtune.db.records import time_column
from commtune.db.storage.rows import (
    Transactions,
    add_row,
    configuration_row,
    waits_for_database,
)
from commtune.db.tables import CAMPAIGNS, CONFIGURATIONS, MEASUREMENTS, RUNS, TRIALS
from commtune.errors import DatabaseFault
from commtune.model import (
    Configuration,
    Measurement,
    Outcome,
    Phase,
    RunRequest,
    RunResult,
    SizeTime,
    SizeTimes,
)

_PAGE_RUNS = 1000
#: The characters at the end of a run's output that are stored.
_TAIL_CHARACTERS = 4000
#: Columns named like the fields of ``model.Measurement``; samples are packed separately.
_MEASURED = (
    "bytes", "median_s", "min_s", "mean_s", "p95_s", "max_s", "algbw", "busbw", "batch",
    "first_call_s", "canary_s", "canary_after_s", "wrong",
)  # fmt: skip
#: Columns of runs whose values are those of ``model.Run`` as they are.
_AS_STORED = ("session", "operation", "started_at", "detail", "oversubscribed", "other_load")
#: The columns of the machine's state before and after a size.
_CANARIES = MEASUREMENTS.c.canary_s, MEASUREMENTS.c.canary_after_s


# Built once for all runs, because building a statement takes longer than executing it.
_FIND_TRIAL = select(TRIALS.c.id, TRIALS.c.configuration_id).where(
    TRIALS.c.campaign_id == bindparam("campaign"), TRIALS.c.number == bindparam("trial")
)
_FIND_RUN = select(RUNS.c.id, RUNS.c.campaign_id).where(RUNS.c.run_id == bindparam("which"))
_CLOSE_RUN = (
    update(RUNS)
    .where(RUNS.c.id == bindparam("row"), RUNS.c.state != "stored")
    .values(state="stored")
)
_ADD_MEASUREMENTS = insert(MEASUREMENTS)


class StoredRuns(Transactions):
    """The trials and runs of campaigns; a part of ``Store``."""

    @waits_for_database
    def add_trial(
        self, campaign_id: int, number: int, configuration: Configuration, origin: str
    ) -> None:
        """Adds a trial; a repeated call with the same configuration changes nothing.

        Args:
            origin: ``baseline``, ``user``, ``sampler``, ``random`` or ``enumerated``.

        Raises:
            DatabaseFault: the number belongs to another configuration.
        """
        key = {"campaign_id": campaign_id, "number": number}
        with self._write() as connection:
            wanted = configuration_row(connection, configuration)
            values = {"configuration_id": wanted, "origin": origin, "created": time.time()}
            if add_row(connection, TRIALS, **key, **values) is not None:
                return
            if _find_trial(connection, campaign_id, number).configuration_id != wanted:
                raise DatabaseFault(f"trial {number} is stored with another configuration")

    def trials(self, campaign_id: int) -> list[model.Trial]:
        rows = self._configured_rows(TRIALS, campaign_id, TRIALS.c.number, "number")
        return [model.Trial(r.number, Configuration(r.environment), r.origin) for r in rows]

    @waits_for_database
    def start_runs(self, campaign_id: int, requests: Sequence[RunRequest], session: str) -> None:
        """Registers runs as running before they are launched, in one transaction.

        Runs that are registered already stay as they are.

        Raises:
            DatabaseFault: the trial of a run is not stored.
        """
        with self._write() as connection:
            for request in requests:
                _register(connection, campaign_id, request, session)

    @waits_for_database
    def finish_run(self, campaign_id: int, result: RunResult, operation: str) -> None:
        """Stores a run's result and measurements in one transaction; a stored run stays as it is.

        Raises:
            DatabaseFault: the run was never registered; transient if the database can't be
                reached. The records of the run stay in the campaign folder, and the call can be
                repeated later.
            CampaignLocked: another controller took over the campaign, and its runs.
        """
        with self._write() as connection:
            # A controller that takes over kills the run, which must not count as its failure.
            self._require_lock(connection, campaign_id)
            row_id = _close(connection, result.run_id, _outcome_values(result), campaign_id)
            if row_id is None:
                return
            rows = [
                {"run_id": row_id, "place": place, **_measurement_values(measurement, operation)}
                for place, measurement in enumerate(result.measurements)
            ]
            if rows:
                connection.execute(_ADD_MEASUREMENTS, rows)

    @waits_for_database
    def withdraw_run(self, campaign_id: int, run_id: str) -> None:
        """Deletes a run without a result; a stored run is left as it is.

        Raises:
            CampaignLocked: another controller took over the campaign.
        """
        with self._write() as connection:
            self._require_lock(connection, campaign_id)
            is_open = RUNS.c.run_id == run_id, RUNS.c.state != "stored"
            connection.execute(delete(RUNS).where(RUNS.c.campaign_id == campaign_id, *is_open))

    @waits_for_database
    def mark_interrupted(self, run_id: str, detail: str) -> None:
        """Stores a run without a result as interrupted; a stored run is left as it is.

        Raises:
            DatabaseFault: there is no such run.
        """
        values = {"outcome": Outcome.INTERRUPTED, "detail": detail}
        with self._write() as connection:
            _close(connection, run_id, values)

    def open_runs(self, campaign_id: int) -> list[RunRequest]:
        """Returns the runs that are registered but not stored, in the order of registration."""
        asked = _select_runs(RUNS.c.workload, RUNS.c.timing).where(
            RUNS.c.campaign_id == campaign_id, RUNS.c.state == "running"
        )
        return [
            RunRequest(
                **_planned(row),
                workload=model.Workload.of_plain(row.workload),
                timing=model.Timing(**row.timing),
            )
            for row in self._rows(asked.order_by(RUNS.c.id), "runs", "run_id")
        ]

    def runs(self, campaign_id: int, phase: Phase | None = None) -> Iterator[model.Run]:
        same: dict[Any, Any] = {}  # Runs share objects for sizes and operations, to save memory.
        timed = (self._time_column(campaign_id), *_CANARIES)
        others = (MEASUREMENTS.c.busbw, MEASUREMENTS.c.operation)
        for rows, measured in self._pages(campaign_id, phase, (*timed, *others)):
            found: defaultdict[int, list[SizeTime]] = defaultdict(list)
            by_row = zip(*measured, strict=True)
            for number, size, time_s, before_s, after_s, busbw, operation in by_row:
                one, of = same.setdefault(size, size), same.setdefault(operation, operation)
                found[number].append(SizeTime(one, time_s, before_s, after_s, busbw, of))
            for row in rows:
                yield _stored_run(row, found[row.id])

    def timed_runs(self, campaign_id: int) -> tuple[list[model.Run], SizeTimes]:
        """Returns all runs without measurements, and the times of these as columns."""
        runs: list[model.Run] = []
        times = SizeTimes()
        columns = (self._time_column(campaign_id), *_CANARIES)
        for rows, measured in self._pages(campaign_id, None, columns):
            place_of = {row.id: place for place, row in enumerate(rows, len(runs))}
            runs += [_stored_run(row, ()) for row in rows]
            numbers, *values = measured
            times.extend([place_of[number] for number in numbers], *values)
        return runs, times

    def _time_column(self, campaign_id: int) -> Column[Any]:
        """Returns the time that a campaign compares."""
        asked = select(CAMPAIGNS.c.what).where(CAMPAIGNS.c.id == campaign_id)
        (what,) = [row.what for row in self._rows(asked, "campaigns")] or [{}]  # it may be damaged
        return MEASUREMENTS.c[time_column(what)]

    def _pages(
        self, campaign_id: int, phase: Phase | None, columns: Sequence[Column[Any]]
    ) -> Iterator[tuple[Sequence[Any], Sequence[Sequence[Any]]]]:
        """Yields pages of undamaged rows of runs, and columns of measurements: run, size, others.

        So a slow reader neither keeps all rows in memory nor blocks writers.
        """
        last = 0
        while True:
            ids, rows, measured = self._page(campaign_id, phase, columns, last)
            if not ids:
                return
            last = ids[-1]
            yield rows, measured

    @waits_for_database
    def _page(
        self, campaign_id: int, phase: Phase | None, columns: Sequence[Column[Any]], last: int
    ) -> tuple[Sequence[int], Sequence[Any], Sequence[Sequence[Any]]]:
        tell = self.database.report
        with self.database.read() as connection:
            stored = select(RUNS.c.id).where(*_stored(campaign_id, phase), RUNS.c.id > last)
            page = stored.order_by(RUNS.c.id).limit(_PAGE_RUNS)
            ids = connection.execute(page).scalars().all()
            if not ids:
                return (), (), ()
            asked = _ended_runs(campaign_id, ids[0], ids[-1], phase)
            rows = sound_rows(connection, asked, "runs", "id", tell)
            asked = _measurements(campaign_id, ids[0], ids[-1], phase, columns)
            measured = sound_columns(connection, asked, "measurements", "run_id", tell)
            if len(rows) < len(ids):  # some runs are damaged
                is_sound = [*map({row.id for row in rows}.__contains__, measured[0])]
                measured = [list(compress(values, is_sound)) for values in measured]
            return ids, rows, measured


def _find_trial(connection: Connection, campaign_id: int, number: int) -> Any:
    """Returns the row numbers of a trial and of its configuration; ``None`` without a trial."""
    asked = {"campaign": campaign_id, "trial": number}
    return connection.execute(_FIND_TRIAL, asked).one_or_none()


def _register(connection: Connection, campaign_id: int, request: RunRequest, session: str) -> None:
    trial = _find_trial(connection, campaign_id, request.trial)
    if trial is None:
        raise DatabaseFault(f"run {request.run_id} belongs to unknown trial {request.trial}")
    add_row(
        connection,
        RUNS,
        run_id=request.run_id,
        campaign_id=campaign_id,
        trial_id=trial.id,
        configuration_id=trial.configuration_id,
        phase=request.phase,
        block=request.block,
        position=request.position,
        session=session,
        operation=request.workload.operation,
        workload=request.workload.plain(),
        timing=asdict(request.timing),
        state="running",
        started_at=time.time(),
        detail="",
        output_tail="",
        oversubscribed=False,
    )


def _close(
    connection: Connection, run_id: str, values: Mapping[str, Any], campaign_id: int | None = None
) -> int | None:
    """Closes a run if it is open, by a single update, so that of two callers one succeeds.

    Args:
        campaign_id: the campaign that the run must belong to, if given.

    Returns:
        The number of its row; ``None`` if it was closed already.

    Raises:
        DatabaseFault: the run is not registered.
    """
    run = connection.execute(_FIND_RUN, {"which": run_id}).one_or_none()
    if run is None or campaign_id not in (None, run.campaign_id):
        raise DatabaseFault(f"run {run_id} was never registered in this campaign")
    closed = connection.execute(_CLOSE_RUN, {"row": run.id, **values}).rowcount
    return int(run.id) if closed == 1 else None


def _outcome_values(result: RunResult) -> dict[str, Any]:
    plain = (
        "wall_s", "exit_code", "oversubscribed", "other_load", "end_s", "outcome", "detail",
        "header",
    )  # fmt: skip
    # A run without records has no start time; it keeps the time of its registration.
    has_started = result.started_at > 0 or result.outcome is Outcome.OK
    footer = result.footer
    if footer is not None and result.pieces:
        # Parts of an operation have no table of their own.
        footer = {**footer, "parts": _pieces(result.pieces)}
    return {
        **{name: getattr(result, name) for name in plain},
        **({"started_at": result.started_at} if has_started else {}),
        "output_tail": result.output_tail[-_TAIL_CHARACTERS:],
        "footer": footer,
        "nodes": ",".join(result.nodes) or None,
        "distance": result.distance or None,
    }


def _pieces(pieces: Sequence[model.SubMeasurement]) -> list[dict[str, Any]]:
    """Returns the parts of an operation as plain data, without samples and without pairs."""
    names = ("bytes", "median_s", "min_s", "p95_s", "algbw")
    return [
        {"part": piece.part, **{name: getattr(piece.measurement, name) for name in names}}
        for piece in pieces
        if piece.part
    ]


def _measurement_values(measurement: Measurement, operation: str) -> dict[str, Any]:
    return {
        **{name: getattr(measurement, name) for name in _MEASURED},
        "operation": measurement.operation or operation,
        "n_samples": len(measurement.samples_s),
        "samples": codec.pack_samples(measurement.samples_s),
    }


def _select_runs(*columns: Any) -> Select[Any]:
    return (
        select(
            RUNS.c.run_id,
            RUNS.c.phase,
            RUNS.c.block,
            RUNS.c.position,
            TRIALS.c.number,
            CONFIGURATIONS.c.environment,
            *columns,
        )
        .join(TRIALS, TRIALS.c.id == RUNS.c.trial_id)
        .join(CONFIGURATIONS, CONFIGURATIONS.c.id == RUNS.c.configuration_id)
    )


def _planned(row: Any) -> dict[str, Any]:
    """Returns the fields that ``RunRequest`` and ``Run`` share."""
    return {
        "run_id": row.run_id,
        "configuration": _configuration(tuple(row.environment.items())),
        "phase": Phase(row.phase),
        "trial": row.number,
        "block": row.block,
        "position": row.position,
    }


def _stored(campaign_id: int, phase: Phase | None) -> list[Any]:
    of_phase = [] if phase is None else [RUNS.c.phase == str(phase)]
    return [RUNS.c.campaign_id == campaign_id, RUNS.c.state == "stored", *of_phase]


def _ended_runs(campaign_id: int, first: int, last: int, phase: Phase | None) -> Select[Any]:
    names = (*_AS_STORED, "id", "outcome", "wall_s", "nodes", "distance")
    return (
        _select_runs(*(RUNS.c[name] for name in names), RUNS.c.workload)
        .where(*_stored(campaign_id, phase), RUNS.c.id.between(first, last))
        .order_by(RUNS.c.id)
    )


def _stored_run(row: Any, measured: Sequence[SizeTime]) -> model.Run:
    return model.Run(
        **_planned(row),
        **{name: getattr(row, name) for name in _AS_STORED},
        outcome=Outcome(row.outcome),
        wall_s=row.wall_s or 0.0,
        measurements=tuple(measured),
        nodes=tuple(row.nodes.split(",")) if row.nodes else (),
        distance=row.distance or "",
        then=tuple(row.workload.get("then", ())),
    )


def _measurements(
    campaign_id: int, first: int, last: int, phase: Phase | None, columns: Sequence[Column[Any]]
) -> Select[Any]:
    return (
        select(MEASUREMENTS.c.run_id, MEASUREMENTS.c.bytes, *columns)
        .join(RUNS, RUNS.c.id == MEASUREMENTS.c.run_id)
        .where(RUNS.c.campaign_id == campaign_id, RUNS.c.id.between(first, last))
        .where(*([] if phase is None else [RUNS.c.phase == str(phase)]))
        # By the runs' own column: SQLite then reads in this order, and sorts nothing.
        .order_by(RUNS.c.id, MEASUREMENTS.c.place)
    )


@lru_cache(_PAGE_RUNS)  # many runs share a configuration
def _configuration(environment: tuple[tuple[str, str], ...]) -> Configuration:
    return Configuration(dict(environment))
