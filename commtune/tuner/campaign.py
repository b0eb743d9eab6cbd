"""The way of a campaign: search, ablation, confirmation, guards, profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commtune.campaign.plan import Plan
from commtune.model import DEFAULT, Configuration, Execution, Profile
from commtune.model.conclusion import Conclusion, Decision
from commtune.tuner.ablation.phase import AblationPhase
from commtune.tuner.confirmation.comparison import Comparison
from commtune.tuner.confirmation.phase import ConfirmationPhase
from commtune.tuner.effective.canonical import as_ablated, as_executed
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.outcome.conclusion import detectable_gains, draw_conclusion
from commtune.tuner.outcome.profiles import recommend_profiles
from commtune.tuner.ports import Reporter
from commtune.tuner.search.phase import SearchPhase
from commtune.tuner.search.strategies.strategy import Origin
from commtune.tuner.statistics.machine_states import MachineStates

#: Each candidate costs a run in every block, and every comparison widens all intervals.
_MOST_CANDIDATES = 3


@dataclass(frozen=True)
class CampaignResult:
    """What a campaign came to.

    Attributes:
        conclusion: what is stored of it beside profiles.
        trials: configurations of the search, the default among them; not what ablation made.
        later_trials: those that ablation and confirmation made of the search's best.
        speeds: machine states seen.
        benchmark_s, wall_s: seconds inside benchmark processes, and altogether, this session.
        set_aside: variable and value pairs that failed and were left out.
        oversubscribed: more ranks than cores; then no profile is made.
    """

    profiles: tuple[Profile, ...]
    comparison: Comparison
    speeds: MachineStates
    trials: int
    runs: int
    benchmark_s: float
    wall_s: float
    set_aside: tuple[tuple[str, str | None], ...] = ()
    oversubscribed: bool = False
    conclusion: Conclusion = field(default_factory=Conclusion)
    later_trials: int = 0


class Campaign:
    """One campaign in progress.

    Args:
        replayed: name of the recorded grid that it plays back; empty for a real machine.
    """

    def __init__(
        self, plan: Plan, runner: Runner, reporter: Reporter, *, replayed: str = ""
    ) -> None:
        self.runner = runner
        self._plan = plan
        self._replayed = replayed
        self._session = Session(plan, runner, reporter)
        self._search = SearchPhase(self._session)
        self._ablation = AblationPhase(self._session, self._search.ranges)
        self._confirmation = ConfirmationPhase(self._session)

    def run(self) -> CampaignResult:
        """Goes on from wherever the campaign stands, to its end."""
        clock = self.runner.clock
        started = clock()
        self.runner.recover()
        self.runner.load()
        self.runner.new_trial(DEFAULT, Origin.BASELINE)
        stored = self._confirmation.stored_decision()
        if stored is None:
            self._search.run()
            decision = self._decide()
        else:
            self._search.take_up()
            decision = stored
        comparison, decision = self._confirmation.confirm(decision)
        oversubscribed = self._session.is_oversubscribed()
        profiles = [] if oversubscribed else self._profiles(decision, comparison)
        self.runner.store.save_profiles(self.runner.campaign_id, profiles)
        conclusion = self._conclude(decision, comparison)
        return CampaignResult(
            profiles=tuple(profiles),
            comparison=comparison,
            speeds=self.runner.evidence.speeds(),
            trials=self.runner.searched + 1,
            runs=len(self.runner.evidence.runs),
            benchmark_s=self.runner.benchmark_s,
            wall_s=clock() - started,
            set_aside=self._search.set_aside,
            oversubscribed=oversubscribed,
            conclusion=conclusion,
            later_trials=len(self.runner.trials) - self.runner.searched - 1,
        )

    def _decide(self) -> Decision:
        """From the winners of the search to what is confirmed, as small as it can be."""
        winners = [] if self._session.is_oversubscribed() else self._winners()
        ablations = self._ablation.run(
            winners, self._search.guess, since=self._confirmation.last_block()
        )
        small: list[Configuration] = []
        for number, ablation in enumerate(ablations):
            executed = as_executed(self._session, ablation.after, small)
            ablations[number] = as_ablated(ablation, executed)
            if not executed.is_default and executed not in small:
                small.append(executed)
        # Where nothing held, the best is confirmed all the same: to say how little it is.
        candidates = tuple(small) or tuple(winners[:1])
        return self._confirmation.decide(candidates, ablations)

    def _winners(self) -> list[Configuration]:
        """The best of the search, each as the library really ran it, and none twice."""
        found: list[Configuration] = []
        for winner in self._search.winners(2 * _MOST_CANDIDATES):
            if len(found) == _MOST_CANDIDATES:
                break
            executed = as_executed(self._session, winner, found)
            if not executed.is_default and executed not in found:
                found.append(executed)
        return found

    def _profiles(self, decision: Decision, comparison: Comparison) -> list[Profile]:
        rules = self._confirmation.rules(decision, len(decision.shares) - 1)
        simulated = self.runner.batches.simulated

        def made(guards: Mapping[Configuration, Any]) -> list[Profile]:
            return recommend_profiles(
                self._plan,
                comparison,
                guards,
                ablations=decision.ablations,
                detectable=detectable_gains(decision, comparison, rules),
                simulated=simulated,
            )

        changed = [p.configuration for p in made({}) if not p.configuration.is_default]
        return made(self._confirmation.guard(decision, list(dict.fromkeys(changed))))

    def _conclude(self, decision: Decision, comparison: Comparison) -> Conclusion:
        campaign_id = self.runner.campaign_id
        executions: Sequence[Execution] = self.runner.store.executions(campaign_id)
        found = draw_conclusion(
            self._plan,
            self.runner.evidence,
            decision,
            comparison,
            rules=self._confirmation.rules(decision, len(decision.shares) - 1),
            run_s=self._confirmation.typical_s(),
            executions=executions,
            set_aside=self._search.set_aside,
            replayed=self._replayed,
        )
        self.runner.store.conclude(campaign_id, found)
        return found
