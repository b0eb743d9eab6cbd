"""The course of a campaign: what it decided, planned, learned and came to."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, insert, select, update

from commtune.db.codec import clean_text, dump_model, load_model, to_json_value
from commtune.db.connection.engine import Database
from commtune.db.storage.writing import configuration_row
from commtune.db.tables import Block, ConclusionRow, ConfigurationRow, DecisionRow, ExecutionRow
from commtune.errors import DatabaseFault
from commtune.model import BlockPlan, Configuration, Execution, Followed, Operation, Phase
from commtune.model.conclusion import Conclusion
from commtune.model.decision import Decision


class StoredCourse:
    """What a campaign decided, planned, learned and came to; a part of ``Store``."""

    database: Database

    def _write(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def decide(self, campaign_id: int, decision: Decision) -> None:
        """Stores what the campaign decided to confirm; earlier decisions are kept."""
        values = {"decision": dump_model(decision), "created": time.time()}
        with self._write() as connection:
            connection.execute(insert(DecisionRow).values(campaign_id=campaign_id, **values))

    def decision(self, campaign_id: int) -> Decision | None:
        """What ``decide`` stored last; ``None`` before the first."""
        rows = select(DecisionRow.decision).where(DecisionRow.campaign_id == campaign_id)
        with self.database.read() as connection:
            found = connection.execute(rows.order_by(DecisionRow.id.desc()).limit(1)).scalar()
        return None if found is None else load_model(Decision, found)

    def conclude(self, campaign_id: int, conclusion: Conclusion) -> None:
        """Stores what the campaign came to; earlier conclusions are kept."""
        values = {"conclusion": dump_model(conclusion), "created": time.time()}
        with self._write() as connection:
            connection.execute(insert(ConclusionRow).values(campaign_id=campaign_id, **values))

    def conclusion(self, campaign_id: int) -> Conclusion | None:
        """What ``conclude`` stored last; ``None`` before the first."""
        rows = select(ConclusionRow.conclusion).where(ConclusionRow.campaign_id == campaign_id)
        with self.database.read() as connection:
            found = connection.execute(rows.order_by(ConclusionRow.id.desc()).limit(1)).scalar()
        return None if found is None else load_model(Conclusion, found)

    def plan_block(self, campaign_id: int, plan: BlockPlan) -> None:
        """Stores a block before its first run starts; the same one again is nothing new.

        Raises:
            DatabaseFault: the number belongs to another block.
        """
        same = select(Block.__table__).where(
            Block.campaign_id == campaign_id, Block.number == plan.number
        )
        values = {
            "phase": str(plan.phase),
            "operation": str(plan.operation),
            "configurations": [dict(configuration) for configuration in plan.order],
            "created": time.time(),
        }
        with self._write() as connection:
            row = connection.execute(same).one_or_none()
            if row is None:
                new = insert(Block).values(campaign_id=campaign_id, number=plan.number, **values)
                connection.execute(new)
            elif _block(row) != plan:
                raise DatabaseFault(f"block {plan.number} is stored with another plan")

    def blocks(self, campaign_id: int) -> list[BlockPlan]:
        """The campaign's blocks by number."""
        planned = select(Block.__table__).where(Block.campaign_id == campaign_id)
        with self.database.read() as connection:
            return [_block(row) for row in connection.execute(planned.order_by(Block.number))]

    def add_execution(self, campaign_id: int, execution: Execution) -> None:
        """Stores what the library did under a configuration and operation; the latest holds."""
        values = {**_execution_values(execution), "created": time.time()}
        with self._write() as connection:
            number = configuration_row(connection, execution.configuration)
            key = {
                "campaign_id": campaign_id,
                "configuration_id": number,
                "operation": str(execution.operation),
            }
            replaced = connection.execute(update(ExecutionRow).filter_by(**key).values(**values))
            if not replaced.rowcount:
                connection.execute(insert(ExecutionRow).values(**key, **values))

    def executions(self, campaign_id: int) -> list[Execution]:
        """What is known of the campaign's configurations, in the order it was stored."""
        known = (
            select(ExecutionRow.__table__, ConfigurationRow.environment)
            .join(ConfigurationRow, ConfigurationRow.id == ExecutionRow.configuration_id)
            .where(ExecutionRow.campaign_id == campaign_id)
            .order_by(ExecutionRow.created, ExecutionRow.configuration_id)
        )
        with self.database.read() as connection:
            return [_execution(row) for row in connection.execute(known)]


def _execution(row: Any) -> Execution:
    return Execution(
        configuration=Configuration(row.environment),
        operation=row.operation,
        followed=Followed(row.followed),
        fingerprints={int(size): digest for size, digest in row.fingerprints.items()},
        said=tuple(row.said),
        why=row.why,
        became=row.became,
    )


def _block(row: Any) -> BlockPlan:
    return BlockPlan(
        number=row.number,
        phase=Phase(row.phase),
        operation=Operation(row.operation),
        order=tuple(Configuration(environment) for environment in row.configurations),
    )


def _execution_values(execution: Execution) -> dict[str, Any]:
    return {
        "followed": str(execution.followed),
        "fingerprints": to_json_value(execution.fingerprints),
        "said": to_json_value(execution.said),
        "why": clean_text(execution.why),
        "became": execution.became,
    }
