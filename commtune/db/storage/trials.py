"""Stores and reads trials, the numbered configurations of a campaign."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from commtune import model
from commtune.db.storage.rows import Transactions, configuration_row, waits_for_database
from commtune.db.tables import CONFIGURATIONS, TRIALS
from commtune.errors import DatabaseFault
from commtune.model import Configuration

# Built once, because building a statement takes longer than executing it.
_FIND_TRIAL = select(TRIALS.c.id, TRIALS.c.configuration_id).where(
    TRIALS.c.campaign_id == bindparam("campaign"), TRIALS.c.number == bindparam("trial")
)
_ADD_TRIAL = insert(TRIALS)


class StoredTrials(Transactions):
    """The trials of campaigns; a part of ``Store``."""

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
        values = {"origin": origin, "created": time.time()}
        key = {"campaign_id": campaign_id, "number": number}
        with self._write() as connection:
            wanted = configuration_row(connection, configuration)
            trial = find_trial(connection, campaign_id, number)
            if trial is None:
                connection.execute(_ADD_TRIAL, {**key, **values, "configuration_id": wanted})
            elif trial.configuration_id != wanted:
                raise DatabaseFault(f"trial {number} is stored with another configuration")

    def trials(self, campaign_id: int) -> list[model.Trial]:
        rows = self._rows(
            select(TRIALS.c.number, CONFIGURATIONS.c.environment, TRIALS.c.origin)
            .join(CONFIGURATIONS, CONFIGURATIONS.c.id == TRIALS.c.configuration_id)
            .where(TRIALS.c.campaign_id == campaign_id)
            .order_by(TRIALS.c.number),
            "trials",
            "number",
        )
        return [model.Trial(number, Configuration(env), origin) for number, env, origin in rows]


def find_trial(connection: Connection, campaign_id: int, number: int) -> Any | None:
    """Returns the row numbers of a trial and of its configuration; ``None`` without a trial."""
    asked = {"campaign": campaign_id, "trial": number}
    return connection.execute(_FIND_TRIAL, asked).one_or_none()
