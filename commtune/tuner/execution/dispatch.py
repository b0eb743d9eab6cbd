"""Submits blocks of runs, and passes on the runs that ended.

Where runs are made beside the controller, the members of a block are asked for one by one, so that
a search learns from each run. A job needs all of them at once, and results come late and out of
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from commtune.model import Configuration, Phase, Run, Workload
from commtune.tuner.execution.session import Session, Timer

#: Returns the configurations of the next block in order, maybe lazily; ``None`` if no block is
#: wanted now. It is asked again after every result.
NextBlock = Callable[[], Iterable[Configuration] | None]


@dataclass
class Dispatch:
    """Makes blocks until no further one is wanted or fits the limits, and none is under way.

    Attributes:
        tell: called with each run that ended, in any order, except those that are re-run.
        workload: what each run measures, if not the plan's.
        planned: whether to store each block before its first run, so that it counts only whole.
    """

    session: Session
    next_block: NextBlock
    phase: Phase
    timer: Timer
    tell: Callable[[Run], None] = lambda _: None
    workload: Workload | None = None
    planned: bool = True
    _members: Iterator[Configuration] = field(default_factory=lambda: iter(()))
    _block: int = 0
    _position: int = 0

    def run(self) -> None:
        """Submits and collects until nothing is left to do.

        Raises:
            EnvironmentFault: nothing can be measured any more.
        """
        runner = self.session.runner
        while True:
            while runner.has_room and self._submit_next():
                pass
            if not runner.batches.in_flight:
                return
            for run in runner.collect():
                self._process_run(run)

    def _submit_next(self) -> bool:
        """Starts the next runs; returns false if none is wanted now, or none fits the limits."""
        whole = self.session.runner.batches.is_detached
        if not whole and self._submit_member():
            return True
        while (members := self._begin_block(whole=whole)) is not None:
            if whole:
                self._submit(tuple(members), self._block, 0)
                return True
            self._members, self._position = iter(members), 0
            if self._submit_member():
                return True
        return False

    def _begin_block(self, *, whole: bool) -> Iterable[Configuration] | None:
        """Numbers the next block, stores its plan if that is due, and returns its members."""
        runner = self.session.runner
        members = self.next_block()
        if whole or (self.planned and members is not None):
            members = tuple(members or ())
        if not members:
            return None
        runs = len(members) if isinstance(members, tuple) else 1
        if not runner.affords(runs * (len(self.workload.operations) if self.workload else 1)):
            return None
        if self.planned:
            plan = runner.plan_block(tuple(members), self.phase, self.workload)
            self._block = plan.number
        else:
            self._block = runner.new_block()
        return members

    def _submit_member(self) -> bool:
        member = next(self._members, None)
        if member is None:
            return False
        self._submit((member,), self._block, self._position)
        self._position += 1
        return True

    def _submit(self, members: tuple[Configuration, ...], block: int, position: int) -> None:
        self.session.runner.submit(members, self.phase, block, position, self.workload)

    def _process_run(self, run: Run) -> None:
        self.session.report(run, self.timer)
        self.session.wait_for_machine(run)
        if self.session.take_rerun(run):
            self._submit((run.configuration,), run.block, run.position)
        else:
            self.tell(run)


def repeat_blocks(count: int, order: Callable[[], Iterable[Configuration]]) -> NextBlock:
    """Makes a ``NextBlock`` of ``count`` blocks of configurations, each in a new order."""
    # An order is made when its block begins, since it depends on the block's number.
    orders = (order() for _ in range(count))
    return lambda: next(orders, None)
