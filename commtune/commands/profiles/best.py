"""``commtune best``. Starts fast: it imports neither SQLAlchemy nor what else it can spare."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commtune.app.ranking import (
    Standing,
    conditions_of,
    find_standing,
    rank_answers,
    sure_points,
)
from commtune.commands import text
from commtune.commands.options import DbOption, JsonOption
from commtune.db.queries.query_results import BestRow
from commtune.errors import UserError
from commtune.model import Backend, Operation, PointEvidence, Verdict
from commtune.tuner.outcome.detectability import describe_detectability, is_ruled_out
from commtune.tuner.outcome.displayed_points import displayed_points

if TYPE_CHECKING:
    from commtune.app.nominal_share import Share


#: Answers that are printed as JSON; those below the first one in words; of a command, letters.
_MOST, _OTHERS, _LONGEST = 10, 5, 100


@dataclass(frozen=True)
class Question:
    """What was asked for; ``None`` for anything."""

    op: str
    size: str
    nodes: int | None
    ranks: int | None
    system: str | None
    backend: str | None
    campaign: str | None


def run(question: Question, db: str | None, *, json_output: bool) -> None:
    """Prints the best profile for the question, with its evidence."""
    from commtune.db.connection.location import database_url
    from commtune.db.queries.profiles import best_profiles

    try:
        Operation(question.op)
    except ValueError as error:
        raise UserError(
            f"--op {question.op}: no such operation", hint=f"operations: {', '.join(Operation)}"
        ) from error
    size = _parse_size(question.size)
    rows = best_profiles(
        database_url(db),
        question.op,
        size,
        nodes=question.nodes,
        ranks=question.ranks,
        system=question.system,
        backend=question.backend,
        campaign=question.campaign,
    )
    rows = rank_answers(rows, size)
    if json_output:
        data = text.without_infinities([_plain(row, size, db) for row in rows[:_MOST]])
        print(json.dumps(data, indent=2, allow_nan=False))
        return
    print(_answer(rows[0], size, db))
    others = _others(rows)
    if others:
        print("\n" + others)


def _parse_size(written: str) -> int:
    """Bytes from ``1MiB``.

    Raises:
        UserError: with how sizes are written.
    """
    from commtune.documents.quantities import QuantityError, parse_bytes

    try:
        return parse_bytes(written)
    except QuantityError as error:
        raise UserError(f"--bytes {written}: {error}", hint="write 8, 64KiB or 1MiB") from error


def _share(row: BestRow, db: str | None) -> Share | None:
    """What share of the nominal the answer reaches, where its campaign knows it."""
    # Host memory on one node has none, and the models take their time to load.
    on_host = row.backend == Backend.MPI_HOST
    if row.simulated or (on_host and row.nodes == 1):
        return None
    from commtune.db.connection.location import database_url
    from commtune.db.queries.description import describe_campaign

    stored = describe_campaign(database_url(db), row.campaign)
    if on_host and "fabric" not in stored.settings:
        return None
    from commtune.app.nominal_share import of_answer

    return of_answer(row, stored, db)


def _why(row: BestRow, size: int, db: str | None) -> str:
    """What could still be hidden at the size, or the measured one nearest to it.

    A profile's own note is of its whole range, and so of the size at which least is known.
    """
    if row.verdict != Verdict.UNDECIDED:
        return ""
    from commtune.db.connection.location import database_url
    from commtune.db.queries.description import detectable_gains

    found = detectable_gains(database_url(db), row.campaign)
    nearest = row.nearest_bytes
    if nearest is None:  # no candidate was compared here
        inside = [known for known in found if row.bytes_low <= known <= row.bytes_high]
        nearest = min(inside, key=lambda known: abs(math.log(max(known, 1) / max(size, 1))),
                      default=None)  # fmt: skip
    why = (
        ""
        if nearest is None
        else describe_detectability((nearest,), row.points, row.minimum_gain, found)
    )
    return why or text.split_note(row.note)[1] or "too little evidence"


def _answer(row: BestRow, size: int, db: str | None) -> str:
    share = _share(row, db)
    lines = [
        _heading(row, size, _why(row, size, db)),
        f"measured {_where(row)}, campaign {row.campaign}",
        *filter(None, [_own(row), conditions_of(row)]),
    ]
    if row.simulated:
        lines.append("SIMULATED OR REPLAYED: says nothing about a real system")
    other = "tuned" if row.verdict == Verdict.FASTER else "best candidate"
    lines += [f"  {_point(point, other)}" for point in displayed_points(row.points)]
    if share is not None:
        used = "with it" if row.verdict == Verdict.FASTER else "the default"
        lines.append(f"  {used}: {share} by {share.nominal.model}")
    nearest = {point.bytes for point in row.points}
    if nearest and size not in nearest:
        lines.append(
            f"({text.format_size(size)} itself was not measured; this is the nearest size)"
        )
    if row.verdict == Verdict.FASTER:
        lines += ["", *(f"{name}={value}" for name, value in row.configuration.items())]
    return "\n".join(lines)


def _heading(row: BestRow, size: int, why: str) -> str:
    where = text.format_ranks(row.ranks, row.nodes)
    what = f"{row.operation} of {text.format_size(size)}, {where}"
    if row.verdict == Verdict.FASTER:
        return f"{what}: {row.campaign}/{row.name}"
    if row.verdict == Verdict.DEFAULT:
        return f"{what}: keep the default"
    nearest = row.nearest_bytes
    if nearest is not None and is_ruled_out(nearest, row.points, row.minimum_gain):
        return f"{what}: keep the default ({why})"
    return f"{what}: keep the default (undecided: {why})"


def _point(point: PointEvidence, other: str) -> str:
    speed = "" if point.speed == "all" else f" at the {point.speed} machine speed"
    return (
        f"{text.format_size(point.bytes)}{speed}: default "
        f"{text.format_duration(point.default_s)}, "
        f"{other} {text.format_duration(point.tuned_s)}, gain {text.format_ratio(point.gain)}, "
        f"{point.gain.pairs} pairs"
    )


def _where(row: BestRow) -> str:
    """The machine, the software, what ranks communicated by, and the space that was searched."""
    space = f", space {row.space}" if row.space else ""
    return f"on {row.system}, {row.stack}, backend {row.backend}{space}"


def _own(row: BestRow) -> str:
    """What a user measured by in the place of the benchmark; empty where nobody did."""
    own = row.workload.get("own") or {}
    if own.get("command"):
        words = shlex.join(own["command"])
        shown = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
        return f"by a command of your own: {shown}"
    return f"by a pattern of your own: {own['pattern']}" if own.get("pattern") else ""


def _others(rows: list[BestRow]) -> str:
    others = rows[1:]
    if not others:
        return ""
    shown = [
        f"  {row.campaign}/{row.name}: {_finding(row)}; "
        f"{text.format_ranks(row.ranks, row.nodes)}, "
        + _where(row)
        + (" (simulated or replayed)" if row.simulated else "")
        + "".join(f", {words}" for words in (_own(row), conditions_of(row)) if words)
        for row in others[:_OTHERS]
    ]
    if more := len(others) - len(shown):
        shown.append(
            f"  and {more} more: --campaign, --backend, --ranks, --nodes or --system picks"
        )
    return "\n".join(["also measured:", *shown])


def _finding(row: BestRow) -> str:
    """What another answer shows, in a few words."""
    found = find_standing(row)
    if found is Standing.GAIN:
        best = max(sure_points(row), key=lambda point: point.gain.low)
        return f"gain {text.format_ratio(best.gain)} at {text.format_size(best.bytes)}"
    at = "" if row.nearest_bytes is None else f" at {text.format_size(row.nearest_bytes)}"
    if row.verdict == Verdict.FASTER:
        return f"no gain shown{at}"
    return f"keep the default, {found}{at}"


def _plain(row: BestRow, size: int, db: str | None) -> dict[str, Any]:
    share = _share(row, db)
    return {**_shallow(row), "configuration": dict(row.configuration),
            "finding": str(find_standing(row)),
            "points": [asdict(point) for point in row.points],
            "why": _why(row, size, db),
            "of_nominal": share.plain() if share else None}  # fmt: skip


def _shallow(row: BestRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def best_command(
    op: Annotated[str, typer.Option("--op", help="operation: allreduce, broadcast, ...")],
    bytes_: Annotated[str, typer.Option("--bytes", help="message size: 1MiB")],
    nodes: Annotated[int | None, typer.Option(help="measured on so many nodes")] = None,
    ranks: Annotated[int | None, typer.Option(help="measured with so many ranks")] = None,
    system: Annotated[
        str | None, typer.Option(help="part of a system's name, or its fingerprint")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="backend, such as mpi-host")] = None,
    campaign: Annotated[str | None, typer.Option(help="only from this campaign")] = None,
    db: DbOption = None,
    json_output: JsonOption = False,
) -> None:
    """The best confirmed configuration for an operation and a message size."""
    question = Question(op, bytes_, nodes, ranks, system, backend, campaign)
    run(question, db, json_output=json_output)
