"""``commtune compare``."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from commtune import wiring
from commtune.campaign.workload import rounded_words
from commtune.commands import text
from commtune.commands.campaigns.progress import make_reporter
from commtune.commands.measure.compare_workload import Flags, workload_asked
from commtune.commands.measure.operands import read_operand, remarks_on, set_notes, with_pins
from commtune.commands.options import BackendOption, DbOption, JsonOption, OpOption, called_as
from commtune.commands.profiles.stored import (
    on_slurm_again,
    seconds_flag,
    timing_of,
)
from commtune.commands.signals import signals_interrupt
from commtune.errors import EnvironmentFault, UserError
from commtune.model import Backend, Configuration, MpiInstallation, Outcome, Timing, Workload
from commtune.tuner.ports import Benchmark
from commtune.tuner.statistics.intervals import FEWEST_PAIRS
from commtune.tuner.statistics.machine_states import ALL
from commtune.tuner.verification.pairwise import (
    Arm,
    Difference,
    PairwiseComparison,
    PairwiseResult,
)
from commtune.wiring import records
from commtune.wiring.gpus import libraries_of
from commtune.wiring.on_slurm import OnSlurm


@dataclass(frozen=True)
class Question:
    """What is to be compared, and how.

    Attributes:
        on: where and how ranks are started, if the profile is of a campaign on Slurm.
        notes: what is to be said before.
    """

    names: Mapping[Arm, str]
    sides: Mapping[Arm, Configuration]
    workload: Workload
    timing: Timing
    mpi: MpiInstallation
    time_s: float
    on: OnSlurm | None = None
    notes: Sequence[str] = ()


def run(
    a: str, b: str, flags: Flags, db: str | None, *, json_output: bool, program: str = "commtune"
) -> None:
    """Measures two configurations against each other and prints what came of it.

    Raises:
        EnvironmentFault: one of the two never worked; with the end of its output.
    """
    question = _question(a, b, flags, db)
    _refuse_outside(question, [program, "compare", a, b])
    for note in question.notes:
        print(f"note: {note}", file=sys.stderr)
    found = _measure(question)
    if json_output:
        data = text.without_infinities(comparison_data(question, found))
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        print(comparison_summary(question, found))
    if found.interrupted:
        print("commtune: interrupted; nothing of a comparison is stored", file=sys.stderr)
        sys.exit(130)
    _raise_failure(question, found)


def _raise_failure(question: Question, found: PairwiseResult) -> None:
    is_own = question.workload.own is not None
    alone = ", with these variables set" if is_own else ": commtune bench -x NAME=VALUE"
    for side in Arm:
        failed = sum(found.failures[side].values())
        if failed and failed == found.blocks:
            detail, tail = found.details[side]
            raise EnvironmentFault(
                f"{side} ({question.names[side]}) failed in all of {failed} runs: "
                f"{_counts(found.failures[side])}: {detail}",
                hint=tail or f"try it by itself{alone}",
            )


def _question(a: str, b: str, flags: Flags, db: str | None) -> Question:
    time_s = seconds_flag("--time", flags.time)
    named = {Arm.A: read_operand(a, db), Arm.B: read_operand(b, db)}
    stored = next((side.stored for side in named.values() if side.stored), None)
    on = on_slurm_again(stored, flags.mpi, print) if stored else None
    named_mpi = flags.mpi or (stored.settings.get("mpi") if stored else None) or "auto"
    workload = workload_asked(flags, stored)
    mpi = on.mpi if on else wiring.find_named_mpi(named_mpi)
    rounded = rounded_words(workload)
    versions = {mpi.flavour.library: mpi.version}
    sets = [side.baseline for side in named.values() if side.baseline]
    return Question(
        names={side: name.written for side, name in named.items()},
        sides=with_pins(named),
        workload=workload,
        timing=timing_of(stored) if stored else Timing(),
        mpi=mpi,
        time_s=time_s,
        on=on,
        notes=[
            *([rounded] if rounded else []),
            *(word for one in named.values() for word in remarks_on(one, versions)),
            *(
                note
                for one in sets
                for note in set_notes(one, libraries_of(workload.backend, mpi))
            ),
        ],
    )


def _refuse_outside(question: Question, command: Sequence[str]) -> None:
    """Ranks of a campaign on Slurm are started in an allocation: here, they would be elsewhere."""
    workload, on = question.workload, question.on
    if on is None:
        return
    if workload.ranks != on.wish.nodes * on.wish.ranks_per_node:
        raise UserError(
            f"--ranks {workload.ranks}: the campaign on Slurm is about "
            f"{text.format_ranks(on.wish.nodes * on.wish.ranks_per_node, on.wish.nodes)}",
            hint="leave --ranks out",
        )
    if on.allocation is None:
        asked = [f"--nodes={on.wish.nodes}", f"--ntasks-per-node={on.wish.ranks_per_node}"]
        asked += [f"--account={on.wish.account}"] if on.wish.account else []
        asked += [f"--partition={on.wish.partition}"] if on.wish.partition else []
        raise UserError(
            "the profile was measured on Slurm, and this is no allocation: ranks would be started "
            "on this node alone",
            hint=f"compare inside of one: {shlex.join(['salloc', *asked, *command])}",
        )


def _measure(question: Question) -> PairwiseResult:
    tell = make_reporter()
    with signals_interrupt(), _benchmark(question) as benchmark:
        contest = PairwiseComparison(
            benchmark, question.sides, question.workload, question.timing, question.time_s, tell
        )
        try:
            return contest.run()
        finally:
            tell.close()


@contextmanager
def _benchmark(question: Question) -> Iterator[Benchmark]:
    """What makes runs; their records are gone afterwards."""
    names = tuple(sorted({name for side in question.sides.values() for name in side}))
    on = question.on
    place = on.folder.parent if on else None  # which all nodes see
    if place:
        place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="commtune-", dir=place) as folder:
        if on is None:
            yield wiring.prepare_pinned(question.mpi, {}, names, question.workload, Path(folder))
        else:
            yield wiring.steps_on_slurm(on, names, Path(folder))


def comparison_summary(question: Question, found: PairwiseResult) -> str:
    """What came of it, for people."""
    workload = question.workload
    library = f"{records.MPI_NAMES[question.mpi.flavour]} {question.mpi.version}"
    if workload.backend == Backend.XCCL:
        library = wiring.library_words(workload.backend, question.mpi)
    what = [workload.words, text.format_ranks(workload.ranks, workload.nodes), library]
    what += [workload.backend] if workload.backend != Backend.MPI_HOST else []
    what += [text.describe_emulated(workload.emulated_nodes)] if workload.emulated_nodes else []
    head = [
        f"A: {question.names[Arm.A]}",
        f"B: {question.names[Arm.B]}",
        f"{', '.join(what)}; {found.blocks} blocks{' so far' if found.interrupted else ''}",
    ]
    table = _table(found) if found.differences else ""
    parts = ["\n".join(head), table, "\n".join(_remarks(found))]
    return "\n\n".join(part for part in parts if part)


def _table(found: PairwiseResult) -> str:
    header = ("size", "speed", "A", "B", "A / B, 95% together", "pairs", "finding")
    rows = [_row(difference) for difference in found.differences]
    if all(row[1] == ALL for row in rows):
        header = header[:1] + header[2:]  # type: ignore[assignment]  # one column less
        rows = [row[:1] + row[2:] for row in rows]
    return text.format_table(header, rows, right="size,A,B,pairs")


def _row(difference: Difference) -> tuple[str, ...]:
    enough = difference.ratio.pairs >= FEWEST_PAIRS
    return (
        text.format_size(difference.bytes),
        difference.speed,
        text.format_duration(difference.a_s),
        text.format_duration(difference.b_s),
        text.format_ratio(difference.ratio) if enough else "too few pairs",
        str(difference.ratio.pairs),
        # One machine speed by itself is not corrected for: no claim is made from it.
        _row_verdict(difference) if difference.speed == ALL else "",
    )


def _row_verdict(difference: Difference) -> str:
    """What a row of the table says, in words."""
    if difference.faster is not None:
        return f"{difference.faster} is faster"
    if difference.hidden is None:
        return "nothing is known"
    if difference.hidden > 1:
        return "too noisy to say anything"
    return f"no difference above {text.format_percent(difference.hidden)}"


def _remarks(found: PairwiseResult) -> list[str]:
    said = []
    if any(difference.speed != ALL for difference in found.differences):
        said.append(text.each_by_itself(PairwiseComparison.level))
    if found.oversubscribed:
        said.append("more ranks than cores: these times say nothing of a machine with enough")
    if limits := found.speeds.thresholds_s:
        said.append(
            f"this machine alternates between {len(limits) + 1} speeds; runs are compared within "
            "each"
        )
    if found.repeats:
        runs = "1 run, which was" if found.repeats == 1 else f"{found.repeats} runs, which were"
        said.append(f"others used the cores during {runs} made again")
    if found.lost:
        said.append(f"runs were lost, for which neither is blamed: {_counts(found.lost)}")
    for side, failures in found.failures.items():
        failed = sum(failures.values())
        if 0 < failed < found.blocks:
            detail, _ = found.details[side]
            said.append(
                f"{side} failed in {failed} of {found.blocks} runs ({_counts(failures)}): {detail}"
            )
    return said


def _counts(failures: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in failures.items())


def comparison_data(question: Question, found: PairwiseResult) -> dict[str, Any]:
    """The same as plain data, for ``--json``."""
    workload = question.workload
    return {
        "a": {"written": question.names[Arm.A], "configuration": dict(question.sides[Arm.A])},
        "b": {"written": question.names[Arm.B], "configuration": dict(question.sides[Arm.B])},
        "workload": {**asdict(workload), "operation": str(workload.operation)},
        "library": wiring.library_words(workload.backend, question.mpi),
        "mpi": {"flavour": str(question.mpi.flavour), "version": question.mpi.version},
        "blocks": found.blocks,
        "level": found.level,
        "interrupted": found.interrupted,
        "oversubscribed": found.oversubscribed,
        "repeats": found.repeats,
        "lost": {str(outcome): count for outcome, count in found.lost.items()},
        "failures": {
            str(side): {str(outcome): count for outcome, count in failures.items()}
            for side, failures in found.failures.items()
        },
        "failure": {
            str(side): {"detail": detail, "output_tail": tail}
            for side, (detail, tail) in found.details.items()
        },
        "differences": [
            {**asdict(d), "faster": str(d.faster) if d.faster else None} for d in found.differences
        ],
    }


def compare_command(
    a: Annotated[
        str,
        typer.Argument(
            help="default, a profile, 'NAME=VALUE NAME=VALUE', @FILE, or baseline:NAME"
        ),
    ],
    b: Annotated[str, typer.Argument(help="the same")],
    op: OpOption = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[str | None, typer.Option(help="message sizes, as for tune")] = None,
    mpi: Annotated[str | None, typer.Option(help="which MPI, as for tune")] = None,
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    backend: BackendOption = None,
    emulate_nodes: Annotated[
        int | None,
        typer.Option("--emulate-nodes", help="xccl: make one machine so many nodes, by sockets"),
    ] = None,
    db: DbOption = None,
    json_output: JsonOption = False,
) -> None:
    """Measure any two configurations against each other; nothing is stored."""
    flags = Flags(op, ranks, sizes, mpi, time, backend, emulate_nodes)
    run(a, b, flags, db, json_output=json_output, program=called_as())
