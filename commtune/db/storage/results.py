"""Stores a campaign's blocks, executions, decisions, conclusions, profiles and verifications."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, delete, insert, select, update

from commtune import model
from commtune.db.checked_columns import sound_rows
from commtune.db.codec import dump_model, load_model
from commtune.db.damage import Damage
from commtune.db.storage.rows import Transactions, add_row, configuration_row, waits_for_database
from commtune.db.tables import (
    BLOCKS,
    CONCLUSIONS,
    DECISIONS,
    EXECUTIONS,
    PROFILE_POINTS,
    PROFILES,
    TRIALS,
    VERIFICATIONS,
)
from commtune.errors import DatabaseFault
from commtune.model.conclusion import Conclusion, Decision

_T = TypeVar("_T")
#: Columns of profiles with what is said beside the evidence; a later version may say more.
_WORDS = ("note", "details")


class StoredCourse(Transactions):
    """The blocks, executions, decisions, conclusions, profiles and verifications of campaigns.

    A part of ``tuner.ports.Store``.
    """

    def decide(self, campaign_id: int, decision: Decision) -> None:
        """Stores a decision about the configurations to confirm; earlier decisions are kept."""
        self._add(DECISIONS, campaign_id, decision=dump_model(decision))

    def decision(self, campaign_id: int) -> Decision | None:
        return self._newest(DECISIONS, DECISIONS.c.decision, campaign_id, Decision)

    def conclude(self, campaign_id: int, conclusion: Conclusion) -> None:
        if self.conclusion(campaign_id) != load_model(Conclusion, dump_model(conclusion)):
            self._add(CONCLUSIONS, campaign_id, conclusion=dump_model(conclusion))

    def conclusion(self, campaign_id: int) -> Conclusion | None:
        return self._newest(CONCLUSIONS, CONCLUSIONS.c.conclusion, campaign_id, Conclusion)

    @waits_for_database
    def _add(self, table: Table, campaign_id: int, **document: Any) -> None:
        new = insert(table).values(campaign_id=campaign_id, created=time.time(), **document)
        with self._write() as connection:
            connection.execute(new)

    def _newest(self, table: Table, document: Any, campaign_id: int, kind: type[_T]) -> _T | None:
        asked = select(document, table.c.id).where(table.c.campaign_id == campaign_id)
        for row in self._rows(asked.order_by(table.c.id.desc()).limit(1), table.name):
            try:
                return load_model(kind, row[0])
            except DatabaseFault as error:
                self.database.report(Damage(table.name, str(row.id), "", error.message))
        return None

    @waits_for_database
    def plan_block(self, campaign_id: int, plan: model.BlockPlan) -> None:
        """Stores a block before its first run starts; a repeated call changes nothing.

        Raises:
            DatabaseFault: the number belongs to another block.
        """
        values = {
            "phase": plan.phase,
            "operation": plan.operation,
            "configurations": [dict(configuration) for configuration in plan.order],
            "created": time.time(),
        }
        key = {"campaign_id": campaign_id, "number": plan.number}
        with self._write() as connection:
            if add_row(connection, BLOCKS, **key, **values) is not None:
                return
            same = select(BLOCKS).filter_by(**key)
            if [_block(row) for row in sound_rows(connection, same, "blocks", "number")] != [plan]:
                raise DatabaseFault(f"block {plan.number} is stored with another plan")

    def blocks(self, campaign_id: int) -> list[model.BlockPlan]:
        planned = select(BLOCKS).where(BLOCKS.c.campaign_id == campaign_id)
        rows = self._rows(planned.order_by(BLOCKS.c.number), "blocks", "number")
        return [_block(row) for row in rows]

    def origins(self, campaign_id: int) -> list[str]:
        """Returns the origin of each trial."""
        asked = select(TRIALS.c.number, TRIALS.c.origin).where(TRIALS.c.campaign_id == campaign_id)
        return [row.origin for row in self._rows(asked, "trials", "number")]

    @waits_for_database
    def add_execution(self, campaign_id: int, execution: model.Execution) -> None:
        names = ("followed", "fingerprints", "said", "why", "became")
        values = {name: getattr(execution, name) for name in names} | {"created": time.time()}
        with self._write() as connection:
            key = {
                "campaign_id": campaign_id,
                "configuration_id": configuration_row(connection, execution.configuration),
                "operation": str(execution.operation),
            }
            replaced = connection.execute(update(EXECUTIONS).filter_by(**key).values(**values))
            if not replaced.rowcount:
                connection.execute(insert(EXECUTIONS).values(**key, **values))

    def executions(self, campaign_id: int) -> list[model.Execution]:
        rows = self._configured_rows(
            EXECUTIONS, campaign_id, EXECUTIONS.c.created, "configuration_id"
        )
        return [_execution(row) for row in rows]

    @waits_for_database
    def save_profiles(self, campaign_id: int, profiles: Sequence[model.Profile]) -> None:
        """Replaces a campaign's profiles in one transaction; equal ones keep number and date.

        So what a verification found of a profile stays when another one changes, or when a later
        version says more of the same evidence.
        """
        with self._write() as connection:
            before = _contents(connection, campaign_id)
            with connection.begin_nested() as tried:
                _replace_profiles(connection, campaign_id, before, profiles)
                after = _contents(connection, campaign_id)
                tried.rollback()
            changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
            new = [profile for profile in profiles if profile.name in changed]
            _replace_profiles(connection, campaign_id, changed, new)
            for profile in profiles:
                if profile.name not in changed:
                    _update_words(connection, campaign_id, profile)

    @waits_for_database
    def add_verification(self, campaign_id: int, made: model.VerificationRecord) -> None:
        """Stores a verification in the campaign that has its runs."""
        with self._write() as connection:
            number = configuration_row(connection, made.configuration)
            values = {**vars(made), "campaign_id": campaign_id, "configuration_id": number}
            del values["configuration"]
            connection.execute(insert(VERIFICATIONS).values(values))

    def verifications(self, campaign_id: int) -> list[model.VerificationRecord]:
        """Returns the verifications of which a campaign has the runs, oldest first."""
        rows = self._configured_rows(VERIFICATIONS, campaign_id, VERIFICATIONS.c.id)
        return [_verification(row) for row in rows]


def _replace_profiles(
    connection: Connection,
    campaign_id: int,
    names: Collection[str],
    profiles: Sequence[model.Profile],
) -> None:
    """Stores profiles in the place of those with these names."""
    replaced = (PROFILES.c.campaign_id == campaign_id) & PROFILES.c.name.in_(names)
    earlier = select(PROFILES.c.id).where(replaced)
    connection.execute(delete(PROFILE_POINTS).where(PROFILE_POINTS.c.profile_id.in_(earlier)))
    connection.execute(delete(PROFILES).where(replaced))
    created = time.time()
    for profile in profiles:
        number = configuration_row(connection, profile.configuration)
        new = insert(PROFILES).values(
            campaign_id=campaign_id,
            configuration_id=number,
            created=created,
            **_profile_values(profile),
        )
        key = connection.execute(new).inserted_primary_key
        assert key is not None  # it is for inserts of one row
        if points := list(_points(key[0], profile)):
            connection.execute(insert(PROFILE_POINTS), points)


def _update_words(connection: Connection, campaign_id: int, profile: model.Profile) -> None:
    """Stores what is said of a profile beside what it states."""
    found = update(PROFILES).filter_by(campaign_id=campaign_id, name=profile.name)
    values = _profile_values(profile)
    connection.execute(found.values({name: values[name] for name in _WORDS}))


def _contents(connection: Connection, campaign_id: int) -> dict[str, list[Any]]:
    """Returns what is stored of a campaign's profiles by name, without numbers, dates, words."""
    left_out = ("id", "profile_id", "created", *_WORDS)
    columns = [one for one in (*PROFILES.c, *PROFILE_POINTS.c) if one.name not in left_out]
    joined = PROFILES.outerjoin(PROFILE_POINTS, PROFILE_POINTS.c.profile_id == PROFILES.c.id)
    asked = select(*columns).select_from(joined).where(PROFILES.c.campaign_id == campaign_id)
    found = defaultdict(list)
    for row in connection.execute(asked.order_by(PROFILES.c.id, PROFILE_POINTS.c.place)):
        found[row.name].append(row)
    return found


def _verification(row: Any) -> model.VerificationRecord:
    names = ("profile", "first_block", "last_block", "share", "session_spread", "ended_at")
    return model.VerificationRecord(
        configuration=model.Configuration(row.environment),
        finding=model.VerificationVerdict(row.finding),
        **{name: getattr(row, name) for name in names},
    )


def _execution(row: Any) -> model.Execution:
    return model.Execution(
        configuration=model.Configuration(row.environment),
        operation=row.operation,
        followed=model.Followed(row.followed),
        fingerprints={int(size): digest for size, digest in row.fingerprints.items()},
        said=tuple(row.said),
        why=row.why,
        became=row.became,
    )


def _block(row: Any) -> model.BlockPlan:
    return model.BlockPlan(
        number=row.number,
        phase=model.Phase(row.phase),
        operation=model.Operation(row.operation),
        order=tuple(model.Configuration(environment) for environment in row.configurations),
    )


def _profile_values(profile: model.Profile) -> dict[str, Any]:
    names = (
        "name", "operation", "backend", "ranks", "nodes", "bytes_low", "bytes_high", "level",
        "minimum_gain", "simulated", "verdict", "note",
    )  # fmt: skip
    return {
        **{name: getattr(profile, name) for name in names},
        "details": {
            "contributions": [dump_model(effect) for effect in profile.contributions],
            "boundaries": [dump_model(boundary) for boundary in profile.boundaries],
            "tails": [dump_model(tail) for tail in profile.tails],
        },
        "conditions": vars(profile.conditions),
    }


def _points(profile_id: int, profile: model.Profile) -> Iterator[dict[str, Any]]:
    evidence = [(False, point) for point in profile.points]
    evidence += [(True, point) for point in profile.guards]
    for place, (is_guard, point) in enumerate(evidence):
        key = {"profile_id": profile_id, "place": place, "is_guard": is_guard}
        values = asdict(point)
        yield {**key, **values.pop("gain"), **values}
