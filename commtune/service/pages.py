"""The web pages, which are rendered from the database; all stored text is escaped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from commtune import formatting as text
from commtune import wording
from commtune.app.campaigns import stored
from commtune.app.campaigns.progress import read_progress
from commtune.app.measure.past_verifications import read_verifications
from commtune.app.profiles.answers import answer_question
from commtune.app.profiles.reporting import render_campaign_report
from commtune.app.profiles.use import list_usable_formats
from commtune.errors import UserError
from commtune.model import Interval, Operation, Outcome, Phase, PointEvidence, Profile, Verdict
from commtune.service import live
from commtune.service import parameters as given
from commtune.service.compare import show_comparison
from commtune.service.rendering import HTML, evidence_table, is_shown, point_rows, render_page
from commtune.service.replies import Reply

#: The values of empty forms.
_NOT_ASKED = {one.name: "" for one in given.BEST}
_NOT_ZOOMED = {one.name: "" for one in given.ZOOM}
#: The report has inline style, and no script.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-same-origin"
)


def _file(package: str, name: str, kind: str) -> Reply:
    return Reply(resources.files(package).joinpath(name).read_bytes(), kind)


#: The static files, all from the package.
STATIC = {
    "style.css": _file("commtune.report", "templates/style.css", "text/css; charset=utf-8"),
    "service.css": _file("commtune.service", "static/service.css", "text/css; charset=utf-8"),
    "icon.svg": _file("commtune.service", "static/icon.svg", "image/svg+xml"),
    "live.js": _file("commtune.service", "static/live.js", "text/javascript; charset=utf-8"),
}


@dataclass(frozen=True)
class Page:
    """A web page."""

    path: str
    #: Renders it, from the database, the prefix of links, the path's parts and the query.
    show: Callable[..., Reply]
    #: Whether rendering takes seconds; only one such page is rendered at a time.
    is_slow: bool = False
    is_stored: bool = True  # whether it depends on the database alone, as in ``api.Question``
    #: Whether ``show`` takes ``may_cancel``: whether this user may end campaigns.
    has_control: bool = False


def _overview(db: str, prefix: str, _: Mapping[str, str], query: Sequence[Any]) -> Reply:
    given.read_parameters((), query)
    campaigns = stored.list_campaigns(db)
    return render_page(
        "overview.html",
        prefix,
        rows=[(one, stored.describe_best_gain(one)) for one in campaigns],
        asked=_NOT_ASKED,
        operations=list(Operation),
        wall=text.format_wall_time,
        systems=_systems(db) if campaigns else [],
    )


def _systems(db: str) -> list[str]:
    return list(dict.fromkeys(system.name for system, _ in stored.list_systems(db)))


def _best(db: str, prefix: str, _: Mapping[str, str], query: Sequence[Any]) -> Reply:
    asked = given.read_parameters(given.BEST, query)
    filters = {one.name: asked[one.name] for one in given.FILTERS}
    operation = Operation(asked["operation"])
    size = asked["bytes"]
    found, points, formats, interval = None, list[PointEvidence](), list[str](), ""
    if size is not None:
        found = answer_question(operation, size, filters, stack=asked["stack"], db=db)
        if best := found["best"]:
            interval = wording.format_simultaneous(best["simultaneous_level"], best["level"])
            for one in best["points"]:
                points.append(PointEvidence(**{**one, "gain": Interval(**one["gain"])}))
        if found["environment"]:
            formats = list_usable_formats(stored.load_profile(db, str(found["best"]["id"])))
    return render_page(
        "best.html",
        prefix,
        asked=_NOT_ASKED | dict(query),
        found=found,
        operations=list(Operation),
        systems=_systems(db),
        table=evidence_table(point_rows(points)),
        interval=interval,
        formats=formats,
    )


def _campaign(
    db: str,
    prefix: str,
    path: Mapping[str, str],
    query: Sequence[Any],
    *,
    may_cancel: bool = False,
) -> Reply:
    zoom = given.read_parameters(given.ZOOM, query)
    name = path["campaign"]
    progress = read_progress(name, db)
    listed = stored.find_profiles(db, name)
    page = render_page(
        "campaign.html",
        prefix,
        campaign=progress.summary,
        live=live.describe_live(progress),
        profiles=[_profile(stored.load_profile(db, str(one.id)), zoom) for one in listed],
        asked=_NOT_ZOOMED | dict(query),
        may_cancel=may_cancel,
    )
    # With "no-referrer", browsers hide the Origin of a form, which refuse_control checks.
    return replace(page, headers={"referrer-policy": "same-origin"}) if may_cancel else page


def _show_profile(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    zoom = given.read_parameters(given.ZOOM, query)
    answer = stored.load_profile(db, str(given.NUMBER.read(path["number"])))
    again, nothing = [], ""
    try:
        again = read_verifications(str(answer.id), db)
    except UserError as refused:
        nothing = refused.message
    rows = point_rows(_inside(answer.profile, zoom), f"{_day(answer.created)} (profile)")
    for one in again:
        rows += point_rows(_inside(answer.profile, zoom, one.points), _day(one.began_at))
    return render_page(
        "profile.html",
        prefix,
        profile=_profile(answer, zoom),
        campaign=answer.campaign,
        name=answer.reference,
        made=_day(answer.created),
        where=f"{answer.system.name}; {answer.stack.text}",
        again=[
            (_day(one.began_at), wording.format_finding(one.record.finding), one) for one in again
        ],
        nothing=nothing,
        table=evidence_table(rows),
        asked=_NOT_ZOOMED | dict(query),
    )


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def _profile(answer: stored.ProfileAnswer, zoom: Mapping[str, Any]) -> dict[str, Any]:
    profile = answer.profile
    level = wording.format_simultaneous(answer.level, profile.level)
    return {
        "id": answer.id,
        "name": profile.name,
        "operation": profile.operation,
        "sizes": text.format_sizes(profile.bytes_low, profile.bytes_high),
        "ranks": text.format_ranks(profile.ranks, profile.nodes),
        "verdict": wording.describe_verdict(profile.verdict),
        "settings": {**answer.pinned, **profile.configuration},
        "note": "; ".join(
            filter(None, (text.describe_conditions(profile.conditions), profile.note))
        ),
        "strength": wording.describe_strength(answer.strength),
        "level": level,
        "table": evidence_table(point_rows(_inside(profile, zoom))),
        "variables": profile.contributions,
        "is_likely": profile.verdict is Verdict.LIKELY,
        "formats": list_usable_formats(answer),
        "simulated": profile.simulated,
    }


def _inside(
    profile: Profile, zoom: Mapping[str, Any], points: Sequence[PointEvidence] | None = None
) -> list[PointEvidence]:
    """Returns the points of a profile, or the given ones, in its range and in ``zoom``."""
    return [
        point
        for point in (profile.points if points is None else points)
        if profile.bytes_low <= point.bytes <= profile.bytes_high and is_shown(point.bytes, zoom)
    ]


def _runs(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    asked = given.read_parameters(given.RUNS, query)
    limit = asked["limit"] or given.ROWS_A_PAGE
    page, following = stored.list_runs(db, path["campaign"], **asked | {"limit": limit})
    return render_page(
        "runs.html",
        prefix,
        campaign=path["campaign"],
        runs=[live.run_cells(one) for one in page],
        asked=asked,
        phases=list(Phase),
        outcomes=list(Outcome),
        following=following,
    )


def _run(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    given.read_parameters((), query)
    found = stored.find_run(path["campaign"], path["run"], db)
    return render_page(
        "run.html", prefix, campaign=path["campaign"], run=found, cells=live.run_cells(found)
    )


def _report(db: str, prefix: str, path: Mapping[str, str], query: Sequence[Any]) -> Reply:
    del prefix
    given.read_parameters((), query)
    page = render_campaign_report(path["campaign"], db)
    policy = {"content-security-policy": _REPORT_POLICY}
    return Reply(page.encode("utf-8", "replace"), HTML, headers=policy)


PAGES = (
    Page("/", _overview, is_stored=False),
    Page("/best", _best),
    Page("/compare", show_comparison),
    Page("/campaigns/{campaign}", _campaign, is_stored=False, has_control=True),
    Page("/campaigns/{campaign}/report", _report, is_slow=True),
    Page("/campaigns/{campaign}/runs", _runs),
    Page("/campaigns/{campaign}/runs/{run}", _run),
    Page("/profiles/{number}", _show_profile, is_slow=True),
)
