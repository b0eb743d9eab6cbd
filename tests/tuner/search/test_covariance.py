"""How likely what was observed is, and which parameters speak for themselves."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.model import Configuration
from commtune.tuner.search.covariance import Covariance, Observed, Posterior
from commtune.tuner.search.encoding import Encoding, Matrix, Rows

SPACE = made_up_space(
    "\n".join(
        f"  - {{name: V{n}, kind: choice, values: [a, b, c, d], source: test}}" for n in range(8)
    )
)
_ENCODING = Encoding(SPACE)
_SIZES = np.array([8.0, 1024.0, 65536.0])


def _covariance() -> Covariance:
    return Covariance(_ENCODING, _SIZES)


def _draw(count: int, seed: int) -> list[Configuration]:
    drawn = np.random.default_rng(seed).choice(SPACE.count(), count, replace=False)
    return [SPACE.nth(number) for number in drawn.tolist()]


def _observe(configurations: list[Configuration], seed: int, effect: float = 0.0) -> Observed:
    """Noise, and what V0 does where it is set; in units of the noise's scale."""
    rows = _ENCODING.rows(configurations)
    return _observe_gains(rows, np.where(rows[:, 0] > 0, effect, 0.0), seed)


def _observe_gains(rows: Rows, gains: Matrix, seed: int) -> Observed:
    """Configurations with a gain each, the same at every size, and noise."""
    rng = np.random.default_rng(seed)
    return Observed(
        rows=rows,
        similarity=_covariance().compare_rows(rows, rows),
        means=gains[:, None] + 0.1 * rng.standard_normal((len(rows), len(_SIZES))),
        share=1 / rng.integers(1, 5, len(rows)),
        common=0.2,
        noise=0.01 * (0.4 * np.eye(len(_SIZES)) + 0.6),
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_a_weight_changes_is_what_a_new_posterior_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed, covariance = _observe(_draw(30, seed), seed, effect=1.0), _covariance()
    before = Posterior(covariance, observed)
    known = covariance.between_rows(observed.similarity)
    covariance.values[4 + seed] *= rng.choice([0.3, 3.0])
    added = covariance.between_rows(observed.similarity) - known
    after = Posterior(covariance, observed)
    assert abs(after.log_likelihood - before.log_likelihood) > 1e-3
    grown = before.likelihood_growth(added, np.eye(len(added)))
    assert grown == pytest.approx(after.log_likelihood - before.log_likelihood)
    # What was added counts in what another weight changes.
    before.add(added, np.eye(len(added)))
    covariance.values[4 + (seed + 1) % 8] *= 3.0
    more = covariance.between_rows(observed.similarity) - known - added
    last = Posterior(covariance, observed)
    grown = before.likelihood_growth(more, np.eye(len(more)))
    assert grown == pytest.approx(last.log_likelihood - after.log_likelihood)


@pytest.mark.parametrize("seed", range(5))
def test_only_what_does_something_stays(seed: int) -> None:
    covariance = _covariance()
    before = covariance.values.copy()
    idle = covariance.find_idle(_observe(_draw(60, seed), seed, effect=1.0), is_strict=True)
    assert {*range(8)} - {*idle} == {0}
    assert (covariance.values == before).all()


@pytest.mark.parametrize("seed", range(5))
def test_an_interaction_hides_no_smaller_effect(seed: int) -> None:
    rows = _ENCODING.rows(_draw(120, seed))
    # Either of two values is enough, which no sum of effects says.
    is_fast = (rows[:, 0] == 1) | (rows[:, 1] == 2)
    gains = 1.0 * is_fast + 0.25 * (rows[:, 2] > 0)
    idle = _covariance().find_idle(_observe_gains(rows, gains, seed), is_strict=True)
    assert {*range(8)} - {*idle} == {0, 1, 2}


def test_the_error_of_the_default_is_common_to_all_means() -> None:
    observed, covariance = _observe(_draw(12, 1), 1, effect=1.0), _covariance()
    new = _ENCODING.rows(_draw(5, 2))
    mean, variance = Posterior(covariance, observed).predict(new)
    # The same without Kronecker's product: errors of configurations, and one that all share.
    errors = np.diag(observed.share) + observed.common
    of_rows = covariance.between_rows(observed.similarity)
    seen = np.kron(of_rows, covariance.sizes()) + np.kron(errors, observed.noise)
    near = covariance.between_rows(covariance.compare_rows(new, observed.rows))
    known = np.kron(near, covariance.sizes()) @ np.linalg.inv(seen)
    np.testing.assert_allclose(mean.ravel(), known @ observed.means.ravel(), atol=1e-9)
    prior = np.outer(covariance.prior_variance(new), np.diag(covariance.sizes()))
    told = np.diag(known @ np.kron(near, covariance.sizes()).T).reshape(variance.shape)
    np.testing.assert_allclose(variance, prior - told, atol=1e-9)
