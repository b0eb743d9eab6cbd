"""The limit on trials is the search's: what later phases make does not count."""

from __future__ import annotations

from pathlib import Path

import pytest
from held_campaigns import hold
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Budget, Plan
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.documents.yaml_document import parse_document
from commtune.model import DEFAULT, Configuration, Operation, Phase, Workload
from commtune.spaces.loading import build_space
from commtune.tuner.execution.runner import Runner

SPACE = """
space: 1
name: made-up
version: 1
library: made-up
parameters:
  - {name: BUFFER, kind: power-of-two, range: [1024, 65536], source: test}
"""


def truth(configuration: Configuration, size: int) -> float:
    del configuration  # none makes a difference
    return 1e-6 + size / 5e9


@pytest.mark.parametrize("phase", [Phase.ABLATE, Phase.CONFIRM, Phase.GUARD, Phase.VERIFY])
def test_what_later_phases_made_is_no_trial_of_the_search(tmp_path: Path, phase: Phase) -> None:
    database = open_database(f"sqlite:///{tmp_path}/test.db")
    benchmark = SyntheticBenchmark(truth, VirtualClock())
    plan = Plan(
        name="test",
        space=build_space(parse_document(SPACE)),
        workload=Workload(Operation.ALLREDUCE, (8, 65536)),
        budget=Budget(search_s=30, ablation_s=1, confirmation_s=1, trials=2),
    )
    store = Store(database)
    campaign = hold(store, plan)
    first = Runner(plan, campaign, benchmark, store, clock=benchmark.clock)
    first.new_trial(DEFAULT, "baseline")
    first.new_trial(Configuration({"BUFFER": "2048"}), "sampler")
    first.plan_block([DEFAULT, Configuration({"BUFFER": "65536"})], phase)

    later = Runner(plan, campaign, benchmark, store, clock=benchmark.clock)
    later.load()

    assert len(later.trials) == 3
    assert (first.searched, later.searched) == (1, 1)
    database.close()
