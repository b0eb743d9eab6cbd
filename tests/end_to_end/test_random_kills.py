"""Controllers that are killed at random moments, wherever they make their runs."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import psutil
import pytest
from campaign_texts import TWO_NODES
from cluster_campaigns import OnCluster
from command_line import SMALL, CommandLine, Process, has_footer, wait_until
from slurm_campaigns import OnSlurm

#: Jobs with PostgreSQL only in a night: each place and each database is met beside it.
_LEFT_OUT = set() if "COMMTUNE_KILLS" in os.environ else {("jobs", "postgresql")}
_PLACES, _DATABASES = ("local", "jobs", "allocations"), ("sqlite", "postgresql")
_CAMPAIGNS = [one for one in product(_PLACES, _DATABASES) if one not in _LEFT_OUT]
#: COMMTUNE_KILLS counts the kills of all campaigns; in a night they are 1,000. Fewer than seven of
#: a campaign would leave a phase out, so they are seven at least.
_WANTED = max(7, -(-int(os.environ.get("COMMTUNE_KILLS", "40")) // len(_CAMPAIGNS)))
_ROUNDS = -(-_WANTED // 20)
_KILLS = -(-_WANTED // _ROUNDS)
_LATE_KILLS = max(2, _KILLS // 5)
_TRIALS = _KILLS // 2
#: How many more runs the controllers begin before they die, one after the other.
_RUNS = (0, 1, 0, 2, 0, 5, 0, 9)


class _InAllocation:
    """The controller in an allocation, which Slurm started."""

    def __init__(self, campaign: OnCluster) -> None:
        """Waits for it, and submits an allocation where none follows the last."""
        self._process: psutil.Process | None = None
        while not (self._process or _is_done(campaign)):
            if campaign.all_over():
                assert campaign("submit", "campaign.yaml").code == 0 or _is_done(campaign)
            try:
                self._process = psutil.Process(campaign.controller())
            except (ValueError, psutil.NoSuchProcess):  # there is none now
                time.sleep(0.1)

    def poll(self) -> int | None:
        return None if self._process and self._process.is_running() else 0

    def kill(self) -> None:
        if self._process:
            with suppress(psutil.NoSuchProcess):  # it may have come to its end
                self._process.kill()
            self._process.wait()


class _OnLoginNode:
    """The controller that a person starts."""

    def __init__(self, commtune: CommandLine) -> None:
        self._child = commtune.start("tune", "campaign.yaml")
        self.poll = self._child.poll

    def kill(self) -> None:
        self._child.kill()
        self._child.communicate()


def _is_done(commtune: CommandLine) -> bool:
    if not commtune.records():  # nor perhaps any table
        return False
    return commtune.query("SELECT finished IS NULL FROM campaigns") == [(0,)]


def _confirming(commtune: CommandLine) -> list[object]:
    if not commtune.records():
        return []
    return list(commtune.query("SELECT id FROM runs WHERE phase = 'confirm'"))


def _kill_somewhere(
    commtune: CommandLine, begin: Callable[[], Process], rng: random.Random, number: int
) -> str:
    """Kills a controller, and nobody else, at a random moment; returns the phase it was in."""
    before = len(commtune.records())
    wanted = before + _RUNS[number % len(_RUNS)]
    controller = begin()
    if number >= _KILLS - _LATE_KILLS:
        confirmed = len(_confirming(commtune))
        wait_until(lambda: len(_confirming(commtune)) > confirmed, controller)
    elif wanted > before:
        wait_until(lambda: len(commtune.records()) >= wanted, controller)
    else:
        time.sleep(rng.uniform(0, 0.7))
    time.sleep(rng.uniform(0, 0.2))
    controller.kill()
    if _is_done(commtune):
        return "done"
    if not commtune.records():
        return "start"
    return str(commtune.query("SELECT phase FROM runs ORDER BY id DESC LIMIT 1")[0][0])


def _finish_local(commtune: CommandLine) -> None:
    commtune.succeed("tune", "campaign.yaml")


def _finish_in_allocations(campaign: OnCluster) -> None:
    while not _is_done(campaign):
        wait_until(lambda: False, _InAllocation(campaign))
    campaign.until_over()


def _check_local(commtune: CommandLine) -> None:
    """Nothing is lost, doubled or left running."""
    assert set(commtune.check_stored()) <= {"ok", "interrupted"}
    good = {run_id for (run_id,) in commtune.query("SELECT run_id FROM runs WHERE outcome = 'ok'")}
    assert good == {file.stem for file in commtune.records() if has_footer(file)}
    assert commtune.query("SELECT * FROM locks") == []
    assert commtune.query("SELECT finished IS NULL FROM campaigns") == [(0,)]
    assert commtune.left_over() == {}


def _check_trials(commtune: CommandLine) -> None:
    """The search made its trials, each with a run, in spite of the kills."""
    # A block of the ablation that was cut short need not be wanted again.
    without_run = commtune.query(
        "SELECT number FROM trials WHERE origin != 'ablated' AND id NOT IN "
        "(SELECT trial_id FROM runs WHERE outcome = 'ok')"
    )
    assert without_run == []
    searched = "SELECT count(*) FROM trials WHERE origin NOT IN ('ablated', 'confirm')"
    assert commtune.query(searched) == [(_TRIALS + 1,)]


@pytest.mark.parametrize("round_", range(_ROUNDS))
def test_killed_at_random_moments_nothing_is_lost_or_doubled(
    anywhere: tuple[str, CommandLine], round_: int
) -> None:
    (place, commtune), rng = anywhere, random.Random(20 + round_)
    # Confirmation is long enough not to be over before the last kill.
    text = SMALL if place == "local" else TWO_NODES
    text = re.sub("trials: [0-9]+", f"trials: {_TRIALS}", text)
    # Whichever database there is, a run is the same: beside one of the two, it is without MPI. And
    # jobs make the same runs as allocations.
    without_mpi = "COMMTUNE_DB" in commtune.extra or place == "jobs"
    write = commtune.write_without_mpi if without_mpi else commtune.write
    write(text.replace("confirmation: 1s", f"confirmation: {0.75 * _KILLS:g}s"))

    def begin() -> Process:
        # Sometimes what the last one left is stopped: it is found in the middle. In jobs, that
        # would be a benchmark that hangs.
        if place == "local" and rng.random() < 0.4 and commtune.records():
            commtune.stop_left_over()
        if isinstance(commtune, OnCluster) and place == "allocations":
            return _InAllocation(commtune)
        return _OnLoginNode(commtune)

    phases: list[str] = []
    while len(phases) < _KILLS and "done" not in phases:
        phases.append(_kill_somewhere(commtune, begin, rng, len(phases)))
    print(f"{len(phases)} kills")
    assert "search" in phases
    # One block of a slow machine may take all the time of the confirmation.
    assert {"confirm", "done"} & set(phases)

    if isinstance(commtune, OnCluster) and place == "allocations":
        _finish_in_allocations(commtune)
    else:
        _finish_local(commtune)
    if isinstance(commtune, OnCluster):
        commtune.check_whole()
    else:
        _check_local(commtune)
    _check_trials(commtune)


@pytest.fixture(params=_CAMPAIGNS, ids="-".join)
def anywhere(
    request: pytest.FixtureRequest,
    executable: Path,  # noqa: ARG001  # built before
    tmp_path: Path,
) -> tuple[str, CommandLine]:
    """Where runs are made, and the command line over each kind of database."""
    place, database = request.param
    commtune = CommandLine(tmp_path)
    if place != "local":
        commtune = OnSlurm.made(request.getfixturevalue("isolated_slurm"), tmp_path)
    if database == "postgresql":
        commtune.extra["COMMTUNE_DB"] = request.getfixturevalue("new_postgresql_url")
    return place, commtune
