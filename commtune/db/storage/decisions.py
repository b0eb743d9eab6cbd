"""The course of a campaign: what it decided, planned, learned and came to.

Statements that write and read it, each inside a transaction of the caller's.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, insert, select, update

from commtune.db.codec import clean_text, dump_model, load_model, to_json_value
from commtune.db.storage.writing import configuration_row
from commtune.db.tables import Block, ConclusionRow, ConfigurationRow, DecisionRow, ExecutionRow
from commtune.errors import DatabaseFault
from commtune.model import BlockPlan, Configuration, Execution, Followed, Operation, Phase
from commtune.model.conclusion import Conclusion
from commtune.model.decision import Decision


def add_decision(connection: Connection, campaign_id: int, decision: Decision) -> None:
    """Adds a decision; the newest one holds."""
    values = {"decision": dump_model(decision), "created": time.time()}
    connection.execute(insert(DecisionRow).values(campaign_id=campaign_id, **values))


def last_decision(connection: Connection, campaign_id: int) -> Decision | None:
    """What the campaign decided last."""
    rows = select(DecisionRow.decision).where(DecisionRow.campaign_id == campaign_id)
    found = connection.execute(rows.order_by(DecisionRow.id.desc()).limit(1)).scalar()
    return None if found is None else load_model(Decision, found)


def add_conclusion(connection: Connection, campaign_id: int, conclusion: Conclusion) -> None:
    """Adds a conclusion; the newest one holds."""
    values = {"conclusion": dump_model(conclusion), "created": time.time()}
    connection.execute(insert(ConclusionRow).values(campaign_id=campaign_id, **values))


def last_conclusion(connection: Connection, campaign_id: int) -> Conclusion | None:
    """What the campaign came to last."""
    rows = select(ConclusionRow.conclusion).where(ConclusionRow.campaign_id == campaign_id)
    found = connection.execute(rows.order_by(ConclusionRow.id.desc()).limit(1)).scalar()
    return None if found is None else load_model(Conclusion, found)


def plan_block(connection: Connection, campaign_id: int, plan: BlockPlan) -> None:
    """Adds a block; the same one again is nothing new.

    Raises:
        DatabaseFault: the number belongs to another block.
    """
    row = connection.execute(
        select(Block.__table__).where(
            Block.campaign_id == campaign_id, Block.number == plan.number
        )
    ).one_or_none()
    if row is None:
        connection.execute(
            insert(Block).values(
                campaign_id=campaign_id,
                number=plan.number,
                phase=str(plan.phase),
                operation=str(plan.operation),
                configurations=[dict(configuration) for configuration in plan.order],
                created=time.time(),
            )
        )
    elif _block(row) != plan:
        raise DatabaseFault(f"block {plan.number} is stored with another plan")


def planned_blocks(connection: Connection, campaign_id: int) -> list[BlockPlan]:
    """The campaign's blocks by number."""
    rows = connection.execute(
        select(Block.__table__).where(Block.campaign_id == campaign_id).order_by(Block.number)
    )
    return [_block(row) for row in rows]


def add_execution(connection: Connection, campaign_id: int, execution: Execution) -> None:
    """Stores what a library did, in the place of what was stored for the same before."""
    number = configuration_row(connection, execution.configuration)
    values = {**_execution_values(execution), "created": time.time()}
    replaced = connection.execute(
        update(ExecutionRow)
        .where(
            ExecutionRow.campaign_id == campaign_id,
            ExecutionRow.configuration_id == number,
            ExecutionRow.operation == execution.operation,
        )
        .values(**values)
    )
    if not replaced.rowcount:
        connection.execute(
            insert(ExecutionRow).values(
                campaign_id=campaign_id,
                configuration_id=number,
                operation=str(execution.operation),
                **values,
            )
        )


def stored_executions(connection: Connection, campaign_id: int) -> list[Execution]:
    """What is known of the campaign's configurations, in the order it was stored."""
    rows = connection.execute(
        select(ExecutionRow.__table__, ConfigurationRow.environment)
        .join(ConfigurationRow, ConfigurationRow.id == ExecutionRow.configuration_id)
        .where(ExecutionRow.campaign_id == campaign_id)
        .order_by(ExecutionRow.created, ExecutionRow.configuration_id)
    )
    return [
        Execution(
            configuration=Configuration(row.environment),
            operation=row.operation,
            followed=Followed(row.followed),
            fingerprints={int(size): digest for size, digest in row.fingerprints.items()},
            said=tuple(row.said),
            why=row.why,
            became=row.became,
        )
        for row in rows
    ]


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
