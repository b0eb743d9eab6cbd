"""Which configuration to try next. The only importer of Optuna.

Every size range has a study of its own, and every run is told to all of them, so that the ranges
search in turn on shared evidence. The studies live in memory and are rebuilt from what was
measured (at start, at resume, and now and then, because scores are relative to the default and
to the machine's speed, which become known better with time).
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import Trial, TrialState, create_trial

from commtune.model import DEFAULT, Configuration
from commtune.spaces import Parameter, Space
from commtune.tuner.search.scores import Scoreboard, SizeRange

optuna.logging.set_verbosity(optuna.logging.ERROR)

#: Ordered values beyond this many are searched by their order, not as unrelated categories.
_MOST_CATEGORIES = 8
#: What a study remembers at most: the best and the latest. Keeps the cost of a trial constant.
_MOST_REMEMBERED = 400
_STARTUP = 16
#: How often the sampler is asked before a known configuration is changed a little instead: an
#: answer of the sampler costs milliseconds, and once it has converged most are known.
_TRIES, _CHANGES = 2, 30
#: A score no run reaches: failed configurations rank behind all others.
_FAILED = -10.0


class Origin(StrEnum):
    """Where a configuration came from."""

    BASELINE = "baseline"
    USER = "user"
    ENUMERATED = "enumerated"
    RANDOM = "random"
    SAMPLER = "sampler"
    ISOLATED = "isolated"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, where it came from, and for which size range."""

    configuration: Configuration
    origin: Origin
    label: str = ""


#: A parameter and its value; ``None`` for unset.
Item = tuple[str, str | None]


@dataclass
class Failures:
    """What failed, and the values that two failures share and no success has.

    Such values are set aside. They may have been in bad company only, so each is to be tried by
    itself once (``unclear``), and those that work come back.
    """

    failed: list[dict[str, str | None]] = field(default_factory=list)
    proven: set[Item] = field(default_factory=set)
    aside: set[Item] = field(default_factory=set)
    unclear: list[Item] = field(default_factory=list)

    def succeeded(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """A value that works is not the culprit by itself; returns those that come back."""
        self.proven.update(assignment.items())
        cleared = self.aside & self.proven
        self.aside -= cleared
        return cleared

    def failure(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """Takes in a failure; returns the values newly set aside."""
        self.failed.append(dict(assignment))
        counted = Counter(item for failed in self.failed for item in failed.items())
        suspects = {item for item, n in counted.items() if n >= 2} - self.proven - self.aside
        self.aside |= suspects
        self.unclear += sorted(suspects, key=str)
        return suspects

    def blocks(self, assignment: Mapping[str, str | None]) -> bool:
        """Whether a configuration holds a value that was set aside."""
        return not self.aside.isdisjoint(assignment.items())


class Search:
    """Asks for configurations of a space; is told how they did.

    Laws: ``ask`` never returns a configuration that was asked for or known before, nor one that
    the space forbids, nor one with a value that was set aside; ``None`` means that the space has
    nothing left.

    Args:
        ranges: size ranges to search for, in turn.
        seed: makes the sequence of proposals reproducible, given the same scores.
        first: configurations to try before all others (site settings).
        enumerate_all: propose every configuration once, in random order.
    """

    def __init__(
        self,
        space: Space,
        ranges: Sequence[SizeRange],
        *,
        seed: int,
        first: Sequence[Configuration] = (),
        enumerate_all: bool = False,
    ) -> None:
        self.space = space
        self.ranges = tuple(ranges)
        self.failures = Failures()
        self._rng = random.Random(seed)
        self._known: set[Configuration] = {DEFAULT}
        self._first = list(first)
        self._all = self._shuffled() if enumerate_all else None
        self._studies = {r.label: self._new_study() for r in self.ranges}
        #: What was asked for and not told yet, with the number of its trial in each study: all of
        #: them are to propose something else meanwhile.
        self._waiting: dict[Configuration, dict[str, int]] = {}
        self._turn = 0

    def remember(self, configuration: Configuration) -> None:
        """Marks a configuration as known, so that it is not proposed."""
        self._known.add(configuration)

    def ask(self) -> Proposal | None:
        """The next configuration to try, or ``None`` when nothing is left."""
        proposal = self._listed() or self._isolated() or self._enumerated() or self._sampled()
        if proposal is not None:
            self._known.add(proposal.configuration)
            self._await(proposal.configuration)
        return proposal

    def _await(self, configuration: Configuration) -> None:
        """Lets all studies know that a configuration is under way."""
        if self._all is not None:  # no study is asked
            return
        numbers = self._waiting.setdefault(configuration, {})
        for label, study in self._studies.items():
            if label not in numbers:
                study.add_trial(self._frozen(self._assignment(configuration), None))
                numbers[label] = len(study.get_trials(deepcopy=False)) - 1

    def worked(self, configuration: Configuration) -> None:
        """An earlier run succeeded; its score comes with ``rebuild``."""
        self.failures.succeeded(self._assignment(configuration))

    def tell(self, configuration: Configuration, scores: Mapping[str, float]) -> set[Item]:
        """A run succeeded, with these scores by range label (higher is better).

        Returns the values that were set aside before, and come back.
        """
        assignment = self._assignment(configuration)
        cleared = self.failures.succeeded(assignment)
        for label, study in self._studies.items():
            self._close(label, study, configuration, assignment, scores.get(label))
        self._waiting.pop(configuration, None)
        return cleared

    def tell_failed(self, configuration: Configuration) -> set[Item]:
        """A run failed through its configuration; returns values that are set aside for it."""
        assignment = self._assignment(configuration)
        for label, study in self._studies.items():
            self._close(label, study, configuration, assignment, None, failed=True)
        self._waiting.pop(configuration, None)
        return self.failures.failure(assignment)

    def forget(self, configuration: Configuration) -> None:
        """A run was lost: nothing is known of the configuration, and nobody waits for it."""
        for label, number in self._waiting.pop(configuration, {}).items():
            self._studies[label].tell(number, state=TrialState.FAIL)

    def rebuild(self, board: Scoreboard) -> None:
        """Makes the studies anew from all scores so far, and what is still waited for."""
        for size_range in self.ranges:
            study = self._new_study()
            self._studies[size_range.label] = study
            study.add_trials(list(self._remembered(board, size_range.label)))
            for failed in self.failures.failed[-_MOST_REMEMBERED // 4 :]:
                study.add_trial(self._frozen(failed, _FAILED, failed=True))
        for configuration in list(self._waiting):
            self._waiting[configuration] = {}
            self._await(configuration)

    def _remembered(self, board: Scoreboard, label: str) -> Iterator[optuna.trial.FrozenTrial]:
        scored = [(c, s[label].mean) for c, s in board.scores.items() if label in s]
        if len(scored) > _MOST_REMEMBERED:
            half = _MOST_REMEMBERED // 2
            best = sorted(scored, key=lambda pair: -pair[1])[:half]
            scored = list(dict([*best, *scored[-half:]]).items())
        for configuration, score in scored:
            yield self._frozen(self._assignment(configuration), score)

    def _assignment(self, configuration: Configuration) -> dict[str, str | None]:
        """The values of the parameters that are active: those that a study was asked for."""
        whole = self.space.assignment(configuration)
        return {
            p.name: whole[p.name] for p in self.space.parameters if self.space.active(p, whole)
        }

    def _listed(self) -> Proposal | None:
        while self._first:
            configuration = self._first.pop(0)
            if configuration not in self._known:
                return Proposal(configuration, Origin.USER)
        return None

    def _isolated(self) -> Proposal | None:
        """A suspected value alone, everything else as the default has it."""
        while self.failures.unclear:
            name, value = self.failures.unclear.pop(0)
            if (name, value) not in self.failures.aside or value is None:
                continue
            configuration = self.space.configuration({name: value})
            if configuration not in self._known and not self.space.check(configuration):
                return Proposal(configuration, Origin.ISOLATED)
        return None

    def _enumerated(self) -> Proposal | None:
        while self._all:
            configuration = self._all.pop()
            if self._is_open(configuration):
                return Proposal(configuration, Origin.ENUMERATED)
        return None

    def _sampled(self) -> Proposal | None:
        if self._all is not None:
            return None
        label = self.ranges[self._turn % len(self.ranges)].label
        self._turn += 1
        for _ in range(_TRIES):
            trial = self._studies[label].ask()
            assignment = self._suggest(trial)
            configuration = self.space.configuration(assignment)
            if self.space.is_allowed(assignment) and self._is_open(configuration):
                self._waiting[configuration] = {label: trial.number}
                return Proposal(configuration, Origin.SAMPLER, label)
            self._studies[label].tell(trial, state=TrialState.FAIL)
        return self._near(assignment, label) or self._random(label)

    def _near(self, assignment: Mapping[str, str | None], label: str) -> Proposal | None:
        """A new configuration that differs from one in a parameter or two."""
        for attempt in range(_CHANGES):
            changed = dict(assignment)
            for _ in range(1 + attempt // (_CHANGES // 2)):
                parameter = self.space.by_name[self._rng.choice(list(assignment))]
                changed[parameter.name] = self._rng.choice(parameter.values)
            changed = self.space.consistent(changed)
            configuration = self.space.configuration(changed)
            if not self.space.check(configuration) and self._is_open(configuration):
                return Proposal(configuration, Origin.SAMPLER, label)
        return None

    def _random(self, label: str) -> Proposal | None:
        for _ in range(10 * _CHANGES):
            configuration = self.space.sample(self._rng)
            if self._is_open(configuration):
                return Proposal(configuration, Origin.RANDOM, label)
        rest = (c for c in self.space.configurations() if self._is_open(c))
        last = next(rest, None)
        return Proposal(last, Origin.RANDOM, label) if last is not None else None

    def _is_open(self, configuration: Configuration) -> bool:
        if configuration in self._known:
            return False
        return not self.failures.blocks(self._assignment(configuration))

    def _shuffled(self) -> list[Configuration]:
        configurations = list(self.space.configurations())
        self._rng.shuffle(configurations)
        return configurations

    def _suggest(self, trial: Trial) -> dict[str, str | None]:
        assignment: dict[str, str | None] = {}
        for parameter in self.space.parameters:
            if self.space.active(parameter, assignment):
                assignment[parameter.name] = _suggest(trial, parameter)
        return assignment

    def _close(
        self,
        label: str,
        study: optuna.Study,
        configuration: Configuration,
        assignment: Mapping[str, str | None],
        score: float | None,
        *,
        failed: bool = False,
    ) -> None:
        number = self._waiting.get(configuration, {}).get(label)
        if number is not None:
            if score is not None and not failed:
                study.tell(number, score)
                return
            study.tell(number, state=TrialState.FAIL)
        if failed or score is not None:
            value = _FAILED if failed or score is None else score
            study.add_trial(self._frozen(assignment, value, failed=failed))

    def _frozen(
        self, assignment: Mapping[str, str | None], score: float | None, *, failed: bool = False
    ) -> optuna.trial.FrozenTrial:
        """A trial with its score, or one that is waited for."""
        params: dict[str, str | int | None] = {}
        distributions: dict[str, BaseDistribution] = {}
        for parameter in self.space.parameters:
            if parameter.name in assignment:
                value = assignment[parameter.name]
                distribution = _distribution(parameter)
                distributions[parameter.name] = distribution
                by_order = isinstance(distribution, IntDistribution)
                params[parameter.name] = parameter.values.index(value) if by_order else value
        return create_trial(
            state=TrialState.RUNNING if score is None else TrialState.COMPLETE,
            params=params,
            distributions=distributions,
            value=score,
            constraints={"failed": 1.0 if failed else 0.0},
        )

    def _new_study(self) -> optuna.Study:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=_STARTUP,
                multivariate=True,
                group=True,  # conditional parameters would else be drawn one by one
                constant_liar=True,
                seed=self._rng.randrange(2**32),
            )
        return optuna.create_study(direction="maximize", sampler=sampler)


def _distribution(parameter: Parameter) -> BaseDistribution:
    if parameter.ordered and len(parameter.values) > _MOST_CATEGORIES:
        return IntDistribution(0, len(parameter.values) - 1)
    return CategoricalDistribution(parameter.values)


def _suggest(trial: Trial, parameter: Parameter) -> str | None:
    distribution = _distribution(parameter)
    if isinstance(distribution, IntDistribution):
        index = trial.suggest_int(parameter.name, distribution.low, distribution.high)
        return parameter.values[index]
    value = trial.suggest_categorical(parameter.name, parameter.values)
    return None if value is None else str(value)
