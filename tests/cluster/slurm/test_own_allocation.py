"""Times of the allocation that we run in, by the clock of Slurm, not of the node."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from made_files import write_script
from slurm_cluster import Cluster

from commtune.cluster.slurm.allocation import find_allocation, topology_of

_BEGAN, _ENDS = 1_800_000_000.0, 1_800_003_600.0
_JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
_TOLD = {"SLURM_JOB_START_TIME": f"{_BEGAN:.0f}", "SLURM_JOB_END_TIME": f"{_ENDS:.0f}"}


@pytest.mark.parametrize("ahead_s", [-5000.0, 5000.0])
def test_slurm_tells_how_far_the_nodes_clock_is_off(
    slurm: Cluster, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    asked_at = time.time()
    own = find_allocation(_JOB | _TOLD, lambda: time.time() + ahead_s)
    assert own is not None
    # Slurm says whole seconds.
    assert ahead_s <= own.clock_ahead_s <= ahead_s + (time.time() - asked_at) + 1


@pytest.mark.parametrize("said", ["echo sdiag output at Thu Nov 26", "exit 1", ""])
def test_where_slurm_does_not_tell_its_time_the_nodes_clock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    if said:
        write_script(tmp_path / "sdiag", said)
    monkeypatch.setenv("PATH", str(tmp_path))
    own = find_allocation(_JOB | _TOLD, lambda: _BEGAN + 60)
    assert own is not None
    assert (own.began_at, own.ends_at, own.clock_ahead_s) == (_BEGAN, _ENDS, 0)
    assert own.nodes == ("n1", "n2")


def test_without_commands_of_slurm_only_its_variables_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_TOPOLOGY_ADDR_PATTERN", "switch.node")
    own = find_allocation(_JOB, lambda: _BEGAN + 60)
    assert own is not None
    assert (own.began_at, own.ends_at) == (_BEGAN + 60, None)
    assert topology_of(own, {}) == {}
