"""What configurations come to, by traces of a made-up library."""

from __future__ import annotations

from dataclasses import replace

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.storage.store import Store
from commtune.model import DEFAULT, Configuration, Operation, Verdict, Workload
from commtune.model.conclusion import Ablation
from commtune.model.effects import VariableEffect
from commtune.tuner.campaign import Campaign
from commtune.tuner.effective.canonical import as_ablated, as_executed
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session

SPACE = made_up_space("""
  - {name: BUFFER, kind: power-of-two, range: [1024, 65536], source: test}
  - {name: CELLS, kind: choice, values: ["2", "4", "8"], source: test}
  - {name: RULES, kind: choice, values: ["on", "off"], source: test}
  - {name: TREE, kind: choice, values: ["1", "2"], source: test, when: {RULES: ["on"]}}
  - {name: PLUGIN_SPEED, kind: choice, values: ["1", "2"], source: test}
  - name: who
    kind: group
    choices:
      basic: {PLUGIN: "0", LEVELS: "0"}
      levels: {PLUGIN: "0", LEVELS: "2"}
      plugin: {PLUGIN: "1"}
    source: test
""")
#: Built without the plugin.
OWN = {"BUFFER": "8192", "CELLS": "4", "RULES": "off", "TREE": "1", "LEVELS": "0"}


def truth(configuration: Configuration, size: int) -> float:
    """A large buffer is 1.5x faster; the number of cells does nothing."""
    large = int(configuration.get("BUFFER", "8192")) >= 32768
    return (1e-6 + size / 5e9) / (1.5 if large else 1.0)


@pytest.fixture
def benchmark() -> SyntheticBenchmark:
    return SyntheticBenchmark(truth, VirtualClock(), own=OWN)


@pytest.fixture
def runner(store: Store, benchmark: SyntheticBenchmark) -> Runner:
    plan = Plan(
        name="test",
        space=SPACE,
        workload=Workload(Operation.ALLREDUCE, (8, 65536)),
        # No time for leaving variables out: whatever goes, goes by what the library says.
        budget=Budget(search_s=30, ablation_s=0.1, confirmation_s=20),
    )
    return Runner(plan, hold(store, plan), benchmark, store, clock=benchmark.clock)


def session(runner: Runner) -> Session:
    return Session(runner.plan, runner, QuietReporter())


def test_what_the_library_holds_anyway_is_left_out(runner: Runner) -> None:
    asked = Configuration({"BUFFER": "65536", "CELLS": "4"})
    assert as_executed(session(runner), asked, []) == Configuration({"BUFFER": "65536"})


def test_all_at_once_and_down_to_the_default(runner: Runner) -> None:
    asked = Configuration({"BUFFER": "8192", "CELLS": "4", "RULES": "off"})
    assert as_executed(session(runner), asked, []) == DEFAULT


def test_another_value_stays(runner: Runner) -> None:
    asked = Configuration({"BUFFER": "65536", "CELLS": "8"})
    assert as_executed(session(runner), asked, []) == asked


def test_what_another_variable_needs_stays(runner: Runner) -> None:
    """TREE=1 is the library's own; RULES=on, on which it depends, is not."""
    asked = Configuration({"RULES": "on", "TREE": "1"})
    assert as_executed(session(runner), asked, []) == Configuration({"RULES": "on"})
    asked = Configuration({"RULES": "on", "TREE": "2"})
    assert as_executed(session(runner), asked, []) == asked


def test_what_the_library_lacks_is_left_out(runner: Runner) -> None:
    asked = Configuration({"BUFFER": "65536", "PLUGIN_SPEED": "2"})
    assert as_executed(session(runner), asked, []) == Configuration({"BUFFER": "65536"})
    assert as_executed(session(runner), Configuration({"PLUGIN": "1"}), []) == DEFAULT


def test_a_choice_that_also_switches_off_what_the_library_lacks_is_credited(
    runner: Runner,
) -> None:
    asked = Configuration({"PLUGIN": "0", "LEVELS": "2", "BUFFER": "65536"})
    assert as_executed(session(runner), asked, []) == asked
    basic = Configuration({"PLUGIN": "0", "LEVELS": "0"})  # what it does by itself
    assert as_executed(session(runner), basic, []) == DEFAULT
    both = Configuration({**basic, "BUFFER": "65536"})
    assert as_executed(session(runner), both, []) == Configuration({"BUFFER": "65536"})


def test_a_variable_whose_presence_changes_what_the_library_does_stays(
    runner: Runner, benchmark: SyntheticBenchmark
) -> None:
    benchmark.present = "CELLS"
    asked = Configuration({"BUFFER": "65536", "CELLS": "4"})
    assert as_executed(session(runner), asked, []) == asked


def test_nothing_is_left_out_without_traces(runner: Runner, benchmark: SyntheticBenchmark) -> None:
    benchmark.own = {}
    asked = Configuration({"BUFFER": "65536", "CELLS": "4"})
    assert as_executed(session(runner), asked, []) == asked


def test_an_ablation_goes_on_to_what_its_result_comes_to() -> None:
    both = Configuration({"BUFFER": "65536", "CELLS": "4"})
    buffer = Configuration({"BUFFER": "65536"})
    effects = tuple(VariableEffect((name,), {name: both[name]}, True, (), name) for name in both)
    ablation = Ablation(both, both, 4, None, effects)
    found = as_ablated(ablation, buffer)
    assert found.after == buffer
    assert [(e.name, e.kept) for e in found.variables] == [("BUFFER", True), ("CELLS", False)]
    assert as_ablated(ablation, both) == ablation


def test_profiles_spell_out_no_default_of_the_library(runner: Runner) -> None:
    asked = Configuration({"BUFFER": "65536", "CELLS": "4"})
    budget = replace(runner.plan.budget, trials=1)
    runner.plan = replace(runner.plan, first=(asked,), budget=budget)
    report = Campaign(runner.plan, runner, QuietReporter()).run()
    changed = [p for p in report.profiles if p.verdict is Verdict.FASTER]
    assert changed
    assert {p.configuration for p in changed} == {Configuration({"BUFFER": "65536"})}
