"""``commtune verify``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commtune import formatting as text
from commtune import wording
from commtune.commands import options as flags
from commtune.commands.campaigns.progress import open_reporter
from commtune.errors import UserError

if TYPE_CHECKING:
    from commtune.app.measure import verification


class _ExitCode(IntEnum):
    """How ``commtune verify`` ends, apart from errors (1 to 4) and signals (from 128 on)."""

    HOLDS = 0
    WEAKER = 10
    GONE = 11
    WORSE = 12
    UNDECIDED = 13


def verify_command(
    profile: Annotated[
        str | None, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="a file of rules, as the library reads it")
    ] = None,
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    mpi: Annotated[str | None, typer.Option(help="which MPI [the campaign's]")] = None,
    db: flags.DbOption = None,
    json_output: flags.JsonOption = False,
    take_over: flags.TakeOverOption = False,
) -> None:
    """Measure a profile, or a file of rules, again; the exit code says whether it holds.

    Exit codes: 0 holds, 10 weaker, 11 gone, 12 worse, 13 inconclusive.
    """
    from commtune.app.measure.verification import verify_profile  # help does without it
    from commtune.app.profiles.rule_verification import verify_rules

    time_s = flags.seconds_flag("--time", time)
    if (profile is None) == (export is None):
        raise UserError("name a profile, or a file of rules: --export FILE")
    proof = None
    with open_reporter() as reporter, flags.keys_are_flags():
        if export is not None:
            proof, result = verify_rules(
                export, db=db, time_s=time_s, mpi=mpi, reporter=reporter, take_over=take_over
            )
        else:
            assert profile is not None
            result = verify_profile(
                profile, db=db, time_s=time_s, mpi=mpi, reporter=reporter, take_over=take_over
            )
    where = flags.shown_database(db)
    if json_output:
        rules = {"rules": asdict(proof)} if proof else {}
        flags.print_json({**_verification_data(result, where), **rules})
    else:
        print(_verification_summary(result, where))
    if result.verification.stopped == "interrupted":
        print("commtune: interrupted; everything measured is kept", file=sys.stderr)
        sys.exit(130)
    sys.exit(_ExitCode[result.verification.finding.name])


def _verification_summary(result: verification.VerificationResult, where: str) -> str:
    """What came of it, for people."""
    found = result.verification
    parts = [
        f"{result.profile}: {_finding(found)}\n{_basis(result)}",
        _table(result),
        "\n".join([*_strength(result), *_remarks(found, result.changes)]),
        f"Stored in {where}, campaign {result.campaign}",
    ]
    return "\n\n".join(part for part in parts if part)


def _finding(found: verification.Verification) -> str:
    """What was found; slow runs are no part of the speedup, so it may hold in spite of them."""
    so_far = "so far " if found.stopped == "interrupted" else ""
    slow = ", with more slow runs than the default" if found.slow_runs else ""
    return f"{so_far}{wording.format_finding(found.finding)}{slow}"


def _basis(result: verification.VerificationResult) -> str:
    workload, found = result.plan.workload, result.verification
    stack = result.mpi.words
    why = {"clear": ", clear by then", "time": "", "failing": "", "interrupted": ", interrupted"}
    ratios = text.describe_ratios(result.plan.estimand)
    return (
        f"{workload.words}, "
        f"{text.format_ranks(workload.ranks, workload.nodes)}, {stack}; stated "
        f"{text.format_day(result.stated_at)}, "
        f"measured again in {text.format_count(found.blocks, 'block')}{why[found.stopped]}"
        f"{ratios and f'; {ratios}'}"
    )


def _table(result: verification.VerificationResult) -> str:
    today = f"today, {wording.format_simultaneous(result.plan.level)}"
    header = ("size", "default", "candidate", "stated", today, "finding")
    rows = [_row(size) for size in result.verification.sizes]
    return text.format_table(header, rows, right="size,default,candidate")


def _row(size: verification.SizeVerification) -> tuple[str, ...]:
    point, finding = size.point, wording.format_finding(size.finding)
    stated = text.format_speedup(size.stated) if size.stated else "no harm"
    if point is None:
        return (text.format_size(size.bytes), "-", "-", stated, "-", finding)
    written, default, candidate, today = wording.point_cells(point)
    return (written, default, candidate, stated, today, finding)


def _strength(result: verification.VerificationResult) -> Iterator[str]:
    before, now = map(wording.describe_strength, (result.answer.strength, result.strength))
    yield f"before: {before}"
    if now != before:
        yield f"now: {now}"
    yield result.spread.allowance
    if result.next_spread.share != result.spread.share:
        yield f"from now on they allow for {result.next_spread}"


def _remarks(found: verification.Verification, changes: tuple[str, ...]) -> list[str]:
    said = []
    if found.oversubscribed:
        said.append("more ranks than cores: these times say nothing")
    if found.failures:
        counts = wording.format_outcomes(found.failures)
        said.append(f"runs of the profile's settings failed: {counts}: {found.detail}")
    if found.lost:
        counts = wording.format_outcomes(found.lost)
        said.append(f"runs were lost; the profile is not blamed: {counts}")
    if found.slow_runs:
        said.append(text.format_note("", found.slow_runs))
    if limits := found.speeds.thresholds_s:
        said.append(f"compared within each of {len(limits) + 1} machine states{_moved(found)}")
    if found.finding.name == _ExitCode.UNDECIDED.name and not found.oversubscribed:
        said.append(_more(found))
    if found.finding.name in ("GONE", "WORSE") and not changes:
        said.append("the profile is withdrawn: 'best' keeps the default until it holds again")
    if changes:
        said.append("changed since the profile was measured: " + "; ".join(changes))
    return said


def _moved(found: verification.Verification) -> str:
    """How the shares of the machine states changed, where that can explain another speedup."""
    from commtune.app.measure.verification import OTHER_SHARES

    then, now = found.then, found.now
    if all(abs(then.get(name, 0.0) - share) <= OTHER_SHARES for name, share in now.items()):
        return ""
    changes = [f"{name} {then.get(name, 0.0):.0%} -> {now[name]:.0%}" for name in now]
    return f", whose shares changed: {', '.join(changes)}; speedups may differ between them"


def _more(found: verification.Verification) -> str:
    if found.more is None:
        return f"{wording.INCONCLUSIVE}, and how many more runs would decide it can't be told"
    total_s = 2 * (found.blocks + found.more) * found.run_s
    # Whole tens of seconds, upwards: that is what people type.
    tens = 10 * (int(total_s) // 10 + 1)
    runs = 2 * found.more
    more = text.describe_deciding_runs(runs, f"about {runs:,} more runs (--time {tens}s)")
    return f"{wording.INCONCLUSIVE}: {more}"


def _verification_data(result: verification.VerificationResult, where: str) -> dict[str, Any]:
    found = result.verification
    return {
        "profile": result.profile,
        "finding": found.finding,
        "exit_code": int(_ExitCode[found.finding.name]),
        "interrupted": found.stopped == "interrupted",
        "stopped": found.stopped,
        "stated_at": result.stated_at,
        "configuration": dict(result.claim.configuration),
        "campaign": result.campaign,
        "database": where,
        "changes": result.changes,
        "estimand": result.plan.estimand,
        "level": found.level,
        "strength": {"before": asdict(result.answer.strength), "now": asdict(result.strength)},
        "session_spread": asdict(result.spread),
        "next_session_spread": asdict(result.next_spread),
        "blocks": found.blocks,
        "planned_blocks": found.planned,
        "more_blocks": found.more,
        "failures": found.failures,
        "lost": found.lost,
        "failure": found.detail,
        "oversubscribed": found.oversubscribed,
        "slow_runs": found.slow_runs,
        "speed_shares": {"then": found.then, "now": found.now},
        "sizes": [_size_data(size) for size in found.sizes],
        "tails": [asdict(tail) for tail in found.tails],
        "points": [asdict(point) for point in found.points],
    }


def _size_data(size: verification.SizeVerification) -> dict[str, Any]:
    point = size.point
    return {
        "bytes": size.bytes,
        "finding": size.finding,
        "stated": asdict(size.stated) if size.stated else None,
        "today": asdict(point.gain) if point else None,
        "default_s": point.default_s if point else None,
        "tuned_s": point.tuned_s if point else None,
        "more_pairs": size.more,
    }
