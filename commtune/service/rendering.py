"""Renders templates, with all stored text escaped, and tables of evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import quote

import jinja2

from commtune import __version__, wording
from commtune.model import PointEvidence
from commtune.report.page import templates_in
from commtune.service.replies import Problem, Reply
from commtune.tuner.outcome.displayed_points import displayed_points

HTML = "text/html; charset=utf-8"
#: Upper ends of the axis of speedups: the smallest that contains all intervals, or else the last.
_AXES = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)


def render_page(template: str, prefix: str, status: int = 200, **values: Any) -> Reply:
    """Returns a rendered template as an HTML reply; all its links begin with ``prefix``."""
    made = _environment().get_template(template).render(prefix=prefix, **values)
    return Reply(made.encode("utf-8", "replace"), HTML, status)


@cache
def _environment() -> jinja2.Environment:
    # Some templates are shared with the report.
    shared = jinja2.PrefixLoader({"report": jinja2.PackageLoader("commtune.report")})
    own = jinja2.PackageLoader("commtune.service")
    environment = templates_in(jinja2.ChoiceLoader([own, shared]))
    # Slashes are quoted, too, because a name is a single part of a path.
    environment.filters["part"] = lambda name: quote(str(name), safe="", errors="replace")
    environment.globals |= {"version": __version__, "interval": _interval}
    return environment


def show_problem(found: Problem, prefix: str) -> Reply:
    """Returns a problem as a page."""
    page = render_page("problem.html", prefix, found.status, problem=found)
    return replace(page, headers=found.headers)


def point_rows(
    points: Sequence[PointEvidence], side: str = "", more: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns the rows of a table of evidence, for the points that are displayed.

    Args:
        side: their source, for tables with several.
        more: further cells of each row.
    """
    return [_row(point) | {"side": side, "more": more} for point in displayed_points(points)]


def _row(point: PointEvidence) -> dict[str, Any]:
    size, default, candidate, speedup = wording.point_cells(point)
    return {
        "bytes": point.bytes,
        "size": size,
        "default": default,
        "candidate": candidate,
        "speedup": speedup,
        "state": point.speed,
        "verdict": wording.describe_finding(point),
        "low": point.gain.low,
        "high": point.gain.high,
    }


def evidence_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the data of a table: rows by size, and the common axis of their intervals."""
    by_size = groupby(sorted(rows, key=lambda row: row["bytes"]), key=lambda row: row["size"])
    ends = [end for row in rows for end in (row["low"], row["high"]) if 0 < end < math.inf]
    far = max((max(end, 1 / end) for end in ends), default=1.0)
    axis = next((one for one in _AXES if far <= one), _AXES[-1])
    return {"sizes": [(size, list(same)) for size, same in by_size], "axis": axis}


def is_shown(size: int, zoom: Mapping[str, Any]) -> bool:
    """Whether a size (bytes) is in the range that ``parameters.ZOOM`` selects."""
    low, high = zoom["from"], zoom["to"]
    return (low is None or size >= low) and (high is None or size <= high)


def _interval(low: float, high: float, axis: float) -> tuple[float, float]:
    """Returns both ends of an interval on a logarithmic axis from 0 to 120, with 1 at 60."""
    ends = (max(1 / axis, min(end, axis)) for end in (low, high))
    left, right = (60 + 60 * math.log(end, axis) for end in ends)
    return round(left, 1), round(max(right, left + 1), 1)
