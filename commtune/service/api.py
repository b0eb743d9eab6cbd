"""The HTTP API, version 1: its endpoints, their parameters, and the functions that answer them.

The answers are those of ``best --json``, ``status --json`` and ``export``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from commtune import __version__
from commtune.app.campaigns import stored
from commtune.app.campaigns.progress import CampaignProgress, read_progress
from commtune.app.campaigns.results import read_results_page
from commtune.app.profiles.answers import (
    MOST_ANSWERS,
    answer_question,
    not_measured,
    size_table,
    size_table_data,
)
from commtune.app.profiles.use import export_profile, require_strength
from commtune.db.settings import node_hours_budget
from commtune.errors import NoAnswer, UnknownName
from commtune.export.formats import FORMATS
from commtune.model import Operation
from commtune.service import parameters as given
from commtune.service.answer_schemas import BEST_SCHEMA
from commtune.service.parameters import Parameter
from commtune.service.replies import Reply, json_reply

PREFIX = "/api/v1"

_Values = Mapping[str, Any]
_LIST: Mapping[str, Any] = {"type": "array", "items": {"type": "object"}}


@dataclass(frozen=True)
class Question:
    """An endpoint of the API."""

    path: str  # the path below the API's prefix; names in braces are path parameters
    summary: str
    #: Returns the answer, from the database and the values of all parameters.
    answer: Callable[[str, _Values], Reply]
    parameters: Sequence[Parameter] = ()
    #: The OpenAPI schema of the answer.
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    kind: str = "application/json"  # the answer's media type
    #: Whether the answer depends on the database alone. The state of a campaign doesn't: its
    #: controller may have died.
    is_stored: bool = True

    @property
    def in_path(self) -> list[Parameter]:
        """The path parameters."""
        return [one for name, one in _IN_PATH.items() if f"{{{name}}}" in self.path]


CAMPAIGN_IN_PATH = given.text_parameter("campaign", "a campaign's name")
_IN_PATH = {
    "campaign": CAMPAIGN_IN_PATH,
    "run": given.text_parameter("run", "a run's name (run_id)"),
    "number": given.NUMBER,
    "format": given.word_parameter("format", "the file's form", list(FORMATS)),
}


def _systems(db: str, _: _Values) -> Reply:
    return json_reply([asdict(one) | {"campaigns": n} for one, n in stored.list_systems(db)])


def _stacks(db: str, _: _Values) -> Reply:
    rows = [asdict(one) | {"campaigns": n} for one, n in stored.list_stacks(db)]
    return json_reply([{k: v for k, v in row.items() if k != "formerly"} for row in rows])


def _campaigns(db: str, _: _Values) -> Reply:
    return json_reply([stored.summary_data(one, db) for one in stored.list_campaigns(db)])


def _campaign(db: str, values: _Values) -> Reply:
    found = read_progress(values["campaign"], db)
    return json_reply(_progress_data(found, db))


def _progress_data(found: CampaignProgress, db: str) -> dict[str, Any]:
    """Returns a campaign's state as JSON data, with its phases and their remaining budgets."""
    budget = node_hours_budget(found.summary.settings)
    hours_left = None if budget is None else max(0.0, budget - found.summary.node_hours)
    phases = [
        asdict(one)
        | {"left_s": None if one.budget_s is None else max(0.0, one.budget_s - one.measured_s)}
        for one in found.phases
    ]
    size, ratio = found.single_run or (None, None)
    return {
        **stored.summary_data(found.summary, db),
        "phase": found.phase,
        "phases": phases,
        "node_hours_left": hours_left,
        "runs_a_minute": found.runs_a_minute,
        "best_single_run": {"bytes": size, "ratio": ratio, "confirmed": False},
    }


def _runs(db: str, values: _Values) -> Reply:
    limit = values["limit"] or given.ROWS_A_PAGE
    asked = {one.name: values[one.name] for one in given.RUNS}
    page, following = stored.list_runs(db, values["campaign"], **asked | {"limit": limit})
    shown = [{k: v for k, v in asdict(one).items() if k != "output_tail"} for one in page]
    return json_reply({"runs": shown, "next": following})


def _trials(db: str, values: _Values) -> Reply:
    limit = values["limit"] or given.ROWS_A_PAGE
    first = values["first"] or 0
    page, following = stored.list_trials(db, values["campaign"], first=first, limit=limit)
    return json_reply({"trials": page, "next": following})


def _run(db: str, values: _Values) -> Reply:
    return json_reply(asdict(stored.find_run(values["campaign"], values["run"], db)))


def _profiles(db: str, values: _Values) -> Reply:
    found = stored.find_profiles(db, **values)
    return json_reply([asdict(one) for one in found])


def _results(db: str, values: _Values) -> Reply:
    asked = {name: values[name] for name in ("after", "newest", "limit")}
    page = {name: value for name, value in asked.items() if value is not None}
    return json_reply(vars(read_results_page(db, values["campaign"], **page)))


def _profile(db: str, values: _Values) -> Reply:
    found = stored.load_profile(db, str(values.get("number") or values["name"]))
    return json_reply(stored.profile_data(found))


def _export(db: str, values: _Values) -> Reply:
    found = stored.load_profile(db, str(values["number"]))
    require_strength([found], db, **{one.name: values[one.name] for one in given.LEAST})
    said = export_profile(
        found,
        values["format"],
        None,
        allow_unguarded=values["allow_unguarded"] is not None,
        accept_likely=values["accept"] is not None,
    )
    # A name for the download, of characters that are valid in all file systems.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", found.profile.name)[:100] or "profile"
    shown = {"content-disposition": f'attachment; filename="{name}.{values["format"]}"'}
    return Reply(said.encode(), "text/plain; charset=utf-8", headers=shown)


def _best(db: str, values: _Values) -> Reply:
    operation = Operation(values["operation"])
    filters = {one.name: values[one.name] for one in given.FILTERS}
    size, stack = values["bytes"], values["stack"]
    if size is not None:
        explained = 1 if values["others"] is None else MOST_ANSWERS
        told = answer_question(operation, size, filters, stack=stack, db=db, explained=explained)
        return json_reply(told)
    try:
        rows = size_table_data(size_table(operation, filters, db))
    except NoAnswer as nothing:
        return json_reply(not_measured(nothing) | {"sizes": []})
    return json_reply({"message": "", "hint": "", "sizes": rows})


def _health(db: str, _: _Values) -> Reply:
    try:
        stored.list_systems(db)
        state = "ok"
    except NoAnswer:
        state = "empty"
    return json_reply({"status": state, "version": __version__})


QUESTIONS = (
    Question("/systems", "Machines that campaigns measured on", _systems, schema=_LIST),
    Question("/stacks", "Communication software that campaigns measured", _stacks, schema=_LIST),
    Question(
        "/campaigns",
        "All campaigns: state, counts, best gain",
        _campaigns,
        schema=_LIST,
        is_stored=False,
    ),
    Question(
        "/campaigns/{campaign}",
        "A campaign: state, progress, what is left of budgets",
        _campaign,
        is_stored=False,
    ),
    Question(
        "/campaigns/{campaign}/trials",
        "Its configurations, a page at a time; `next` is the `first` of the next page",
        _trials,
        given.TRIALS,
    ),
    Question(
        "/campaigns/{campaign}/runs",
        "Its runs, newest first, a page at a time; `next` is the `before` of the next page",
        _runs,
        given.RUNS,
    ),
    Question(
        "/campaigns/{campaign}/results",
        "Its measurements, a page of runs at a time; `next` is the `after` of the next page",
        _results,
        given.RESULTS,
    ),
    Question("/campaigns/{campaign}/runs/{run}", "A run with the end of its output", _run),
    Question(
        "/profiles",
        "Profiles, newest first",
        _profiles,
        (given.CAMPAIGN, *given.LEAST),
        schema=_LIST,
    ),
    Question("/profiles/{number}", "A profile with all its evidence", _profile),
    Question("/profile", "The same, by its name", _profile, (given.NAME,)),
    Question(
        "/profiles/{number}/export/{format}",
        "A profile as a file to load",
        _export,
        given.EXPORT,
        schema={"type": "string"},
        kind="text/plain",
    ),
    Question(
        "/best",
        "The best configuration for an operation and a size, as a code with its evidence",
        _best,
        given.BEST,
        schema=BEST_SCHEMA,
    ),
    Question(
        "/health", "Whether the database can be read; needs no token", _health, is_stored=False
    ),
)


def answer_request(
    question: Question, db: str, path: _Values, query: Sequence[tuple[str, str]]
) -> Reply:
    """Returns an endpoint's answer to a request; a CommtuneError for none or a wrong parameter."""
    values = given.read_parameters(question.parameters, query)
    parts = given.read_parameters(question.in_path, list(path.items()))
    if None in parts.values():
        raise UnknownName("a part of the path is empty", hint=f"{PREFIX}{question.path}")
    return question.answer(db, {**values, **parts})
