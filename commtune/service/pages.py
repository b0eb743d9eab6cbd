"""Pages for people, made here of what is stored; all text of it is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

import jinja2

from commtune import __version__, wording
from commtune import formatting as text
from commtune.app.campaigns import stored
from commtune.app.campaigns.listing import find_run, list_runs, list_systems
from commtune.app.campaigns.progress import read_progress
from commtune.app.profiles.answers import answer_question
from commtune.app.profiles.reporting import render_campaign_report
from commtune.export.formats import FORMATS
from commtune.model import Interval, Operation, PointEvidence, Profile, Verdict
from commtune.service import live
from commtune.service import parameters as given
from commtune.service.replies import REPORT_POLICY, Problem, Reply
from commtune.tuner.outcome.displayed_points import displayed_points

_RUNS_A_PAGE = 100
#: A form of which nothing is filled in.
_NOT_ASKED = {one.name: "" for one in given.BEST}
_HTML = "text/html; charset=utf-8"


def _file(package: str, name: str, kind: str) -> Reply:
    return Reply(resources.files(package).joinpath(name).read_bytes(), kind)


#: All files that are served as they are: from the package, and by these names only.
STATIC = {
    "style.css": _file("commtune.report", "templates/style.css", "text/css; charset=utf-8"),
    "service.css": _file("commtune.service", "static/service.css", "text/css; charset=utf-8"),
    "icon.svg": _file("commtune.service", "static/icon.svg", "image/svg+xml"),
    "live.js": _file("commtune.service", "static/live.js", "text/javascript; charset=utf-8"),
}


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        show: makes it of the database, the prefix of all links, the path's parts and the query.
        is_slow: takes seconds; only one such is made at a time.
    """

    path: str
    show: Callable[[str, str, Mapping[str, str], Sequence[tuple[str, str]]], Reply]
    is_slow: bool = False


def _render(template: str, prefix: str, status: int = 200, **values: Any) -> Reply:
    made = _environment().get_template(template).render(prefix=prefix, **values)
    return Reply(made.encode("utf-8", "replace"), _HTML, status)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("commtune.service"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Slashes too: a name is one part of a path.
    environment.filters["part"] = lambda name: quote(str(name), safe="", errors="replace")
    environment.globals |= {"version": __version__, "log2": math.log2}
    return environment


def show_problem(found: Problem, prefix: str) -> Reply:
    """What went wrong, as a page."""
    page = _render("problem.html", prefix, found.status, problem=found)
    headers = {"www-authenticate": "Bearer"} if found.status == 401 else {}
    headers |= {"allow": "GET, HEAD"} if found.status == 405 else {}
    return Reply(page.body, page.kind, page.status, headers)


def _overview(db: str, prefix: str, _: Mapping[str, str], query: Sequence[Any]) -> Reply:
    given.read_parameters((), query)
    campaigns = [one for one, _ in stored.list_campaigns(db, ask_slurm=False)]
    return _render(
        "overview.html",
        prefix,
        rows=[(one, stored.describe_best_gain(one.best)) for one in campaigns],
        asked=_NOT_ASKED,
        operations=list(Operation),
        wall=text.format_wall_time,
        systems=_systems(db) if campaigns else [],
    )


def _systems(db: str) -> list[str]:
    return list(dict.fromkeys(system.name for system, _ in list_systems(db)))


def _best(db: str, prefix: str, _: Mapping[str, str], query: Sequence[Any]) -> Reply:
    asked = given.read_parameters(given.BEST, query)
    filters = {one.name: asked[one.name] for one in given.FILTERS}
    operation = Operation(asked["operation"])
    size = asked["bytes"]
    found = None
    if size is not None:
        found = answer_question(operation, size, filters, stack=asked["stack"], db=db)
    return _render(
        "best.html",
        prefix,
        asked=_NOT_ASKED | dict(query),
        found=found,
        operations=list(Operation),
        systems=_systems(db),
        points=[] if not found or not found["best"] else _answer_rows(found["best"]),
        formats=_formats(),
    )


def _answer_rows(best: Mapping[str, Any]) -> list[dict[str, Any]]:
    points = [PointEvidence(**{**one, "gain": Interval(**one["gain"])}) for one in best["points"]]
    return [_point_row(point) for point in displayed_points(points)]


def _formats() -> list[str]:
    return [one.name for one in FORMATS]


def _campaign(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    given.read_parameters((), query)
    name = path["campaign"]
    progress = read_progress(name, db)
    listed = stored.list_profiles(name, db)
    return _render(
        "campaign.html",
        prefix,
        campaign=progress.summary,
        live=live.describe_live(progress),
        profiles=[_profile(stored.find_profile(str(one.id), db)) for one in listed],
        formats=_formats(),
    )


def _profile(answer: stored.ProfileAnswer) -> dict[str, Any]:
    profile = answer.profile
    level = wording.format_simultaneous(answer.level) if answer.level else "interval"
    return {
        "id": answer.id,
        "name": profile.name,
        "operation": profile.operation,
        "sizes": text.format_sizes(profile.bytes_low, profile.bytes_high),
        "ranks": text.format_ranks(profile.ranks, profile.nodes),
        "verdict": wording.describe_verdict(profile.verdict),
        "settings": {**answer.pinned, **profile.configuration},
        "note": profile.note,
        "level": level,
        "points": [_point_row(point) for point in _inside(profile)],
        "is_likely": profile.verdict is Verdict.LIKELY,
        "is_exported": profile.verdict in (Verdict.FASTER, Verdict.LIKELY)
        and not profile.simulated
        and not profile.configuration.is_default,
        "simulated": profile.simulated,
    }


def _inside(profile: Profile) -> list[PointEvidence]:
    inside = [p for p in profile.points if profile.bytes_low <= p.bytes <= profile.bytes_high]
    return list(displayed_points(inside))


def _point_row(point: PointEvidence) -> dict[str, Any]:
    size, default, tuned, speedup, pairs = wording.point_cells(point)
    return {
        "size": size,
        "default": default,
        "tuned": tuned,
        "speedup": speedup,
        "pairs": pairs,
        "state": point.speed,
        "verdict": wording.describe_verdict(point.verdict),
        "low": point.gain.low,
        "high": point.gain.high,
        "ratio": point.gain.ratio,
    }


def _runs(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    asked = given.read_parameters(given.RUNS, query)
    limit = asked["limit"] or _RUNS_A_PAGE
    page = list_runs(
        path["campaign"],
        db,
        before=asked["before"],
        limit=limit,
        phase=asked["phase"],
        outcome=asked["outcome"],
    )
    return _render(
        "runs.html",
        prefix,
        campaign=path["campaign"],
        runs=[live.run_cells(one) for one in page],
        asked=asked,
        phases=given.PHASE.schema["enum"],
        outcomes=given.OUTCOME.schema["enum"],
        following=page[-1].id if len(page) == limit else None,
    )


def _run(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    given.read_parameters((), query)
    found = find_run(path["campaign"], path["run"], db)
    return _render(
        "run.html", prefix, campaign=path["campaign"], run=found, cells=live.run_cells(found)
    )


def _report(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    del prefix
    given.read_parameters((), query)
    page = render_campaign_report(path["campaign"], db)
    policy = {"content-security-policy": REPORT_POLICY}
    return Reply(page.encode("utf-8", "replace"), _HTML, headers=policy)


PAGES = (
    Page("/", _overview),
    Page("/best", _best),
    Page("/campaigns/{campaign}", _campaign),
    Page("/campaigns/{campaign}/report", _report, is_slow=True),
    Page("/campaigns/{campaign}/runs", _runs),
    Page("/campaigns/{campaign}/runs/{run}", _run),
)
