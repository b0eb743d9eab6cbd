"""``commtune compare``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commtune import formatting as text
from commtune import wording
from commtune.commands import options as flags
from commtune.commands.campaigns.progress import open_reporter
from commtune.commands.options import BackendOption, DbOption, JsonOption, OpOption
from commtune.model import LEVEL, Backend, Estimand, Tail

if TYPE_CHECKING:
    from commtune.app.measure import comparison

#: What ``--json`` has of the runs as it stands.
_OF_THE_RUNS = (
    "blocks",
    "level",
    "estimand",
    "interrupted",
    "oversubscribed",
    "repeats",
    "lost",
    "failures",
    "slow_runs",
)


def compare_command(
    a: Annotated[
        str,
        typer.Argument(
            help="default, a profile, 'NAME=VALUE NAME=VALUE', @FILE, or reference:NAME"
        ),
    ],
    b: Annotated[str, typer.Argument(help="what to compare it with, in the same form")],
    op: OpOption = None,
    ranks: flags.RanksOption = None,
    sizes: flags.SizesOption = None,
    mpi: flags.MpiOption = None,
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    backend: BackendOption = None,
    emulate_nodes: flags.EmulateOption = None,
    db: DbOption = None,
    json_output: JsonOption = False,
) -> None:
    """Measure any two configurations against each other; nothing is stored."""
    from commtune.app.measure.comparison import compare_configurations  # help does without it

    changes = _read_changes(op, ranks, sizes, backend, emulate_nodes)
    time_s = flags.seconds_flag("--time", time)
    with open_reporter() as reporter, flags.keys_are_flags():
        result = compare_configurations(
            a, b, changes=changes, mpi=mpi, time_s=time_s, db=db, reporter=reporter
        )
    if json_output:
        flags.print_json(_comparison_data(result))
    else:
        print(_comparison_summary(result))
    if result.pairs.interrupted:
        print("commtune: interrupted; nothing of a comparison is stored", file=sys.stderr)
        sys.exit(130)
    result.check_worked()


def _read_changes(
    op: str | None = None,
    ranks: int | None = None,
    sizes: str | None = None,
    backend: str | None = None,
    emulate_nodes: int | None = None,
) -> comparison.WorkloadChanges:
    from commtune.app.measure.comparison import WorkloadChanges

    return WorkloadChanges(
        operation=None if op is None else flags.operation_flag(op),
        ranks=ranks,
        sizes=None if sizes is None else flags.sizes_flag(sizes),
        backend=None if backend is None else flags.backend_flag(backend),
        emulate_nodes=emulate_nodes,
    )


def _comparison_summary(result: comparison.ComparisonResult) -> str:
    """What came of it, for people."""
    workload, found = result.workload, result.pairs
    library = result.library if workload.backend == Backend.XCCL else result.mpi.words
    what = [workload.words, text.format_ranks(workload.ranks, workload.nodes), library]
    what += [workload.backend] if workload.backend != Backend.MPI_HOST else []
    what += [text.describe_emulated(workload.emulated_nodes)] if workload.emulated_nodes else []
    head = [
        *(f"{arm}: {name}" for arm, name in result.names.items()),
        f"{', '.join(what)}; {found.blocks} blocks{' so far' if found.interrupted else ''}",
    ]
    rows = [_row(difference) for difference in found.differences]
    table = text.format_rows(rows, right="size,A,B") if rows else ""
    parts = ["\n".join(head), table, "\n".join([result.spread.allowance, *_remarks(found)])]
    return "\n\n".join(part for part in parts if part)


def _row(difference: comparison.Difference) -> dict[str, str]:
    is_overall, ratio = difference.speed == "all", difference.ratio
    speedup = text.format_speedup(ratio) if ratio else ""
    return {
        "size": text.format_size(difference.bytes),
        "machine state": "" if is_overall else difference.speed,
        "A": text.format_duration(difference.a_s),
        "B": text.format_duration(difference.b_s),
        f"A / B, {wording.format_simultaneous(LEVEL)}": speedup,
        # One machine state by itself is not corrected for: no claim is made from it.
        "finding": _row_verdict(difference) if is_overall else "",
    }


def _row_verdict(difference: comparison.Difference) -> str:
    if faster := difference.faster:
        slow = f", with more slow runs than {faster.other}" if difference.slow is faster else ""
        return f"{faster} is faster{slow}"
    if difference.ratio is None:
        return "no pair of runs in one machine state"
    if difference.hidden is None:
        return "nothing is known"
    if difference.hidden > 1:
        return "too noisy to say anything"
    return f"no difference above {text.format_percent(difference.hidden)}"


def _remarks(found: comparison.PairwiseResult) -> list[str]:
    said = []
    if found.estimand is not Estimand.MEDIAN:
        times = text.describe_estimand(found.estimand)
        said.append(f"A / B is the ratio of {times}, as in the profile's campaign")
    if any(difference.speed != "all" for difference in found.differences):
        said.append(text.each_by_itself(LEVEL))
    if found.oversubscribed:
        said.append("more ranks than cores: these times say nothing about a machine with enough")
    if limits := found.speeds.thresholds_s:
        said.append(
            f"this machine alternates between {len(limits) + 1} states; runs are compared within "
            "each"
        )
    if found.repeats:
        said.append(f"{text.format_count(found.repeats, 're-run')} because of background load")
    if found.lost:
        counts = wording.format_outcomes(found.lost)
        said.append(f"runs were lost; neither side is blamed: {counts}")
    for arm, failures in found.failures.items():
        failed = sum(failures.values())
        if 0 < failed < found.blocks:
            detail, _ = found.details[arm]
            counts = wording.format_outcomes(failures)
            said.append(f"{arm} failed in {failed} of {found.blocks} runs ({counts}): {detail}")
    said += [text.format_note(arm, slow) for arm, slow in found.slow_runs.items() if slow]
    return said


def _comparison_data(result: comparison.ComparisonResult) -> dict[str, Any]:
    found = result.pairs
    return {
        **{
            arm.lower(): {
                "written": result.names[arm],
                "configuration": dict(result.configurations[arm]),
            }
            for arm in result.names
        },
        "workload": asdict(result.workload),
        "library": result.library,
        "mpi": {"flavour": result.mpi.flavour, "version": result.mpi.version},
        **{name: getattr(found, name) for name in _OF_THE_RUNS},
        "session_spread": asdict(result.spread),
        "failure": {
            arm: {"detail": detail, "output_tail": tail}
            for arm, (detail, tail) in found.details.items()
        },
        "differences": [asdict(difference) for difference in found.differences],
        "tails": [_tail_data(tail) for tail in found.tails],
    }


def _tail_data(tail: Tail) -> dict[str, Any]:
    """Ratios are of A over B, as those of the differences are."""
    data = asdict(tail)
    slow = {"a_slow_runs": data.pop("default_slow_runs"), "b_slow_runs": data.pop("slow_runs")}
    return {**data, **slow}
