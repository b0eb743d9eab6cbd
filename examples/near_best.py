"""A sampler of one's own: most values are those of the best configuration so far."""

from __future__ import annotations

import random
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState


class NearBest(RandomSampler):
    """Draws each value anew in one of four cases; otherwise it is that of the best trial."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._random = random.Random(seed)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        best = max(done, key=lambda one: one.value or 0.0, default=trial)
        if name in best.params and self._random.random() > 0.25:
            return best.params[name]
        return super().sample_independent(study, trial, name, distribution)
