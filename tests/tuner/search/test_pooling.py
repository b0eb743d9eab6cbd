"""Parameters that work only beside another, and only at some sizes."""

from __future__ import annotations

import numpy as np
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.pooling import add_values, find_interacting_values
from commtune.tuner.search.standings import Speedups

SIZES = tuple(2**power for power in range(3, 23, 2))
NAMES = ("BEST", "BESIDE", "WITHOUT", "IDLE0", "IDLE1", "IDLE2")
SPACE = made_up_space(
    "\n".join(f"  - {{name: {n}, kind: choice, values: [a], source: t}}" for n in NAMES)
)
FAMILY = made_up_space(
    "  - {name: BEST, kind: choice, values: [a], source: t}\n"
    "  - {name: CHILD, kind: choice, values: [a], source: t, when: {BEST: [a]}}\n"
    "  - {name: TAKEN, kind: choice, values: [a, b], source: t}\n"
)
Runs = list[tuple[Configuration, Speedups]]


def search(seed: int, beside: float, size: int = 2**17) -> Runs:
    """BEST gains most. BESIDE adds to it from a size on, WITHOUT helps where BEST is not set."""
    rng = np.random.default_rng(seed)
    runs: Runs = [(DEFAULT, np.zeros(len(SIZES))) for _ in range(6)]
    for row in rng.random((70, len(NAMES))) < (0.7, 0.5, 0.5, 0.5, 0.5, 0.5):
        one = Configuration({name: "a" for name, is_set in zip(NAMES, row, strict=True) if is_set})
        gain = 1.0 if "BEST" in one else 0.8 * ("WITHOUT" in one)
        noise = 0.06 * (rng.standard_t(3) + rng.standard_t(3, len(SIZES)))
        added = beside if {"BEST", "BESIDE"} <= one.keys() else 0.0
        runs.append((one, gain + added * (np.array(SIZES) >= size) + noise))
    return runs


def find(runs: Runs) -> dict[str, str]:
    """What is found beside BEST, as if all else were idle."""
    model = TableModel(SPACE, SIZES)
    model.idle = tuple(item for item in model.encoding.encoded_values if NAMES[item[0]] != "BEST")
    for configuration, speedups in runs:
        model.add([(configuration, speedups)])
    return find_interacting_values(model, model.remove_trend(runs))


def test_what_works_beside_the_best_at_some_sizes_is_found() -> None:
    found = [find(search(seed, beside=0.2)) for seed in range(20)]
    assert sum("BESIDE" in names for names in found) >= 16
    assert sum(map(len, found)) - sum("BESIDE" in names for names in found) <= 5


def test_what_does_nothing_there_is_rarely_found() -> None:
    """WITHOUT does nothing beside BEST: that is no reason to set it."""
    assert sum(len(find(search(seed, beside=0.0))) for seed in range(40)) <= 10


def test_what_slows_the_best_down_is_not_found() -> None:
    assert not any("BESIDE" in find(search(seed, beside=-0.2)) for seed in range(20))


def test_what_was_tried_in_a_good_hour_is_not_found() -> None:
    """The search tries a value in runs that follow each other, and the machine changes."""
    found = 0
    for seed in range(20):
        ordered = sorted(search(seed, beside=0.0), key=lambda run: "IDLE0" in run[0])
        drift = np.linspace(0.0, 0.3, len(ordered)).tolist()
        drifting = zip(ordered, drift, strict=True)
        found += len(find([(c, of + by) for (c, of), by in drifting]))
    assert found <= 5


def test_equal_times_say_nothing() -> None:
    """Of a coarse clock: ranks among equal ones would say in which order they were run."""
    ordered = sorted(search(1, beside=0.0), key=lambda run: "BESIDE" in run[0])
    assert find([(one, np.full(len(SIZES), 1.0 * ("BEST" in one))) for one, _ in ordered]) == {}


def test_runs_that_lack_sizes_count_and_those_without_any_do_not() -> None:
    runs = search(3, beside=0.4)
    assert "BESIDE" in find(runs)
    holed = [(one, np.where(np.arange(len(SIZES)) == 2, np.nan, found)) for one, found in runs]
    assert "BESIDE" in find([*holed, (Configuration({"BEST": "a"}), np.full(len(SIZES), np.nan))])


def test_a_value_is_added_where_it_may_be_set() -> None:
    own = Configuration({"BEST": "a", "TAKEN": "b"})
    added = add_values(FAMILY, own, {"TAKEN": "a", "CHILD": "a"})
    assert added == Configuration({**own, "CHILD": "a"})
    assert add_values(FAMILY, Configuration({"TAKEN": "a"}), {"CHILD": "a"}).keys() == {"TAKEN"}
    assert add_values(FAMILY, DEFAULT, {"TAKEN": "a"}) == DEFAULT
