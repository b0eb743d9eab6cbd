"""The statements that write, each inside a transaction of the caller's."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import InstrumentedAttribute

from commtune.db.codec import (
    clean_text,
    list_differences,
    pack_samples,
    pieces_json,
    to_json_value,
)
from commtune.db.locks import STALE_AFTER_S
from commtune.db.storage import restart
from commtune.db.storage.changes import as_stored, list_changes, stored_campaign
from commtune.db.storage.records import CampaignHandle, CampaignRecord, StackRecord, SystemRecord
from commtune.db.tables import (
    Base,
    Campaign,
    ConfigurationRow,
    MeasurementRecord,
    ProfilePoint,
    ProfileRow,
    Run,
    Stack,
    System,
    Trial,
)
from commtune.errors import CampaignChanged, DatabaseFault
from commtune.model import (
    Configuration,
    Measurement,
    Outcome,
    PointEvidence,
    Profile,
    RunRequest,
    RunResult,
    content_key,
)

#: Characters of a run's output that are kept: its end.
_TAIL_CHARACTERS = 4000


def open_campaign(connection: Connection, spec: CampaignRecord) -> CampaignHandle:
    """Creates a campaign, or finds it; what is stored stays as it is, but for its name (``anew``).

    Raises:
        CampaignChanged: it is stored with another ``what``, system or stack.
        CampaignLocked: it could begin anew, but a controller works on it.
    """
    what, known = to_json_value(spec.what), as_stored(connection, spec)
    system_id, stack_id = _system(connection, spec.system), _stack(connection, known.stack)
    campaign_id, is_new = _ensure(
        connection,
        Campaign,
        Campaign.name,
        spec.name,
        content_key=content_key(what),
        what=what,
        seed=spec.seed,
        system_id=system_id,
        stack_id=stack_id,
        simulated=spec.simulated,
        created=time.time(),
        finished=None,
        **_changeable(spec),
    )
    stored = stored_campaign(connection, campaign_id)
    changes = list_differences(stored.what, what) + list_changes(known, stored)
    if not changes:
        return CampaignHandle(campaign_id, spec.name, is_new, stored.created)
    hint = "give the campaign another name, or undo the change"
    if restart.may_begin(connection, campaign_id):
        if not restart.waiting_allocation(connection, campaign_id):
            earlier = restart.rename_stale(connection, campaign_id, spec.name, STALE_AFTER_S)
            handle = open_campaign(connection, spec)
            return replace(handle, earlier=earlier, earlier_id=campaign_id, changes=tuple(changes))
        hint = f"no run was good so far: after 'commtune cancel {spec.name}', it begins anew"
    raise CampaignChanged(
        f"campaign {spec.name} was begun with another question; changed since (stored -> now):"
        + "".join(f"\n  {change}" for change in changes),
        hint=hint,
    )


def update_campaign(connection: Connection, campaign_id: int, spec: CampaignRecord) -> None:
    """Stores what may change; for the controller that holds the campaign's lock.

    With other settings, a larger budget say, a campaign that was finished has more to do.
    """
    this, values = Campaign.id == campaign_id, _changeable(spec)
    settings = connection.execute(select(Campaign.settings).where(this)).scalar_one()
    if list_differences(settings, values["settings"]):
        values["finished"] = None
    connection.execute(update(Campaign).where(this).values(**values))


def add_trial(
    connection: Connection,
    campaign_id: int,
    number: int,
    configuration: Configuration,
    origin: str,
    label: str,
) -> None:
    """Adds a trial; the same one again is nothing new.

    Raises:
        DatabaseFault: the number belongs to another configuration.
    """
    wanted = configuration_row(connection, configuration)
    trial = _trial(connection, campaign_id, number)
    if trial is None:
        values = {"campaign_id": campaign_id, "number": number, "configuration_id": wanted}
        connection.execute(
            insert(Trial).values(
                **values, origin=origin, label=clean_text(label), created=time.time()
            )
        )
    elif trial.configuration_id != wanted:
        raise DatabaseFault(f"trial {number} is stored with another configuration")


def start_run(connection: Connection, campaign_id: int, request: RunRequest, session: str) -> None:
    """Registers a run as running; the same one again is nothing new.

    Raises:
        DatabaseFault: its trial is not stored.
    """
    trial = _trial(connection, campaign_id, request.trial)
    if trial is None:
        raise DatabaseFault(f"run {request.run_id} belongs to unknown trial {request.trial}")
    _ensure(
        connection,
        Run,
        Run.run_id,
        request.run_id,
        campaign_id=campaign_id,
        trial_id=trial.id,
        configuration_id=configuration_row(connection, request.configuration),
        phase=str(request.phase),
        block=request.block,
        position=request.position,
        session=clean_text(session),
        operation=str(request.workload.operation),
        workload=request.workload.plain(),
        timing=asdict(request.timing),
        state="running",
        started_at=time.time(),
        detail="",
        output_tail="",
        oversubscribed=False,
    )


def finish_run(
    connection: Connection, campaign_id: int, result: RunResult, operation: str
) -> bool:
    """Stores a result with its measurements; False if the run is stored already.

    Raises:
        DatabaseFault: the run was never registered in this campaign.
    """
    if not _store(connection, result.run_id, campaign_id, _outcome_values(result)):
        return False
    row_id = connection.execute(select(Run.id).where(Run.run_id == result.run_id)).scalar_one()
    rows = [
        {
            "run_id": row_id,
            "place": place,
            "operation": measurement.operation or operation,
            **_measurement(measurement),
        }
        for place, measurement in enumerate(result.measurements)
    ]
    if rows:
        connection.execute(insert(MeasurementRecord), rows)
    return True


def mark_interrupted(connection: Connection, run_id: str, detail: str) -> bool:
    """Closes a run that left no result; False if it is stored already.

    Raises:
        DatabaseFault: no such run.
    """
    return _store(
        connection, run_id, None, {"outcome": "interrupted", "detail": clean_text(detail)}
    )


def replace_profiles(
    connection: Connection, campaign_id: int, profiles: Sequence[Profile]
) -> None:
    """Puts these profiles and all their evidence in the place of the campaign's earlier ones."""
    earlier = select(ProfileRow.id).where(ProfileRow.campaign_id == campaign_id)
    connection.execute(delete(ProfilePoint).where(ProfilePoint.profile_id.in_(earlier)))
    connection.execute(delete(ProfileRow).where(ProfileRow.campaign_id == campaign_id))
    created = time.time()
    for profile in profiles:
        connection.execute(
            insert(ProfileRow).values(
                campaign_id=campaign_id,
                configuration_id=configuration_row(connection, profile.configuration),
                created=created,
                **_profile_values(profile),
            )
        )
        profile_id = connection.execute(
            select(ProfileRow.id).where(
                ProfileRow.campaign_id == campaign_id, ProfileRow.name == profile.name
            )
        ).scalar_one()
        points = list(_points(profile_id, profile))
        if points:
            connection.execute(insert(ProfilePoint), points)


def _changeable(spec: CampaignRecord) -> dict[str, Any]:
    return {
        "settings": to_json_value(spec.settings),
        "space": to_json_value(spec.space),
        "space_key": spec.space_key,
        "folder": clean_text(spec.folder),
    }


def _system(connection: Connection, system: SystemRecord) -> int:
    return _ensure(
        connection,
        System,
        System.fingerprint,
        system.fingerprint,
        name=clean_text(system.name),
        description=to_json_value(system.description),
        created=time.time(),
    )[0]


def _stack(connection: Connection, stack: StackRecord) -> int:
    return _ensure(
        connection,
        Stack,
        Stack.fingerprint,
        stack.fingerprint,
        text=clean_text(stack.text),
        description=to_json_value(stack.description),
        created=time.time(),
    )[0]


def configuration_row(connection: Connection, configuration: Configuration) -> int:
    """The number of a configuration's row, which is made if it is not there."""
    return _ensure(
        connection,
        ConfigurationRow,
        ConfigurationRow.key,
        configuration.key,
        environment=dict(configuration),
    )[0]


def _ensure(
    connection: Connection,
    table: type[Base],
    key: InstrumentedAttribute[str],
    value: str,
    **others: Any,
) -> tuple[int, bool]:
    """The row with this key, made if it is not there: its number, and whether it was made."""
    find = select(table.__table__.c.id).where(key == value)
    found = connection.execute(find).scalar_one_or_none()
    if found is not None:
        return int(found), False
    made = True
    try:
        with connection.begin_nested():
            connection.execute(insert(table).values({key.key: value, **others}))
    except IntegrityError:  # another program made it at this moment
        made = False
    return int(connection.execute(find).scalar_one()), made


def _trial(connection: Connection, campaign_id: int, number: int) -> Any | None:
    return connection.execute(
        select(Trial.id, Trial.configuration_id).where(
            Trial.campaign_id == campaign_id, Trial.number == number
        )
    ).one_or_none()


def _store(
    connection: Connection, run_id: str, campaign_id: int | None, values: Mapping[str, Any]
) -> bool:
    """Closes a run if it is open; the database decides, so that a second call finds it closed."""
    this = [Run.run_id == run_id]
    if campaign_id is not None:
        this.append(Run.campaign_id == campaign_id)
    close = update(Run).where(*this, Run.state != "stored").values(state="stored", **values)
    if connection.execute(close).rowcount == 1:
        return True
    if connection.execute(select(Run.id).where(*this)).scalar() is None:
        raise DatabaseFault(f"run {run_id} was never registered in this campaign")
    return False


def _outcome_values(result: RunResult) -> dict[str, Any]:
    # A run that left nothing has no start of its own; it keeps the time it was registered.
    has_started = result.started_at > 0 or result.outcome is Outcome.OK
    return {
        "outcome": str(result.outcome),
        **({"started_at": result.started_at} if has_started else {}),
        "wall_s": result.wall_s,
        "exit_code": result.exit_code,
        "detail": clean_text(result.detail),
        "output_tail": clean_text(result.output_tail[-_TAIL_CHARACTERS:]),
        "oversubscribed": result.oversubscribed,
        "other_load": result.other_load,
        "header": to_json_value(result.header),
        "footer": to_json_value(_footer(result)),
        "nodes": clean_text(",".join(result.nodes)) or None,
        "distance": clean_text(result.distance) or None,
        "end_s": result.end_s,
    }


def _footer(result: RunResult) -> Mapping[str, Any] | None:
    """The footer, with the parts of the operation, for which there is no table."""
    if result.footer is None or not result.pieces:
        return result.footer
    return {**result.footer, "parts": pieces_json(result.pieces)}


def _measurement(measurement: Measurement) -> dict[str, Any]:
    names = ("median_s", "min_s", "mean_s", "p95_s", "max_s", "algbw", "busbw", "batch", "wrong")
    return {
        **{name: getattr(measurement, name) for name in names},
        "bytes": measurement.bytes,
        "canary_s": measurement.canary_s,
        "canary_after_s": getattr(measurement, "canary_after_s", None),
        "n_samples": len(measurement.samples_s),
        "samples": pack_samples(measurement.samples_s),
        "first_call_s": measurement.first_call_s,
    }


def _profile_values(profile: Profile) -> dict[str, Any]:
    names = ("operation", "backend", "ranks", "nodes", "bytes_low", "bytes_high", "level")
    return {
        **{name: getattr(profile, name) for name in names},
        "name": profile.name,
        "verdict": str(profile.verdict),
        "minimum_gain": profile.minimum_gain,
        "note": clean_text(profile.note),
        "simulated": profile.simulated,
        "details": to_json_value(profile.details),
        "conditions": to_json_value(vars(profile.conditions)),
    }


def _points(profile_id: int, profile: Profile) -> Iterator[dict[str, Any]]:
    evidence = [(False, point) for point in profile.points]
    evidence += [(True, point) for point in profile.guards]
    for place, (is_guard, point) in enumerate(evidence):
        yield {
            "profile_id": profile_id,
            "place": place,
            "is_guard": is_guard,
            **_point(point),
        }


def _point(point: PointEvidence) -> dict[str, Any]:
    return {
        "operation": str(point.operation),
        "bytes": point.bytes,
        "speed": point.speed,
        "default_s": point.default_s,
        "tuned_s": point.tuned_s,
        "verdict": str(point.verdict),
        "share": point.share,
        **asdict(point.gain),
    }
