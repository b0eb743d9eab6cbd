"""Samplers of Optuna, with one objective: the weighted mean log speedup over sizes.

The study is in memory. It is rebuilt from all runs at start, at resume and now and then, since
the default's times and the machine states, to which speedups refer, are estimated ever better.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import random
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState, create_trial

from commtune.documents.nearest import find_nearest, quote_value
from commtune.errors import UserError, install_command
from commtune.model import Configuration, Origin
from commtune.spaces.parameter import Parameter
from commtune.spaces.space import Space
from commtune.tuner.search.encoding import Matrix
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies.random_sampling import RandomSampling
from commtune.tuner.search.strategies.strategy import (
    OWN,
    Assignment,
    IsOpen,
    Proposal,
    active_values,
)

optuna.logging.set_verbosity(optuna.logging.ERROR)

#: A parameter with more ordered values than this is an integer, not a categorical one.
_MOST_CATEGORIES = 8
#: The most trials in a study, the best and the latest; keeps the cost of a trial constant.
_MOST_REMEMBERED = 400
#: Proposals of the sampler before its last one is changed a little instead (and such changes): a
#: proposal takes milliseconds, and once the sampler has converged, most are known.
_TRIES, _CHANGES = 2, 30
#: The score of a failure, worse than that of any run.
_FAILED = -10.0
#: Shorter names of samplers; every other class of ``optuna.samplers`` goes by its own.
_SHORT_NAMES = {
    "gp": "GPSampler",
    "cma-es": "CmaEsSampler",
    "nsga-ii": "NSGAIISampler",
    "tpe": "TPESampler",
}

#: Packages that Optuna imports only at the first proposal, when a campaign is well under way.
_NEEDED = {"GPSampler": "torch", "CmaEsSampler": "cmaes"}

#: It stops its study at the end of the space, which only ``Study.optimize`` allows.
_ENUMERATING = optuna.samplers.BruteForceSampler

#: Makes the sampler of a study from a seed.
_MakeSampler = Callable[[int], BaseSampler]


@contextmanager
def _experiments_allowed() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def _samplers() -> dict[str, type[BaseSampler]]:
    """The samplers of Optuna, by the names of their classes."""
    return {
        name: made
        for name, made in vars(optuna.samplers).items()
        if isinstance(made, type) and issubclass(made, BaseSampler)
    }


def _list_samplers() -> list[str]:
    """The names of Optuna's samplers that need nothing but a seed, sorted."""
    return sorted(
        name for name, made in _samplers().items() if made is not _ENUMERATING and _is_plain(made)
    )


def _is_plain(made: type[BaseSampler]) -> bool:
    taken = inspect.signature(made).parameters
    needed = [name for name, one in taken.items() if one.default is inspect.Parameter.empty]
    return "seed" in taken and needed in ([], ["seed"]) and not inspect.isabstract(made)


def _import_sampler(name: str) -> type[BaseSampler]:
    """Imports a sampler of the user, ``MODULE:CLASS``."""
    module, _, kind = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), kind)
    except Exception as error:  # whatever the user's module raises
        raise UserError(
            f"strategy: {name} can't be imported: {error}",
            hint="write MODULE:CLASS, and install the module, or name its folder in PYTHONPATH",
        ) from error
    if not (isinstance(made, type) and issubclass(made, BaseSampler)):
        raise UserError(
            f"strategy: {name} is no sampler",
            hint="derive the class from optuna.samplers.BaseSampler",
        )
    return made


def sampler_of(name: str) -> _MakeSampler:
    """Finds the sampler of a name, with Optuna's own settings.

    Args:
        name: a class of ``optuna.samplers``, a short name, or ``MODULE:CLASS``.

    Raises:
        UserError: there is none, it can't be imported, it needs a package that isn't installed,
            or it works in ``Study.optimize`` only.
    """
    made = _import_sampler(name) if ":" in name else _samplers().get(_SHORT_NAMES.get(name, name))
    if made is None:
        known = [*OWN, *sorted(_SHORT_NAMES)]
        nearest = find_nearest(name, [*known, *_list_samplers()])
        every = f"known: {', '.join(known)}, a class of optuna.samplers, or MODULE:CLASS of yours"
        raise UserError(
            f"strategy: no search strategy is called {quote_value(name)}",
            hint=f"nearest: {nearest}\n{every}" if nearest else every,
        )
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
        except Exception as error:  # of the user's class, whatever it raises
            raise UserError(
                f"strategy: {name}: this sampler can't be made from a seed alone: {error}",
                hint="leave 'strategy' out, or name one of tpe, nsga-ii, random",
            ) from error

    return make


class OptunaStrategy:
    """Proposes what a sampler of Optuna suggests.

    Args:
        weights: of the sizes in the mean.
        rng: makes the proposals reproducible, given the same speedups.
    """

    def __init__(
        self,
        space: Space,
        weights: Matrix,
        rng: random.Random,
        make_sampler: _MakeSampler,
    ) -> None:
        self._space, self._weights, self._rng = space, weights, rng
        self._make_sampler = make_sampler
        self._random = RandomSampling(space, rng)
        self._study = self._new_study()
        #: Pending configurations, with the number of their trial in the study.
        self._waiting: dict[Configuration, int] = {}

    def ask(self, is_open: IsOpen) -> Proposal | None:
        """Returns the sampler's proposal, or one near it if that is not open."""
        for _ in range(_TRIES):
            with self._explained_errors():
                trial = self._study.ask()
                assignment = self._suggest(trial)
            configuration = self._space.configuration(assignment)
            if self._space.is_allowed(assignment) and is_open(configuration):
                self._waiting[configuration] = trial.number
                return Proposal(configuration, Origin.SAMPLER)
            self._study.tell(trial, state=TrialState.FAIL)
        return self._near(assignment, is_open) or self._random.ask(is_open)

    def wait_for(self, configuration: Configuration) -> None:
        """Adds a pending configuration to the study as a running trial."""
        if configuration not in self._waiting:
            values = active_values(self._space, configuration)
            self._study.add_trial(self._frozen(values, None))
            self._waiting[configuration] = len(self._study.get_trials(deepcopy=False)) - 1

    def tell(self, configuration: Configuration, speedups: Speedups) -> None:
        """Tells the study the mean log speedup of a run."""
        self._close(configuration, self._score(speedups))

    def tell_failed(self, configuration: Configuration) -> None:
        """Tells the study of a failure, whose score is below all others."""
        self._close(configuration, None)

    def forget(self, configuration: Configuration) -> None:
        """Closes the trial of a pending configuration as failed."""
        if (number := self._waiting.pop(configuration, None)) is not None:
            self._study.tell(number, state=TrialState.FAIL)

    def rebuild(
        self, runs: Sequence[tuple[Configuration, Speedups]], failed: Sequence[Assignment]
    ) -> None:
        """Makes the study anew from all runs so far and pending configurations."""
        self._study = self._new_study()
        self._study.add_trials(list(self._remembered(runs)))
        for values in failed[-_MOST_REMEMBERED // 4 :]:
            self._study.add_trial(self._frozen(values, _FAILED, failed=True))
        waiting, self._waiting = list(self._waiting), {}
        for configuration in waiting:
            self.wait_for(configuration)

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """Turns what a sampler raises, most likely one of the user's own, into a message."""
        try:
            yield
        except Exception as error:
            *_, last = traceback.walk_tb(error.__traceback__)
            name = type(self._study.sampler).__name__
            place = f"{last[0].f_code.co_filename}:{last[1]}"
            raise UserError(
                f"the sampler {name} failed: {error!r}\n  at {place}",
                hint="what was measured is kept; once it is mended, the same command continues",
            ) from error

    def _score(self, speedups: Speedups) -> float:
        known = ~np.isnan(speedups)
        total = self._weights[known].sum()
        return float(self._weights[known] @ speedups[known] / total) if total else 0.0

    def _remembered(
        self, runs: Sequence[tuple[Configuration, Speedups]]
    ) -> Iterator[optuna.trial.FrozenTrial]:
        found: dict[Configuration, list[float]] = {}
        for configuration, speedups in runs:
            found.setdefault(configuration, []).append(self._score(speedups))
        scored = [(configuration, fmean(scores)) for configuration, scores in found.items()]
        if len(scored) > _MOST_REMEMBERED:
            half = _MOST_REMEMBERED // 2
            best = sorted(scored, key=lambda pair: -pair[1])[:half]
            scored = list(dict([*best, *scored[-half:]]).items())
        for configuration, score in scored:
            yield self._frozen(active_values(self._space, configuration), score)

    def _near(self, assignment: Assignment, is_open: IsOpen) -> Proposal | None:
        """Draws an open configuration that differs in one or two parameters."""
        for attempt in range(_CHANGES if assignment else 0):
            changed = dict(assignment)
            for _ in range(1 + attempt // (_CHANGES // 2)):
                parameter = self._space.by_name[self._rng.choice(list(assignment))]
                changed[parameter.name] = self._rng.choice(parameter.values)
            changed = self._space.consistent(changed)
            configuration = self._space.configuration(changed)
            if not self._space.check(configuration) and is_open(configuration):
                return Proposal(configuration, Origin.SAMPLER)
        return None

    def _suggest(self, trial: Trial) -> dict[str, str | None]:
        assignment: dict[str, str | None] = {}
        for parameter in self._space.parameters:
            if self._space.active(parameter, assignment):
                assignment[parameter.name] = _suggest(trial, parameter)
        return assignment

    def _close(self, configuration: Configuration, score: float | None) -> None:
        """Ends the trial of a pending configuration, or adds one; failed without a score."""
        number = self._waiting.pop(configuration, None)
        if number is not None and score is not None:
            with self._explained_errors():
                self._study.tell(number, score)
            return
        if number is not None:
            self._study.tell(number, state=TrialState.FAIL)
        values = active_values(self._space, configuration)
        value = _FAILED if score is None else score
        self._study.add_trial(self._frozen(values, value, failed=score is None))

    def _frozen(
        self, assignment: Assignment, score: float | None, *, failed: bool = False
    ) -> optuna.trial.FrozenTrial:
        """Makes a trial with its score, or a running one without."""
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
