"""A real campaign through the Python API, as a notebook would make it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine
from step_program import ONE_RANK, write_one_rank

import commtune as ct
from commtune.errors import UserError


@pytest.fixture
def notebook(
    executable: Path,  # noqa: ARG001  # built before
    shared_cache: None,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with a campaign file, a benchmark that is built, and data of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    # All four modes are tried.
    write_one_rank(CommandLine(tmp_path), campaign=ONE_RANK.replace("trials: 3", "trials: 4"))
    return tmp_path


@pytest.mark.slow
def test_a_small_campaign_is_tuned_and_looked_at(notebook: Path) -> None:
    said: list[str] = []
    with ct.open_store(notebook / "results.db") as store:
        result = ct.tune("campaign.yaml", store=store, on_progress=said.append)
        assert {row["bytes"] for row in result.rows()} == {1}
        assert not any(profile.simulated for profile in result.profiles)
        best = store.best("own:step", "1", backend="command")
        assert (best.campaign, best.verdict) == ("small", "faster")
        best.export("tuned.sh")
        assert "export MYLIB_MODE=" in (notebook / "tuned.sh").read_text()
        check = ct.verify(best, store=store, time="1s")
        assert check.finding in ("holds", "undecided")
        assert check.rows()[0]["slow_runs"] == check.evidence.verification.slow_runs
        with store.database.write() as connection:
            later = "UPDATE runs SET started_at = started_at + 7200 WHERE phase = 'verify'"
            connection.exec_driver_sql(later)
        spread = ct.compare("default", best, store=store, time="1s").evidence.spread
        assert spread.sessions == 1  # so `verify` would allow for it, too
    assert any(line.startswith("search: ") for line in said)


@pytest.mark.slow
def test_two_configurations_are_compared(notebook: Path) -> None:
    assert notebook
    found = ct.compare(
        "default", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=ring",
        time="1s", ranks=2, sizes=(8, 65536), mpi="wheel:mpich",
    )  # fmt: skip
    assert {row["bytes"] for row in found.rows()} == {8, 65536}


@pytest.mark.parametrize("time", ["long", "0s", 0, -1.0, float("nan")])
def test_a_time_that_is_none_or_not_above_0_is_refused(time: float | str) -> None:
    with pytest.raises(UserError, match=f"time={time!r}: "):
        ct.compare("default", time=time)
