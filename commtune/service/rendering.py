"""How pages are made: templates with all stored text escaped, and rows of evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any
from urllib.parse import quote

import jinja2

from commtune import __version__, wording
from commtune.model import PointEvidence
from commtune.report.page import FILTERS
from commtune.service.replies import Problem, Reply
from commtune.tuner.outcome.displayed_points import displayed_points

HTML = "text/html; charset=utf-8"
#: Ends of the axis of speedups: the nearest that holds all intervals, else the last.
_AXES = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)


def render_page(template: str, prefix: str, status: int = 200, **values: Any) -> Reply:
    """A page.

    Args:
        prefix: of all links.
    """
    made = _environment().get_template(template).render(prefix=prefix, **values)
    return Reply(made.encode("utf-8", "replace"), HTML, status)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        # Some parts are those of the report.
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("commtune.service"),
                jinja2.PrefixLoader({"report": jinja2.PackageLoader("commtune.report")}),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Slashes too: a name is one part of a path.
    environment.filters["part"] = lambda name: quote(str(name), safe="", errors="replace")
    environment.filters |= FILTERS
    environment.globals |= {"version": __version__, "interval": _interval}
    return environment


def show_problem(found: Problem, prefix: str) -> Reply:
    """What went wrong, as a page."""
    page = render_page("problem.html", prefix, found.status, problem=found)
    return Reply(page.body, page.kind, page.status, found.headers)


def point_rows(
    points: Sequence[PointEvidence], side: str = "", more: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Rows of a table of evidence, of the points that are displayed.

    Args:
        side: whose they are, where a table has those of several.
        more: further cells.
    """
    return [_row(point) | {"side": side, "more": more} for point in displayed_points(points)]


def _row(point: PointEvidence) -> dict[str, Any]:
    size, default, tuned, speedup = wording.point_cells(point)
    return {
        "bytes": point.bytes,
        "size": size,
        "default": default,
        "tuned": tuned,
        "speedup": speedup,
        "state": point.speed,
        "verdict": wording.describe_finding(point),
        "low": point.gain.low,
        "high": point.gain.high,
    }


def evidence_table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows as a table has them: by size, with the axis that all their intervals share."""
    by_size = groupby(sorted(rows, key=lambda row: row["bytes"]), key=lambda row: row["size"])
    ends = [end for row in rows for end in (row["low"], row["high"]) if 0 < end < math.inf]
    far = max((max(end, 1 / end) for end in ends), default=1.0)
    axis = next((one for one in _AXES if far <= one), _AXES[-1])
    return {"sizes": [(size, list(same)) for size, same in by_size], "axis": axis}


def is_shown(size: int, zoom: Mapping[str, Any]) -> bool:
    """Whether a size (bytes) is among those that are asked for, by ``parameters.ZOOM``."""
    low, high = zoom["from"], zoom["to"]
    return (low is None or size >= low) and (high is None or size <= high)


def _interval(low: float, high: float, axis: float) -> tuple[float, float]:
    """Where an interval begins and ends on a logarithmic axis 120 wide, 1 in the middle."""
    ends = (max(1 / axis, min(end, axis)) for end in (low, high))
    left, right = (60 + 60 * math.log(end, axis) for end in ends)
    return round(left, 1), round(max(right, left + 1), 1)
