"""Runs a campaign: search, ablation, confirmation, guard operations, profiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from threadpoolctl import threadpool_limits

from commtune.campaign.plan import Plan
from commtune.formatting import format_size
from commtune.model import DEFAULT, Configuration, Origin, Phase, Profile, Run
from commtune.model.conclusion import Ablation, Conclusion, Decision
from commtune.tuner.ablation.phase import AblationPhase
from commtune.tuner.confirmation.between import SizesBetween, SizeShares
from commtune.tuner.confirmation.comparison import Comparison, Rules
from commtune.tuner.confirmation.phase import ConfirmationPhase
from commtune.tuner.confirmation.portfolio import (
    Prospects,
    assign_sizes,
    measure_pair_noise,
)
from commtune.tuner.effective.canonical import as_ablated, as_executed
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session, Timer
from commtune.tuner.outcome.conclusion import detectable_gains, draw_conclusion
from commtune.tuner.outcome.profiles import ProfileMaker
from commtune.tuner.outcome.ranges import recommended_ranges
from commtune.tuner.ports import Reporter
from commtune.tuner.search.phase import SearchPhase
from commtune.tuner.search.pooling import add_values
from commtune.tuner.search.standings import Standing
from commtune.tuner.statistics.machine_states import MachineStates

#: The most choices of candidates; a new one follows if some behave like the default.
_MOST_CHOICES = 6


@dataclass(frozen=True)
class CampaignResult:
    """The result of a campaign.

    Attributes:
        likely: profiles with a speedup that is likely and not proven; stored, never recommended.
        default_s: medians of the search's runs of the default by size in bytes, seconds.
        conclusion: what is stored beside profiles.
        trials: number of configurations of the search, with the default, without ablation's.
        later_trials: number of configurations that ablation and confirmation made.
        speeds: machine states so far.
        benchmark_s, wall_s: seconds inside benchmark processes, and in all, of this session.
        set_aside: pairs of variable and value that were left out after failures.
        oversubscribed: whether there were more ranks than cores; then no profile is made.
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
    likely: tuple[Profile, ...] = ()
    default_s: Mapping[int, Sequence[float]] = field(default_factory=dict)


class Campaign:
    """One campaign in progress.

    Args:
        replayed: name of the recording that is played back; empty for real runs.
    """

    def __init__(
        self, plan: Plan, runner: Runner, reporter: Reporter, *, replayed: str = ""
    ) -> None:
        self.runner = runner
        self._plan = plan
        self._replayed = replayed
        self._session = Session(plan, runner, reporter)
        self._search = SearchPhase(self._session)
        self._ablation = AblationPhase(self._session)
        self._confirmation = ConfirmationPhase(self._session)

    def run(self) -> CampaignResult:
        """Continues the campaign from where it stands, to its end."""
        import scipy.special  # noqa: F401 - loaded later, it would take 0.1 s between two runs

        # BLAS's threads would spin for a while on the cores that the next run needs.
        with threadpool_limits(1, user_api="blas"):
            return self._run()

    def _run(self) -> CampaignResult:
        clock = self.runner.now_s
        started = clock()
        self.runner.recover()
        self.runner.load()
        self.runner.new_trial(DEFAULT, Origin.BASELINE)
        stored = self._confirmation.stored_decision()
        if stored is None:
            self._search.run()
            decision = self._decide()
        else:
            self._search.load_search()
            decision = stored
        comparison, decision = self._confirmation.confirm(decision)
        plan = self._confirmation.measured(decision)
        rules = Rules.of(self._plan, decision, len(decision.shares) - 1)
        detectable = detectable_gains(decision, comparison, rules)
        oversubscribed = self._session.is_oversubscribed()
        profiles, likely = list[Profile](), list[Profile]()
        if not oversubscribed:
            profiles, likely = self._profiles(plan, decision, comparison, detectable)
        store, campaign_id = self.runner.store, self.runner.campaign_id
        store.save_profiles(campaign_id, [*profiles, *likely])
        conclusion = draw_conclusion(
            plan,
            self.runner.evidence,
            decision,
            comparison,
            detectable,
            rules=rules,
            run_s=self._confirmation.typical_s(),
            executions=store.executions(campaign_id),
            set_aside=self._search.set_aside,
            replayed=self._replayed,
        )
        store.conclude(campaign_id, conclusion)
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
            likely=tuple(likely),
            default_s=_list_default_times(self.runner.evidence.good(Phase.SEARCH)),
        )

    def _decide(self) -> Decision:
        """Chooses candidates, ablates and simplifies them, and decides on their confirmation."""
        rest_s = self._rest_s()
        run_s = self._confirmation.typical_s()
        spread = measure_pair_noise(self._search.read_speedups(), self._plan.workload.sizes)
        winners: dict[Configuration, Standing] = {}
        ablation_runs = 0
        if not self._session.is_oversubscribed():
            winners, ablation_runs = self._portfolio(rest_s, spread)
        if any(len(one) > 1 for one in winners) and not ablation_runs:
            winners, ablation_runs = self._portfolio(rest_s, spread, is_strict=True)
        ablated_s = run_s * ablation_runs
        if not ablated_s and any(len(one) > 1 for one in winners):
            self._session.reporter.say(
                f"no ablation: the search left time for about {rest_s / run_s:.0f} runs, too few "
                "to leave out each variable, so needless ones may stay"
            )
        hidden = self._search.find_interacting_values() if winners else {}
        since = self._confirmation.last_block()
        ablations = self._ablation.run(self._share_sizes(winners), ablated_s, since)
        small: dict[Configuration, Standing] = {}
        for number, ablation in enumerate(ablations):
            whole = add_values(self._plan.space, ablation.after, hidden)
            executed = as_executed(self._session, whole, list(small))
            ablations[number] = as_ablated(ablation, executed)
            if not executed.is_default:
                small.setdefault(executed, winners[ablation.before])
        # If none is left, the best is confirmed all the same, to state how little it gains.
        members = small or dict(list(winners.items())[:1])
        spent_s = Timer(self.runner, ablated_s, Phase.ABLATE, since).used()
        left_s = max(0.0, rest_s - spent_s)
        if small:
            members = self._add_measured(members, ablations, left_s, spread)
        shares, between_s = self._with_between(members, self._share_sizes(members))
        return self._confirmation.decide(shares, left_s, ablations, between_s)

    def _add_measured(
        self,
        members: Mapping[Configuration, Standing],
        ablations: Sequence[Ablation],
        left_s: float,
        spread: Mapping[int, float],
    ) -> dict[Configuration, Standing]:
        """Adds configurations that the ablation found to be better than these at some sizes.

        What lacks a variable may lose at the sizes that it was chosen for, and gain at others.
        What the ablation left out of a candidate doesn't come back.
        """
        measured = self._ablation.blocks.read_standings()
        found = {one: measured.get(one, standing) for one, standing in members.items()}
        others = [
            standing
            for one, standing in measured.items()
            if one not in found and not any(ablation.leaves_out(one) for ablation in ablations)
        ]
        standings = [*found.values(), *others]
        prospects = Prospects(self._plan, standings, self._search.weights, spread)
        runs = int(left_s / self._confirmation.typical_s())
        for standing in prospects.choose_further(len(found), runs):
            executed = as_executed(self._session, standing.configuration, list(found))
            if not executed.is_default:
                found.setdefault(executed, standing)
        return found

    def _with_between(
        self, members: Mapping[Configuration, Standing], shares: SizeShares
    ) -> tuple[SizeShares, float]:
        """Adds sizes between to each candidate's; returns also the seconds they add to a run."""
        if not self._plan.looks_between:
            return shares, 0.0
        default_s, run_s = self._search.default_s, self._confirmation.typical_s()
        between = SizesBetween(self._plan, members, default_s, run_s)
        found = between.add_to(shares)
        every = {size for mine in found.values() for size in mine}
        if more := sorted(every - {*self._plan.workload.sizes}):
            named = ", ".join(map(format_size, more))
            self._session.reporter.say(
                f"confirmation also measures {named}: a profile must not be slower between sizes"
            )
        return found, between.time_of(found)

    def _rest_s(self) -> float:
        """Returns the seconds of the whole budget that the search left."""
        budget = self._plan.budget
        searched_s = self.runner.cost() * self.runner.evidence.wall_s(Phase.SEARCH)
        if budget.trials is not None:  # a limit of trials asks for an early end
            searched_s = max(searched_s, budget.search_s)
        return max(0.0, budget.whole_s - searched_s)

    def _portfolio(
        self, rest_s: float, spread: Mapping[int, float], *, is_strict: bool = False
    ) -> tuple[dict[Configuration, Standing], int]:
        """Chooses candidates, each simplified to what the library executed, and none twice.

        Returns also how many of the runs ablation may have.

        Args:
            rest_s: seconds of the budget after the search.
            spread: standard deviation of a pair's log ratio by size (bytes).
            is_strict: whether time is too short to ablate each; they have fewer variables then.
        """
        runs = int(rest_s / self._confirmation.typical_s())
        standings = self._search.standings(is_strict=is_strict)
        for _ in range(_MOST_CHOICES):
            prospects = Prospects(self._plan, standings, self._search.weights, spread)
            chosen, ablation_runs = prospects.choose(runs)
            found: dict[Configuration, Standing] = {}
            for one in chosen:
                executed = as_executed(self._session, one.configuration, list(found))
                found.setdefault(executed, one)
            void = found.pop(DEFAULT, None)
            if void is None:
                break
            # The library ignored it or does the same by default: others take its place.
            standings = tuple(one for one in standings if one is not void)
        if is_strict and found:
            small = self._search.drop_weak_variables(self._share_sizes(found))
            found = {one.configuration: one for one in small}
            prospects = Prospects(self._plan, small, self._search.weights, spread)
            ablation_runs = prospects.count_ablation_runs(range(len(small)), runs, of_each=False)
        return found, ablation_runs

    def _share_sizes(
        self, members: Mapping[Configuration, Standing]
    ) -> dict[Configuration, tuple[int, ...]]:
        return assign_sizes(members, self._plan.workload.sizes, self._plan.tolerance)

    def _profiles(
        self,
        plan: Plan,
        decision: Decision,
        comparison: Comparison,
        detectable: Mapping[int, float],
    ) -> tuple[list[Profile], list[Profile]]:
        """Makes profiles, after guard operations under what they recommend; then likely ones."""
        ranges = recommended_ranges(plan, comparison)
        changed = [r.configuration for r in ranges if not r.configuration.is_default]
        maker = ProfileMaker(
            plan,
            comparison,
            self._confirmation.guard(decision, list(dict.fromkeys(changed))),
            decision.ablations,
            detectable,
            self.runner.batches.simulated,
        )
        return maker.recommend(), maker.list_likely()


def _list_default_times(runs: Iterable[Run]) -> dict[int, list[float]]:
    """Lists the times (seconds) of the default's runs by size (bytes), in all states."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for run in runs:
        if run.configuration.is_default:
            for measured in run.measurements:
                found[measured.bytes].append(measured.time_s)
    return dict(found)
