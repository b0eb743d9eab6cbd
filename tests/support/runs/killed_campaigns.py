"""Simulated campaigns over the real store, whose controllers are killed at random moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from held_campaigns import hold
from made_up_spaces import made_up_space
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.model import (
    BlockPlan,
    Configuration,
    Operation,
    Outcome,
    Phase,
    Run,
    Verdict,
    Workload,
)
from commtune.model.conclusion import Decision
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.runner import Runner
from commtune.tuner.statistics.blocks import whole_blocks

SPACE = made_up_space("""
  - {name: V, kind: integer, values: [1, 2], source: made up}
  - {name: W, kind: integer, values: [1, 2], source: made up}
""")
PLAN = Plan("kills", SPACE, Workload(Operation.ALLREDUCE, (8, 1048576)), budget=Budget(10, 8, 9))
#: Calls of the store that change what is stored; the controller dies right after one of them.
_CALLS = ("add_trial", "start_runs", "finish_run", "plan_block", "decide", "save_profiles")


def truth(configuration: Configuration, size: int) -> float:
    faster = 1.5 if size > 8 and configuration.get("V") == "2" else 1.0
    return (1e-6 + size / 5e9) / faster


class Killed(BaseException):
    """Stands for kill -9: nothing of ours runs after it."""


def dying(store: Store, after: int) -> list[int]:
    """Makes the controller die after so many calls; returns the count of calls as it grows."""
    count = [0]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            found = call(*arguments)
            count[0] += 1
            if count[0] == after:
                raise Killed
            return found

        return method

    for name in _CALLS:
        setattr(store, name, counted(getattr(store, name)))
    return count


@dataclass(frozen=True)
class Ended:
    """A campaign that came to its end, and all that is stored of it.

    Attributes:
        left: identifiers of the runs that were under way when a controller died.
    """

    report: CampaignResult
    calls: int
    left: frozenset[str]
    runs: tuple[Run, ...]
    plans: dict[int, BlockPlan]
    decision: Decision


def campaign(folder: Path, kills: list[int]) -> Ended:
    """A campaign whose controllers die after so many calls each, until one is left alone."""
    database = open_database(f"sqlite:///{folder}/test.db")
    benchmark = SyntheticBenchmark(truth, VirtualClock(), seed=4, noise=0.01)
    left: set[str] = set()
    for after in [*kills, -1]:
        store = Store(database)
        campaign_id = hold(store, PLAN)
        calls = dying(store, after)
        runner = Runner(PLAN, campaign_id, benchmark, store, clock=benchmark.clock)
        try:
            report = Campaign(PLAN, runner, QuietReporter()).run()
        except Killed:
            left |= {request.run_id for request in store.open_runs(campaign_id)}
    assert store.open_runs(campaign_id) == []
    plans = {plan.number: plan for plan in store.blocks(campaign_id)}
    decision = store.decision(campaign_id)
    assert decision is not None
    runs = tuple(store.runs(campaign_id))
    database.close()
    return Ended(report, calls[0], frozenset(left), runs, plans, decision)


@cache
def unharmed() -> Ended:
    with TemporaryDirectory() as folder:
        return campaign(Path(folder), [])


def assert_runs_cut_short_are_told(found: Ended, kills: int) -> None:
    """One for each death during a run; what the search was trying is tried again."""
    assert len({r.run_id for r in found.runs}) == len(found.runs)
    interrupted = [r for r in found.runs if r.outcome is Outcome.INTERRUPTED]
    assert {r.run_id for r in interrupted} == found.left
    assert len(found.left) <= kills
    good = {r.configuration for r in found.runs if r.outcome is Outcome.OK}
    searched = {r.configuration for r in interrupted if r.phase is Phase.SEARCH}
    assert searched <= good


def assert_sound(found: Ended, kills: int = 1) -> None:
    """The same answer, by blocks of one session each, none of them interrupted."""
    expected = unharmed()
    # Where there is no gain, noise decides between "default" and "undecided".
    said, wanted = (
        [(p.name, p.configuration, p.verdict is Verdict.FASTER) for p in ended.report.profiles]
        for ended in (found, expected)
    )
    assert said == wanted
    assert ("all-sizes", Configuration({"V": "2"}), True) in said
    assert_runs_cut_short_are_told(found, kills)
    looks = found.decision.looks
    assert 1 <= len(looks) <= len(found.decision.shares)
    confirmed = [r for r in found.runs if r.phase is Phase.CONFIRM]
    blocks = whole_blocks(confirmed, found.plans)
    for members in blocks:
        assert len({r.session for r in members.values()}) == 1
        assert all(r.outcome is not Outcome.INTERRUPTED for r in members.values())
    whole = {next(iter(members.values())).block for members in blocks}
    assert not whole & {r.block for r in confirmed if r.outcome is Outcome.INTERRUPTED}
    started = [n for n, plan in found.plans.items() if plan.phase is Phase.CONFIRM]
    cut_short = len(started) - len(blocks)
    assert cut_short <= kills
    assert len(blocks) >= looks[-1].made
    pairs = [p.pairs for c in found.report.conclusion.confirmed for p in c.points]
    assert max(pairs) <= len(blocks)
