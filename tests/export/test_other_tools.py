"""Programs that people use already open what commtune writes: optuna-dashboard and Datasette."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import optuna
import pytest
from stored_campaigns import Made
from stores import opened_store

from commtune.commands.campaigns.results import export_study_command
from commtune.model import Outcome, Run

#: Python 3.13 and newer warn of open connections, as Optuna and Datasette leave them.
pytestmark = [
    pytest.mark.usefixtures("connections_of_others"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_DOCS = Path(__file__).parents[2] / "docs"
#: Gives the data at a path.
_Ask = Callable[[str], Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Run]]:
    """A database with a campaign that found something, and its runs."""
    file = tmp_path_factory.mktemp("tools") / "commtune.db"
    with opened_store(file) as store:
        runs = list(store.runs(Made(name="night", trials=40, blocks=12, whole=True).store(store)))
    return str(file), runs


@pytest.fixture
def dashboard(made: tuple[str, list[Run]], tmp_path: Path) -> _Ask:
    """optuna-dashboard of the exported study."""
    import optuna_dashboard  # slow, as Datasette's is

    export_study_command("night", tmp_path / "study.db", made[0])
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/study.db")
    program = optuna_dashboard.wsgi(storage)

    def ask(path: str) -> Any:
        said: list[str] = []
        environment: dict[str, Any] = {"PATH_INFO": path}
        setup_testing_defaults(environment)
        pieces = program(environment, lambda status, *_: said.append(status))
        body = b"".join(pieces)
        if hasattr(pieces, "close"):  # as servers do with files
            pieces.close()
        assert said == ["200 OK"], (path, said, body[:300])
        return json.loads(body) if path.startswith("/api/") else body.decode()

    return ask


def test_optuna_dashboard_shows_each_study_with_its_trials(
    dashboard: _Ask, made: tuple[str, list[Run]]
) -> None:
    assert "<html" in dashboard("/dashboard/")
    listed = {one["study_name"]: one for one in dashboard("/api/studies")["study_summaries"]}
    assert set(listed) == {
        f"night: allreduce, {size}" for size in ("8 B", "1 KiB", "64 KiB", "1 MiB")
    }
    shown = dashboard(f"/api/studies/{listed['night: allreduce, 1 MiB']['study_id']}")
    trials = {_run_of(one): one for one in shown["trials"]}
    assert set(trials) == {run.run_id for run in made[1]}
    for run in made[1]:
        trial = trials[run.run_id]
        assert trial["state"] == ("Complete" if run.outcome is Outcome.OK else "Fail")
        if run.outcome is Outcome.OK:
            (measured,) = [m.time_s for m in run.measurements if m.bytes == 1048576]
            assert trial["values"] == [measured]
        names = {one["name"]: one["param_external_value"] for one in trial["params"]}
        assert {name: value for name, value in names.items() if value != "None"} == dict(
            run.configuration
        )


def _run_of(trial: Mapping[str, Any]) -> str:
    return next(str(one["value"]) for one in trial["user_attrs"] if one["key"] == "run")


@pytest.fixture
def datasette(made: tuple[str, list[Run]]) -> Iterator[_Ask]:
    """Datasette of the database, which it may not write."""
    from datasette.app import Datasette

    served = Datasette([made[0]], settings={"num_sql_threads": 1})

    def ask(path: str, **parameters: str) -> Any:
        found = asyncio.run(served.client.get(path, params={"_shape": "objects", **parameters}))
        assert found.status_code == 200, found.text[:500]
        return found.json()

    yield ask


def queries() -> list[str]:
    """The example queries of the documentation, views and tables."""
    page = (_DOCS / "database.md").read_text()
    return re.findall(r"```sql\n(.*?);?\n```", page, re.DOTALL)


def test_datasette_opens_the_database_and_runs_every_example(
    datasette: Callable[..., Any], made: tuple[str, list[Run]]
) -> None:
    told = datasette("/commtune.json")
    assert {"results", "profile_evidence"} <= {one["name"] for one in told["views"]}
    shown = datasette("/commtune/runs.json", _size="max")["rows"]
    assert [one["run_id"] for one in shown] == [run.run_id for run in made[1]]
    found = {sql: datasette("/commtune.json", sql=sql)["rows"] for sql in queries()}
    assert len(found) == 5
    costs, campaigns, faster, candidates, failures = found.values()
    assert len(costs) == sum(run.outcome is Outcome.OK for run in made[1])
    assert [(one["campaign"], one["runs"]) for one in campaigns] == [("night", len(made[1]))]
    assert {one["bytes"] for one in faster} <= set(Made().sizes) and faster
    assert all(1 < one["low"] < one["high"] for one in faster)
    assert candidates and all(one["pairs"] > 1 for one in candidates)
    (crashed,) = failures
    assert crashed["outcome"] == "crashed"
    assert crashed["runs"] == sum(run.outcome is Outcome.CRASHED for run in made[1])
