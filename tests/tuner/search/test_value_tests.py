"""Active values, where some sizes have far more noise, or all sizes of a run share it."""

from __future__ import annotations

import numpy as np
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.encoding import Encoding
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.value_tests import find_active_values

SIZES = (8, 64, 1024, 8192, 65536, 262144, 1048576, 4194304)
SPACE = made_up_space(
    "\n".join(
        f"  - {{name: V{n}, kind: integer, values: [1, 2, 3], source: test}}" for n in range(8)
    )
)
#: Standard deviations of a run. Its noise is the same at all small sizes, and at all large ones.
NOISE = np.array([0.3, 0.3, 0.3, 0.3, 0.04, 0.3, 0.3, 0.3])

SINGLE_VALUES = [Configuration({f"V{n}": value}) for n in range(8) for value in "123"]


def measure(seed: int, gain: float) -> list[tuple[Configuration, Speedups]]:
    """Runs of the default and of 44 configurations; V3=2 is faster at the one quiet size."""
    rng = np.random.default_rng(seed)
    drawn = [SPACE.nth(n) for n in rng.choice(SPACE.count(), 44, replace=False).tolist()]
    made = []
    for one in [*[DEFAULT] * 8, *drawn]:
        effect = gain * (NOISE < 0.1) * (one.get("V3") == "2")
        made.append((one, effect + NOISE * np.repeat(rng.standard_normal(2), 4)))
    return made


def test_what_is_shown_at_one_size_is_not_idle() -> None:
    found = 0
    for seed in range(10):
        model = TableModel(SPACE, SIZES)
        model.add(measure(seed, gain=0.1))
        model.find_idle()
        found += (3, 2) not in model.idle
    # The evidence for an effect at all sizes finds it in one of five.
    assert found >= 9


def test_what_no_size_shows_by_itself_is_shown_beside_the_others() -> None:
    encoding, found = Encoding(SPACE), 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        drawn = [SPACE.nth(n) for n in rng.choice(SPACE.count(), 44, replace=False).tolist()]
        has = np.array([one.get("V3") == "2" for one in drawn])
        # A launch has bad luck at all sizes, ten times as much as each size has of its own.
        noise = rng.standard_normal((44, 1)) * NOISE + 0.1 * NOISE * rng.standard_normal((44, 8))
        means = 0.05 * has[:, None] + noise
        found += (3, 2) in find_active_values(encoding.rows(drawn), means, np.ones((44, 1))).active
    # At the quietest size, it is 3.6 standard errors: too few for 24 values at eight sizes.
    assert found == 10


def test_other_values_of_what_one_size_shows_are_idle() -> None:
    kept = dropped = 0
    for seed in range(10):
        model = TableModel(SPACE, SIZES)
        model.add(measure(seed, gain=0.1))
        model.find_idle()
        kept += not model.drop_idle(Configuration({"V3": "2"})).is_default
        others = [Configuration({"V3": value}) for value in "13"]
        dropped += all(model.drop_idle(one).is_default for one in others)
    assert kept >= 9
    # One of both looks faster or slower by chance, now and then.
    assert dropped >= 7


def test_the_likeliest_value_stays_where_none_is_beyond_doubt() -> None:
    found = 0
    for seed in range(20):
        model = TableModel(SPACE, SIZES)
        model.add(measure(seed, gain=0.05))
        model.find_idle(is_strict=True)
        left = {one for one in SINGLE_VALUES if not model.drop_idle(one).is_default}
        found += left == {Configuration({"V3": "2"})}
    assert found >= 10


def test_without_any_run_nothing_is_shown() -> None:
    model = TableModel(SPACE, SIZES)
    model.find_idle(is_strict=True)
    # One value always stays, to be run again.
    assert len(model.idle) == 3 * len(SPACE.parameters) - 1


def test_what_does_nothing_is_rarely_shown() -> None:
    encoding, shown = Encoding(SPACE), 0
    for seed in range(200):
        configurations, speedups = zip(*measure(seed, gain=0.0)[8:], strict=True)
        rows, means = encoding.rows(configurations), np.array(speedups)
        shown += bool(find_active_values(rows, means, np.ones((len(rows), 1))).active)
    # By its error rate, 0.2; more than 3 in one of 17,000 such tests.
    assert shown <= 3
