"""Campaigns as studies: Optuna reads back what was measured."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import get_native_id

import optuna
import pytest
from optuna.trial import TrialState
from stored_campaigns import Made
from stores import opened_store

from commtune.commands.campaigns.results import export_study_command
from commtune.errors import EnvironmentFault, NoAnswer, UserError
from commtune.model import Outcome, Run

#: Python 3.13 and newer warn of open connections, as Optuna and Datasette leave them.
pytestmark = [
    pytest.mark.usefixtures("connections_of_others"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def stored(folder: Path, **changes: object) -> tuple[str, list[Run]]:
    """A database with a campaign, and its runs."""
    with opened_store(folder / "commtune.db") as store:
        number = Made(**{"name": "night", "trials": 16, "blocks": 2} | changes).store(store)  # type: ignore[arg-type]
        runs = list(store.runs(number))
    return str(folder / "commtune.db"), runs


def study(file: Path, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=f"sqlite:///{file}")


def test_optuna_reads_the_numbers_that_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, runs = stored(tmp_path)
    file = tmp_path / "study.db"
    export_study_command("night", file, db)
    assert f"{4 * len(runs)} trials" in capsys.readouterr().out
    for size, name in ((8, "8 B"), (1048576, "1 MiB")):
        made = study(file, f"night: allreduce, {name}")
        trials = {trial.user_attrs["run"]: trial for trial in made.trials}
        assert list(trials) == [run.run_id for run in runs]
        for run in runs:
            trial = trials[run.run_id]
            is_good = run.outcome is Outcome.OK
            assert trial.state is (TrialState.COMPLETE if is_good else TrialState.FAIL)
            measured = [m.time_s for m in run.measurements if m.bytes == size]
            assert trial.values == (measured if is_good else None)
            set_here = {name: v for name, v in trial.params.items() if v is not None}
            assert set_here == dict(run.configuration)
            assert trial.user_attrs["phase"] == run.phase
            assert trial.user_attrs["outcome"] == run.outcome
            assert trial.user_attrs.get("message", "") == run.detail
            started = datetime.fromtimestamp(run.started_at)
            assert trial.datetime_start is not None and trial.duration is not None
            assert abs((trial.datetime_start - started).total_seconds()) < 0.01
            assert trial.duration.total_seconds() == pytest.approx(run.wall_s, abs=0.01)
        assert made.metric_names == ["median_s"]
        assert made.user_attrs["bytes"] == size
        good = [
            m.time_s
            for r in runs
            if r.outcome is Outcome.OK
            for m in r.measurements
            if m.bytes == size
        ]
        assert made.best_value == min(good)
    assert Counter(run.outcome for run in runs).keys() == {Outcome.OK, Outcome.CRASHED}


def test_a_study_goes_on_in_optuna(tmp_path: Path) -> None:
    db, _ = stored(tmp_path, simulated=True)
    file = tmp_path / "study.db"
    export_study_command("night", file, db)
    made = study(file, "night: allreduce, 8 B (simulated or replayed)")
    before = len(made.trials)
    trial = made.ask({name: made.trials[0].distributions[name] for name in made.trials[0].params})
    made.tell(trial, 1e-6)
    assert len(study(file, made.study_name).trials) == before + 1


def test_an_older_file_is_replaced_and_a_failure_keeps_it(tmp_path: Path) -> None:
    db, _ = stored(tmp_path)
    file = tmp_path / "study%20?a=1{b}.db"  # no marks of a URL
    file.write_text("of yesterday")
    (tmp_path / f"{file.name}.{get_native_id()}.part").write_text("of somebody who was killed")
    with pytest.raises(UserError):
        export_study_command("no such", file, db)
    assert file.read_text() == "of yesterday"
    export_study_command("night", file, db)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM studies").fetchone() == (4,)
    assert not list(tmp_path.glob("study.db")) and not list(tmp_path.glob("study*.part"))
    with pytest.raises(UserError, match="can't write"):
        export_study_command("night", Path("/dev/null"), db)
    with pytest.raises(EnvironmentFault) as full:
        export_study_command("night", Path("/dev/full"), db)
    assert full.value.message == "can't write /dev/full: database or disk is full"
    assert full.value.hint == "free some space, or name another place"
    with pytest.raises(UserError, match="can't write") as raised:
        export_study_command("night", tmp_path / "no such" / "study.db", db)
    assert "mkdir -p" in raised.value.hint


def test_a_campaign_without_measurements_has_no_study(tmp_path: Path) -> None:
    db, _ = stored(tmp_path, sizes=())
    with pytest.raises(NoAnswer):
        export_study_command("night", tmp_path / "study.db", db)
