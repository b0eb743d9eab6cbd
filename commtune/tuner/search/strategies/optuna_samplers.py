"""Samplers of Optuna, with a study for each size range. The only importer of Optuna.

Every run is told to the studies of all size ranges, so that the ranges search in turn on shared
evidence. The studies live in memory and are rebuilt from what was measured (at start, at resume,
and now and then, because scores are relative to the default and to the machine state, which
become known better with time).
"""

from __future__ import annotations

import importlib.util
import inspect
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState, create_trial

from commtune.errors import UserError, install_command
from commtune.model import Configuration
from commtune.spaces.parameter import Parameter
from commtune.spaces.space import Space
from commtune.tuner.search.scores import Scoreboard, SizeRange
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import (
    Assignment,
    IsOpen,
    Origin,
    Proposal,
    active_values,
)

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
#: Shorter names of samplers; every other class of ``optuna.samplers`` goes by its own.
SHORT_NAMES = {
    "gp": "GPSampler",
    "cma-es": "CmaEsSampler",
    "nsga-ii": "NSGAIISampler",
    "tpe": "TPESampler",
}

#: Packages that Optuna imports only when it is first asked, deep inside of a campaign.
_NEEDED = {"GPSampler": "torch", "CmaEsSampler": "cmaes"}

#: It stops its study when it is through, which only Study.optimize allows.
_ENUMERATING = optuna.samplers.BruteForceSampler

#: Makes the sampler of a study from a seed.
MakeSampler = Callable[[int], BaseSampler]


@contextmanager
def _experiments_allowed() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def make_grouped_tpe(seed: int) -> BaseSampler:
    """TPE that draws parameters together, and proposes something else than what is under way."""
    return optuna.samplers.TPESampler(
        n_startup_trials=_STARTUP,
        multivariate=True,
        group=True,  # conditional parameters would else be drawn one by one
        constant_liar=True,
        seed=seed,
    )


def _samplers() -> dict[str, type[BaseSampler]]:
    """The samplers of Optuna, by the names of their classes."""
    return {
        name: made
        for name, made in vars(optuna.samplers).items()
        if isinstance(made, type) and issubclass(made, BaseSampler)
    }


def list_samplers() -> list[str]:
    """The names of Optuna's samplers that need nothing but a seed, sorted."""
    return sorted(
        name for name, made in _samplers().items() if made is not _ENUMERATING and _is_plain(made)
    )


def _is_plain(made: type[BaseSampler]) -> bool:
    taken = inspect.signature(made).parameters
    needed = [name for name, one in taken.items() if one.default is inspect.Parameter.empty]
    return "seed" in taken and needed in ([], ["seed"]) and not inspect.isabstract(made)


def sampler_of(name: str) -> MakeSampler | None:
    """The sampler of Optuna that goes by a name, with Optuna's own settings; if there is one.

    Raises:
        UserError: it needs a package that is not there, or only Optuna itself can use it.
    """
    made = _samplers().get(SHORT_NAMES.get(name, name))
    if made is None:
        return None
    if made is _ENUMERATING:
        raise UserError(
            f"strategy: {name} can't be asked for one proposal after the other",
            hint="nearest: exhaustive, which tries every configuration as well",
        )
    needed = _NEEDED.get(made.__name__)
    if needed and importlib.util.find_spec(needed) is None:
        raise UserError(
            f"strategy: {name}: Optuna needs the package {needed} for it, which is not installed",
            hint=install_command(needed),
        )

    def make(seed: int) -> BaseSampler:
        try:
            with _experiments_allowed():
                return made(seed=seed)  # type: ignore[call-arg]  # those that take none are refused
        except (TypeError, ImportError) as error:
            raise UserError(
                f"strategy: {name}: Optuna can't make this sampler here: {error}",
                hint="leave 'strategy' out, or name one of tpe, nsga-ii, random",
            ) from error

    return make


class OptunaStrategy:
    """Asks the studies of all size ranges in turn.

    Args:
        ranges: size ranges to search for.
        rng: makes the proposals reproducible, given the same scores.
    """

    def __init__(
        self,
        space: Space,
        ranges: Sequence[SizeRange],
        rng: random.Random,
        make_sampler: MakeSampler = make_grouped_tpe,
    ) -> None:
        self._space = space
        self._ranges = tuple(ranges)
        self._rng = rng
        self._make_sampler = make_sampler
        self._random = RandomSampling(space, rng)
        self._studies = {r.label: self._new_study() for r in self._ranges}
        #: What was asked for and not told yet, with the number of its trial in each study: all of
        #: them are to propose something else meanwhile.
        self._waiting: dict[Configuration, dict[str, int]] = {}
        self._turn = 0

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """From the study of the next size range in turn, or a little beside what that says."""
        label = self._ranges[self._turn % len(self._ranges)].label
        self._turn += 1
        for _ in range(_TRIES):
            trial = self._studies[label].ask()
            assignment = self._suggest(trial)
            configuration = self._space.configuration(assignment)
            if self._space.is_allowed(assignment) and is_open(configuration):
                self._waiting[configuration] = {label: trial.number}
                return Proposal(configuration, Origin.SAMPLER, label)
            self._studies[label].tell(trial, state=TrialState.FAIL)
        return self._near(assignment, label, is_open) or self._random.ask(is_open, label)

    def wait_for(self, configuration: Configuration) -> None:
        """Lets all studies know that a configuration is under way."""
        numbers = self._waiting.setdefault(configuration, {})
        for label, study in self._studies.items():
            if label not in numbers:
                study.add_trial(self._frozen(active_values(self._space, configuration), None))
                numbers[label] = len(study.get_trials(deepcopy=False)) - 1

    def tell(self, configuration: Configuration, scores: Mapping[str, float]) -> None:
        """Tells each study the score of its range."""
        for label in self._studies:
            self._close(label, configuration, scores.get(label))
        self._waiting.pop(configuration, None)

    def tell_failed(self, configuration: Configuration) -> None:
        """Tells all studies of a score behind all others."""
        for label in self._studies:
            self._close(label, configuration, None, failed=True)
        self._waiting.pop(configuration, None)

    def forget(self, configuration: Configuration) -> None:
        """Closes the trials that were waited for."""
        for label, number in self._waiting.pop(configuration, {}).items():
            self._studies[label].tell(number, state=TrialState.FAIL)

    def rebuild(self, board: Scoreboard, failed: Sequence[Assignment]) -> None:
        """Makes the studies anew from all scores so far, and what is still waited for."""
        for size_range in self._ranges:
            study = self._new_study()
            self._studies[size_range.label] = study
            study.add_trials(list(self._remembered(board, size_range.label)))
            for values in failed[-_MOST_REMEMBERED // 4 :]:
                study.add_trial(self._frozen(values, _FAILED, failed=True))
        for configuration in list(self._waiting):
            self._waiting[configuration] = {}
            self.wait_for(configuration)

    def _remembered(self, board: Scoreboard, label: str) -> Iterator[optuna.trial.FrozenTrial]:
        scored = [(c, s[label].mean) for c, s in board.scores.items() if label in s]
        if len(scored) > _MOST_REMEMBERED:
            half = _MOST_REMEMBERED // 2
            best = sorted(scored, key=lambda pair: -pair[1])[:half]
            scored = list(dict([*best, *scored[-half:]]).items())
        for configuration, score in scored:
            yield self._frozen(active_values(self._space, configuration), score)

    def _near(self, assignment: Assignment, label: str, is_open: IsOpen) -> Proposal | None:
        """A new configuration that differs from one in a parameter or two."""
        for attempt in range(_CHANGES):
            changed = dict(assignment)
            for _ in range(1 + attempt // (_CHANGES // 2)):
                parameter = self._space.by_name[self._rng.choice(list(assignment))]
                changed[parameter.name] = self._rng.choice(parameter.values)
            changed = self._space.consistent(changed)
            configuration = self._space.configuration(changed)
            if not self._space.check(configuration) and is_open(configuration):
                return Proposal(configuration, Origin.SAMPLER, label)
        return None

    def _suggest(self, trial: Trial) -> dict[str, str | None]:
        assignment: dict[str, str | None] = {}
        for parameter in self._space.parameters:
            if self._space.active(parameter, assignment):
                assignment[parameter.name] = _suggest(trial, parameter)
        return assignment

    def _close(
        self,
        label: str,
        configuration: Configuration,
        score: float | None,
        *,
        failed: bool = False,
    ) -> None:
        """Ends a study's trial that is waited for, or adds one."""
        study = self._studies[label]
        number = self._waiting.get(configuration, {}).get(label)
        if number is not None:
            if score is not None and not failed:
                study.tell(number, score)
                return
            study.tell(number, state=TrialState.FAIL)
        if failed or score is not None:
            value = _FAILED if failed or score is None else score
            values = active_values(self._space, configuration)
            study.add_trial(self._frozen(values, value, failed=failed))

    def _frozen(
        self, assignment: Assignment, score: float | None, *, failed: bool = False
    ) -> optuna.trial.FrozenTrial:
        """A trial with its score, or one that is waited for."""
        params: dict[str, str | int | None] = {}
        distributions: dict[str, BaseDistribution] = {}
        for parameter in self._space.parameters:
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
        with _experiments_allowed():
            sampler = self._make_sampler(self._rng.randrange(2**32))
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
