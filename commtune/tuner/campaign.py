"""The way of a campaign: search, confirmation, guards, profiles."""

from __future__ import annotations

from dataclasses import dataclass

from commtune.model import DEFAULT, Profile
from commtune.tuner.confirm import Comparison
from commtune.tuner.confirming import ConfirmationPhase
from commtune.tuner.plan import Plan
from commtune.tuner.ports import Reporter
from commtune.tuner.runner import Runner
from commtune.tuner.search import Origin
from commtune.tuner.searching import SearchPhase
from commtune.tuner.session import Session
from commtune.tuner.speeds import Speeds


@dataclass(frozen=True)
class Report:
    """What a campaign came to.

    Attributes:
        speeds: machine speeds seen.
        benchmark_s, wall_s: seconds inside benchmark processes, and altogether, this session.
        set_aside: variable and value pairs that failed and were left out.
        oversubscribed: more ranks than cores; then no profile is made.
    """

    profiles: tuple[Profile, ...]
    comparison: Comparison
    speeds: Speeds
    trials: int
    runs: int
    benchmark_s: float
    wall_s: float
    set_aside: tuple[tuple[str, str | None], ...] = ()
    oversubscribed: bool = False


class Campaign:
    """One campaign in progress."""

    def __init__(self, plan: Plan, runner: Runner, reporter: Reporter) -> None:
        self.runner = runner
        self._session = Session(plan, runner, reporter)
        self._search = SearchPhase(self._session)
        self._confirmation = ConfirmationPhase(self._session)

    def run(self) -> Report:
        """Goes on from wherever the campaign stands, to its end."""
        clock = self.runner.clock
        started = clock()
        self.runner.recover()
        self.runner.load()
        self.runner.new_trial(DEFAULT, Origin.BASELINE)
        decision = self._confirmation.stored_decision()
        if decision is None:
            self._search.run()
            decision = self._confirmation.decide(tuple(self._search.winners()))
        else:
            self._search.take_up()
        comparison = self._confirmation.confirm(decision)
        oversubscribed = self._session.is_oversubscribed()
        profiles = [] if oversubscribed else self._confirmation.profiles(comparison, decision)
        self.runner.store.save_profiles(self.runner.campaign_id, profiles)
        return Report(
            profiles=tuple(profiles),
            comparison=comparison,
            speeds=self.runner.evidence.speeds(),
            trials=len(self.runner.trials),
            runs=len(self.runner.evidence.runs),
            benchmark_s=self.runner.benchmark_s,
            wall_s=clock() - started,
            set_aside=self._search.set_aside,
            oversubscribed=oversubscribed,
        )
