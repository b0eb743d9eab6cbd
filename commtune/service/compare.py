"""The page that compares the best configurations of two campaigns or systems by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commtune import formatting as text
from commtune.app.campaigns import stored
from commtune.app.profiles.answers import size_table
from commtune.app.profiles.explained import Explained
from commtune.errors import NoAnswer, UnknownName
from commtune.model import Operation, Verdict
from commtune.service import parameters as given
from commtune.service.rendering import evidence_table, is_shown, point_rows, render_page
from commtune.service.replies import Reply
from commtune.wording import format_common_level

#: The most differences that are listed.
_MOST = 60


@dataclass(frozen=True)
class _Side:
    """One of the two campaigns or systems."""

    letter: str
    name: str
    described: Mapping[str, Any]  # its description, whose differences are listed
    answers: Mapping[int, Explained]  # the best configurations by size (bytes)
    nothing: str  # a message why there are no answers

    def rows(self, size: int) -> list[dict[str, Any]]:
        """Returns the table's rows for a size (bytes)."""
        found = self.answers.get(size)
        if found is None or not found.row.points:
            said = "not measured" if found is None else "no configuration was compared here"
            return [{"bytes": size, "size": text.format_size(size), "side": self.letter,
                     "nothing": said, "low": 1.0, "high": 1.0}]  # fmt: skip
        row = found.row
        settings = " ".join(f"{name}={value}" for name, value in row.configuration.items())
        if row.verdict == Verdict.WITHDRAWN:
            settings = f"the default ({row.name} withdrawn)"
        where = f"{row.campaign}, {text.format_ranks(row.ranks, row.nodes)}, {row.backend}"
        if unusual := text.describe_conditions(row.conditions):
            where += f"; {unusual}"
        return point_rows(row.points, self.letter, more=(settings or "the default", where))


def show_comparison(db: str, prefix: str, _: Mapping[str, str], query: Sequence[Any]) -> Reply:
    """Returns the page; it is only a form until both sides are chosen."""
    asked = given.read_parameters(given.COMPARE, query)
    asked["operation"] = asked["operation"] or Operation.ALLREDUCE
    choices = _choices(db)
    named = asked["left"] is not None and asked["right"] is not None
    sides = [_side(db, letter, asked[name], asked, choices)
             for letter, name in (("A", "left"), ("B", "right"))] if named else []  # fmt: skip
    sizes = sorted({size for side in sides for size in side.answers if is_shown(size, asked)})
    answers = [one.row for side in sides for one in side.answers.values()]
    questions = {(row.ranks, row.nodes, row.backend, row.conditions) for row in answers}
    differences = stored.list_differences(sides[0].described, sides[1].described) if named else []
    return render_page(
        "compare.html",
        prefix,
        asked=dict.fromkeys(asked, "") | dict(query) | {"operation": asked["operation"]},
        choices=choices,
        operations=list(Operation),
        sides=sides,
        table=evidence_table([row for size in sizes for side in sides for row in side.rows(size)]),
        is_another_question=len(questions) > 1,
        interval=format_common_level({row.simultaneous_level for row in answers}),
        simulated=any(row.simulated for row in answers),
        differences=differences[:_MOST],
        more=len(differences) - _MOST,
    )


def _choices(db: str) -> dict[str, dict[str, str]]:
    """Returns the options of the form: names by value, grouped by heading."""
    campaigns = [one.name for one in stored.list_campaigns(db)]
    systems = [one for one, _ in stored.list_systems(db)] if campaigns else []
    return {
        "Campaigns": {f"campaign:{name}": name for name in campaigns},
        "Systems": {
            f"system:{one.fingerprint}": f"{one.name} ({one.fingerprint[:8]})" for one in systems
        },
    }


def _side(
    db: str,
    letter: str,
    written: str,
    asked: Mapping[str, Any],
    choices: Mapping[str, Mapping[str, str]],
) -> _Side:
    known = {value: name for group in choices.values() for value, name in group.items()}
    if written not in known:
        raise UnknownName(f"there is no {written[:100]}", hint="choose two from the lists")
    kind, _, name = written.partition(":")
    filters = {"ranks": asked["ranks"], "nodes": asked["nodes"], kind: name}
    answers, nothing = {}, ""
    try:
        answers = size_table(Operation(asked["operation"]), filters, db)
    except NoAnswer as none:
        nothing = f"{none.message}; {none.hint}"
    return _Side(letter, known[written], _described(db, kind, name), answers, nothing)


def _described(db: str, kind: str, name: str) -> Mapping[str, Any]:
    if kind == "campaign":
        found = stored.describe_campaign(db, name)
        return {**found.what, "system": found.system.name, "stack": found.stack.description}
    return next(one.description for one, _ in stored.list_systems(db) if one.fingerprint == name)
