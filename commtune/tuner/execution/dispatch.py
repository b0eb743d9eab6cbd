"""Blocks under way: run by run on this machine, several whole blocks at a time as jobs.

Phases say which block comes next and are told of every run; they don't know where it was made.
On this machine the members of a block are asked for one by one, so that a search can learn from
each run. A job needs all of them before it is handed in, and results come late and out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from commtune.model import Configuration, Operation, Phase, Run
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.ports import Batches

#: The configurations of the next block in their order, perhaps made up one by one; ``None`` where
#: none is wanted (now: it is asked again after every result).
NextBlock = Callable[[], Iterable[Configuration] | None]
_Tell = Callable[[Run], None]


def _nobody(run: Run) -> None:
    del run


def run_blocks(
    session: Session,
    next_block: NextBlock,
    phase: Phase,
    timer: Timer,
    *,
    tell: _Tell = _nobody,
    operations: tuple[Operation, ...] = (),
    planned: bool = True,
) -> None:
    """Makes blocks until no further one is wanted, or fits the node-hours, and none is under way.

    Args:
        tell: called with each run that ended, in whatever order.
        operations: what each run measures, in this order; the tuned one where empty.
        planned: store each block before its first run, so that it counts whole or not at all.
    """
    batches = session.runner.batches
    if batches is None:
        _run_by_run(session, next_block, phase, timer, tell, operations, planned)
    else:
        _together(session, batches, next_block, phase, timer, tell, operations, planned)


def _run_by_run(
    session: Session,
    next_block: NextBlock,
    phase: Phase,
    timer: Timer,
    tell: _Tell,
    operations: tuple[Operation, ...],
    planned: bool,
) -> None:
    runner = session.runner
    each = len(operations) or 1
    while runner.affords(each) and (members := next_block()) is not None:
        if planned:
            members = tuple(members)
            if not runner.affords(each * len(members)):
                return
            session.run_block(members, phase, timer, operations)
            continue
        block = session.runner.new_block()
        for position, configuration in enumerate(members):
            tell(session.run(configuration, phase, block, timer, position, operations))


def _together(
    session: Session,
    batches: Batches,
    next_block: NextBlock,
    phase: Phase,
    timer: Timer,
    tell: _Tell,
    operations: tuple[Operation, ...],
    planned: bool,
) -> None:
    runner, each = session.runner, len(operations) or 1
    while True:
        while batches.in_flight < batches.most_in_flight:
            members = tuple(next_block() or ())
            if not members or not runner.affords(each * len(members)):
                break
            runner.submit(members, phase, operations, planned=planned)
        if not batches.in_flight:
            return
        for run in runner.collect():
            session.told(run, timer)
            tell(run)


def repeat_blocks(count: int, order: Callable[[], Iterable[Configuration]]) -> NextBlock:
    """So many blocks of the same configurations, each in an order of its own."""
    left = count

    def next_block() -> Iterable[Configuration] | None:
        nonlocal left
        left -= 1
        return order() if left >= 0 else None

    return next_block
