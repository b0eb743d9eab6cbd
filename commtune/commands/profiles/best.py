"""``commtune best``. Starts fast: it imports neither SQLAlchemy nor what else it can spare."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from commtune import formatting as text
from commtune.app.profiles.answers import (
    MOST_ANSWERS,
    best_answers,
    not_measured,
    size_table,
    size_table_data,
)
from commtune.app.profiles.best import BestRow
from commtune.app.profiles.explained import (
    Explained,
    LikelyProfile,
    Neighbour,
    Support,
    describe_choice,
)
from commtune.commands.options import (
    AcceptOption,
    DbOption,
    JsonOption,
    bytes_flag,
    called_as,
    database_flag,
    operation_flag,
    print_json,
    takes_least_strength,
)
from commtune.db.connection.location import database_url, is_service
from commtune.errors import NoAnswer
from commtune.model import Backend, Operation, PointEvidence, Verdict
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import (
    describe_finding,
    describe_strength,
    describe_use,
    describe_verdict,
    format_common_level,
    format_simultaneous,
    list_warnings,
    point_cells,
    point_columns,
    suggest_verification,
)

#: Answers below the first one in words; of a command, letters.
_OTHERS, _LONGEST = 5, 100


@takes_least_strength
def best_command(
    op: Annotated[str, typer.Option("--op", help="operation: allreduce, broadcast, ...")],
    bytes_: Annotated[
        str | None, typer.Option("--bytes", help="message size: 1MiB [a table of all sizes]")
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="measured on this many nodes")] = None,
    ranks: Annotated[int | None, typer.Option(help="measured with this many ranks")] = None,
    system: Annotated[
        str | None, typer.Option(help="part of a system's name, or its fingerprint")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="backend, such as mpi-host")] = None,
    campaign: Annotated[str | None, typer.Option(help="only from this campaign")] = None,
    accept: AcceptOption = "proven",
    db: DbOption = None,
    json_output: JsonOption = False,
    **least: int | None,
) -> None:
    """Show the best confirmed configuration for an operation and a message size."""
    operation = operation_flag(op)
    filters = {
        "nodes": nodes, "ranks": ranks, "system": system, "backend": backend,
        "campaign": campaign, **least,
    }  # fmt: skip
    try:
        if bytes_ is None:
            table = size_table(operation, filters, db)
            if accept == "likely":
                table = {at: one.accept_likely() for at, one in table.items()}
            if json_output:
                print_json(size_table_data(table))
            else:
                print(_size_table(table))
            return
        size = bytes_flag(bytes_)
        explained = MOST_ANSWERS if json_output else 1
        answers, others = best_answers(operation, size, filters, db, explained=explained)
    except NoAnswer as nothing:
        if json_output:
            print_json(not_measured(nothing))
        if bytes_ is None:
            raise
        hint = nothing.hint + _next_step(operation, size, filters, db)
        raise NoAnswer(nothing.message, hint=hint) from nothing
    if accept == "likely":
        answers = [one.accept_likely() for one in answers]
    if json_output:
        print_json([one.plain() for one in answers])
        return
    print(_answer(answers[0], size, db))
    if others:
        print("\n" + _others(others))


def _next_step(op: Operation, size: int, filters: Mapping[str, Any], db: str | None) -> str:
    """The command that measures it or continues its campaign; empty where none can."""
    from commtune.app.campaigns.stored import is_unfinished  # only a question in vain needs it

    if is_service(database_url(db)):
        return ""
    asked = {name: value for name, value in filters.items() if value is not None}
    campaign = asked.get("campaign")
    if campaign and is_unfinished(campaign, db):
        again = f"'{called_as()} tune' with its file or flags continues it"
        return f"\n{campaign} has not finished its confirmation\nnext: {again}"
    is_flagless = op.is_own or op is Operation.MATRIX or asked.get("backend") == Backend.COMMAND
    unfit = is_flagless or not size
    if asked.pop("nodes", 1) != 1 or unfit or asked.keys() - {"ranks", "backend"}:
        return ""
    more = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in asked.items())
    sizes = shlex.quote(text.format_size(size).replace(" ", ""))
    return f"\nnext: {called_as()} tune --op {op} --sizes {sizes}{more}{database_flag(db)}"


def _size_table(answers: Mapping[int, Explained]) -> str:
    """The best at every measured size, and below it what the profiles set."""
    level = format_common_level({one.row.simultaneous_level for one in answers.values()})
    header = [*point_columns(level), "use"]
    rows, places = [], []
    used: dict[str, list[str]] = {}
    for size, answer in answers.items():
        row, points = answer.row, answer.row.sure_points
        faster = row.verdict == Verdict.FASTER
        name = f"{row.campaign}/{row.name}"
        where = f"{text.format_ranks(row.ranks, row.nodes)}, {row.system}, {row.stack}"
        is_plain = row.finding in (Verdict.FASTER, Verdict.DEFAULT)
        use = describe_use(name if faster else "", "" if is_plain else _name_finding(row))
        if likely := answer.accepted:
            points = tuple(point for point in likely.points if point.bytes == size)
            use = f"{likely.profile} ({describe_verdict(Verdict.LIKELY)})"
            used.setdefault(use, _settings_and_note(likely))
        elif row.finding is Verdict.WITHDRAWN:
            use = describe_use("", withdrawn=name)
            used.setdefault(name, [row.note])
        elif answer.likely:
            use = f"{use}; {describe_verdict(Verdict.LIKELY)}: {answer.likely.profile}"
        unmeasured = (text.format_size(size), "", "", "unmeasured")
        cells = point_cells(points[0]) if points else unmeasured
        rows.append([*cells, use])
        places.append(where + _marks(row))
        if faster:
            rests_on = f"rests on {describe_strength(answer.strength)}"
            used.setdefault(name, [*_settings_and_note(row), rests_on])
    above = f"measured: {places[0]}\n"
    if len(set(places)) > 1:
        above, header = "", [*header, "measured"]
        rows = [[*row, place] for row, place in zip(rows, places, strict=True)]
    table = above + text.format_table(header, rows, right="size,default,candidate")
    settings = [
        "\n".join([name, *(f"  {line}" for line in lines)]) for name, lines in used.items()
    ]
    return "\n\n".join([table, *settings])


def _marks(row: BestRow) -> str:
    simulated = " (simulated or replayed)" if row.simulated else ""
    said = (_own(row), text.describe_conditions(row.conditions))
    return "".join(f", {words}" for words in said if words) + simulated


def _answer(answer: Explained, size: int, db: str | None) -> str:
    row, disagree = answer.row, answer.support is Support.DISAGREE
    where = text.format_ranks(row.ranks, row.nodes)
    lines = [
        f"{row.operation} of {text.format_size(size)}, {where}: {answer.message}",
        f"measured {_where(row)}, campaign {row.campaign}",
        *filter(None, [_own(row), text.describe_conditions(row.conditions)]),
    ]
    lines += list_warnings(row.site, simulated=row.simulated)
    if disagree:
        return "\n".join([*lines, *_disagreement(answer.neighbours)])
    for measured in [one.row for one in answer.neighbours] or [row]:
        lines += _evidence(measured)
    if share := answer.share:
        used = "with it" if row.verdict == Verdict.FASTER else "the default"
        lines.append(f"  {used}: {share} by {share.nominal.model}")
    if answer.neighbours:
        below, above = (text.format_size(one.bytes) for one in answer.neighbours)
        asked = text.format_size(size)
        lines.append(f"({asked} was not measured; its neighbours {below} and {above} agree)")
    if row.verdict == Verdict.FASTER:
        rests_on = f"rests on {describe_strength(answer.strength)}"
        lines += [rests_on, "", *_settings_and_note(row)]
    if answer.accepted:
        lines += ["", *_settings(answer.accepted)]
    if row.verdict == Verdict.WITHDRAWN:
        again = suggest_verification(row.campaign, row.name, called_as())
        lines.append(f"{again}{_own_database(db)}")
    return "\n".join([*lines, *(_likely(answer.likely, db) if answer.likely else [])])


def _likely(found: LikelyProfile, db: str | None) -> list[str]:
    """What is likely where the default stays, and what would tell."""
    reference = shlex.quote(found.profile)
    return [
        found.note,
        f"  {called_as()} verify {reference}{_own_database(db)}",
        f"  {called_as()} export {reference} --accept likely{database_flag(db)}",
    ]


def _own_database(db: str | None) -> str:
    """The option for a command that measures, where the database is: a service takes no runs."""
    return "" if is_service(database_url(db)) else database_flag(db)


def _disagreement(neighbours: Iterable[Neighbour]) -> Iterator[str]:
    """What each of two measured sizes says, of which nobody knows how far it holds."""
    for one in neighbours:
        yield f"\n{text.format_size(one.bytes)}: {describe_choice(one.row, one.why)}"
        yield from _evidence(one.row)
        yield from (f"  {line}" for line in _settings_and_note(one.row))


def _settings_and_note(row: BestRow | LikelyProfile) -> list[str]:
    """What a profile sets, and what to know about that; nothing for the default."""
    settings = _settings(row)
    return [*settings, row.note] if settings and row.note else settings


def _settings(row: BestRow | LikelyProfile) -> list[str]:
    return [f"{name}={value}" for name, value in row.configuration.items()]


def _evidence(row: BestRow) -> list[str]:
    return [f"  {_describe_point(point, row)}" for point in displayed_points(row.points)]


def _describe_point(point: PointEvidence, row: BestRow) -> str:
    """A point as a sentence, with its verdict if that is not its profile's."""
    together = row.simultaneous_level
    state, interval = "", format_simultaneous(together, row.level)
    if point.speed != ALL:
        state = f" in the {point.speed} machine state"
        interval = format_simultaneous(None, together or row.level)
    is_exception = row.verdict == Verdict.FASTER and point.verdict is not Verdict.FASTER
    finding = f": {describe_finding(point)}" if is_exception and point in row.sure_points else ""
    size, default, candidate, speedup = point_cells(point)
    return (
        f"{size}{state}: default {default}, candidate {candidate}, speedup {speedup}, "
        f"{interval}{finding}"
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


def _others(others: list[BestRow]) -> str:
    shown = [
        f"  {row.campaign}/{row.name}: {_finding(row)}; "
        f"{text.format_ranks(row.ranks, row.nodes)}, " + _where(row) + _marks(row)
        for row in others[:_OTHERS]
    ]
    if more := len(others) - len(shown):
        shown.append(
            f"  and {more} more: --campaign, --backend, --ranks, --nodes or --system picks"
        )
    return "\n".join(["also measured:", *shown])


def _finding(row: BestRow) -> str:
    """What another answer shows, in a few words."""
    if row.finding is Verdict.FASTER:
        surest = max(row.sure_points, key=lambda point: point.gain.low)
        return f"speedup {text.describe_speedup(surest.gain, surest.bytes)}"
    at = "" if row.nearest_bytes is None else f" at {text.format_size(row.nearest_bytes)}"
    keep = "" if row.verdict == Verdict.FASTER else "keep the default, "
    return f"{keep}{_name_finding(row)}{at}"


def _name_finding(row: BestRow) -> str:
    """What was found at the size, where that is no speedup."""
    if row.verdict == Verdict.FASTER and row.sure_points:
        return describe_finding(min(row.sure_points, key=lambda point: point.gain.low))
    return describe_verdict(row.finding)
