"""``commtune compare``."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from commtune import wiring
from commtune.commands import text
from commtune.commands.ending import signals_interrupt
from commtune.commands.progress import reporter
from commtune.commands.stored import (
    checked_shape,
    find_profile,
    on_slurm_again,
    seconds,
    timing_of,
    workload_of,
)
from commtune.db.describing import CampaignDescription
from commtune.errors import EnvironmentFault, UserError
from commtune.model import Configuration, MpiInstallation, Operation, Outcome, Timing, Workload
from commtune.nearest import quoted, suggestion
from commtune.quantities import QuantityError
from commtune.tuner.comparing import Contest, Difference, Side, Versus
from commtune.tuner.ports import Benchmark
from commtune.tuner.speeds import ALL
from commtune.tuner.stats import FEWEST_PAIRS
from commtune.tuner.workload_part import DEFAULT_SIZES, parse_sizes
from commtune.wiring import records
from commtune.wiring.on_slurm import OnSlurm

_EXPORT = "export "
_FILE = "name a file with a NAME=VALUE on each line"


@dataclass(frozen=True)
class Flags:
    """What the command line may say; ``None`` leaves it to the profile, or to the default."""

    op: str | None = None
    ranks: int | None = None
    sizes: str | None = None
    mpi: str | None = None
    time: str = "30s"


@dataclass(frozen=True)
class Named:
    """One side, as it was written.

    Attributes:
        pins: what the profile's campaign sets in every run.
        stored: the profile's campaign.
    """

    written: str
    configuration: Configuration
    pins: Mapping[str, str] = field(default_factory=dict)
    stored: CampaignDescription | None = None


@dataclass(frozen=True)
class Question:
    """What is to be compared, and how.

    Attributes:
        on: where and how ranks are started, if the profile is of a campaign on Slurm.
    """

    names: Mapping[Side, str]
    sides: Mapping[Side, Configuration]
    workload: Workload
    timing: Timing
    mpi: MpiInstallation
    time_s: float
    on: OnSlurm | None = None


def run(
    a: str, b: str, flags: Flags, db: str | None, *, json_output: bool, program: str = "commtune"
) -> None:
    """Measures two configurations against each other and prints what came of it.

    Raises:
        EnvironmentFault: one of the two never worked; with the end of its output.
    """
    question = _question(a, b, flags, db)
    _refuse_outside(question, [program, "compare", a, b])
    found = _measure(question)
    if json_output:
        data = text.without_infinities(plain(question, found))
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        print(summary(question, found))
    if found.interrupted:
        print("commtune: interrupted; nothing of a comparison is stored", file=sys.stderr)
        sys.exit(130)
    _raise_failure(question, found)


def _raise_failure(question: Question, found: Versus) -> None:
    for side in Side:
        failed = sum(found.failures[side].values())
        if failed and failed == found.blocks:
            detail, tail = found.details[side]
            raise EnvironmentFault(
                f"{side} ({question.names[side]}) failed in all of {failed} runs: "
                f"{_counts(found.failures[side])}: {detail}",
                hint=tail or "try it by itself: commtune bench -x NAME=VALUE",
            )


def _question(a: str, b: str, flags: Flags, db: str | None) -> Question:
    time_s = seconds("--time", flags.time)
    named = {Side.A: read_side(a, db), Side.B: read_side(b, db)}
    stored = next((side.stored for side in named.values() if side.stored), None)
    on = on_slurm_again(stored, flags.mpi, print) if stored else None
    named_mpi = flags.mpi or (stored.settings.get("mpi") if stored else None) or "auto"
    return Question(
        names={side: name.written for side, name in named.items()},
        sides=with_pins(named),
        workload=_workload(flags, stored),
        timing=timing_of(stored) if stored else Timing(),
        mpi=on.mpi if on else wiring.find(named_mpi),
        time_s=time_s,
        on=on,
    )


def _refuse_outside(question: Question, command: Sequence[str]) -> None:
    """Ranks of a campaign on Slurm are started in an allocation: here, they would be elsewhere."""
    workload, on = question.workload, question.on
    if on is None:
        return
    if workload.ranks != on.wish.nodes * on.wish.ranks_per_node:
        raise UserError(
            f"--ranks {workload.ranks}: the campaign on Slurm is about "
            f"{text.ranks(on.wish.nodes * on.wish.ranks_per_node, on.wish.nodes)}",
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


def read_side(written: str, db: str | None) -> Named:
    """What a side means: ``default``, ``@FILE``, settings, or a profile.

    Raises:
        UserError, UnknownName: it is none of them.
    """
    if written == "default":
        return Named(written, Configuration())
    if written.startswith("@"):
        return Named(written, _from_file(Path(written[1:])))
    if "=" in written:
        return Named(written, _settings(written))
    answer, stored = find_profile(written, db)
    return Named(written, answer.profile.configuration, answer.pinned, stored)


def _settings(written: str) -> Configuration:
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise UserError(
            f"{written}: {error}", hint="write 'NAME=VALUE NAME=VALUE', values with blanks quoted"
        ) from error
    return Configuration(dict(_setting(word, written) for word in words))


def _from_file(path: Path) -> Configuration:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}", hint=_FILE) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text", hint=_FILE) from error
    found = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip().removeprefix(_EXPORT).strip()
        if stripped and not stripped.startswith("#"):
            name, value = _setting(stripped, f"{path}:{number}")
            found[name] = value
    return Configuration(found)


def _setting(word: str, where: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise UserError(f"{where}: {quoted(word)} sets no variable", hint="write NAME=VALUE")
    return name, value


def with_pins(named: Mapping[Side, Named]) -> dict[Side, Configuration]:
    """What each side sets: a profile its pins too, and the other side these same pins.

    Pins belong to the baseline that a profile was measured against; a side's own settings win.
    """
    shared: dict[str, str] = {}
    for side in reversed(Side):
        shared |= named[side].pins
    return {
        side: Configuration({**(one.pins or shared), **one.configuration})
        for side, one in named.items()
    }


def _workload(flags: Flags, stored: CampaignDescription | None) -> Workload:
    workload = workload_of(stored) if stored else Workload(Operation.ALLREDUCE, DEFAULT_SIZES)
    changes: dict[str, Any] = {}
    if flags.op is not None:
        changes["operation"] = _operation(flags.op)
    if flags.sizes is not None:
        changes["sizes"] = _sizes(flags.sizes)
    if flags.ranks is not None:
        changes["ranks"] = flags.ranks
    workload = checked_shape(replace(workload, **changes), stored)
    if workload.ranks < 2:
        raise UserError(f"--ranks: {workload.ranks} is out of range", hint="from 2")
    return workload


def _operation(word: str) -> Operation:
    if word not in list(Operation):
        raise UserError(
            f"--op: {quoted(word)} is not known here", hint=suggestion(word, list(Operation))
        )
    return Operation(word)


def _sizes(written: str) -> tuple[int, ...]:
    try:
        return parse_sizes(written if ".." in written else written.split(","))
    except QuantityError as error:
        raise UserError(f"--sizes: {error.message}", hint=error.hint) from error


def _measure(question: Question) -> Versus:
    tell = reporter()
    with signals_interrupt(), _benchmark(question) as benchmark:
        contest = Contest(
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


def summary(question: Question, found: Versus) -> str:
    """What came of it, for people."""
    workload = question.workload
    stack = f"{records.MPI_NAMES[question.mpi.flavour]} {question.mpi.version}"
    head = [
        f"A: {question.names[Side.A]}",
        f"B: {question.names[Side.B]}",
        f"{workload.words}, "
        f"{text.ranks(workload.ranks, workload.nodes)}, {stack}; "
        f"{found.blocks} blocks{' so far' if found.interrupted else ''}",
    ]
    table = _table(found) if found.differences else ""
    parts = ["\n".join(head), table, "\n".join(_remarks(found))]
    return "\n\n".join(part for part in parts if part)


def _table(found: Versus) -> str:
    header = ("size", "speed", "A", "B", "A / B, 95% together", "pairs", "finding")
    rows = [_row(difference) for difference in found.differences]
    if all(row[1] == ALL for row in rows):
        header = header[:1] + header[2:]  # type: ignore[assignment]  # one column less
        rows = [row[:1] + row[2:] for row in rows]
    return text.columns(header, rows, right="size,A,B,pairs")


def _row(difference: Difference) -> tuple[str, ...]:
    enough = difference.ratio.pairs >= FEWEST_PAIRS
    return (
        text.size(difference.bytes),
        difference.speed,
        text.duration(difference.a_s),
        text.duration(difference.b_s),
        text.ratio(difference.ratio) if enough else "too few pairs",
        str(difference.ratio.pairs),
        # One machine speed by itself is not corrected for: no claim is made from it.
        finding(difference) if difference.speed == ALL else "",
    )


def finding(difference: Difference) -> str:
    """What a row of the table says, in words."""
    if difference.faster is not None:
        return f"{difference.faster} is faster"
    if difference.hidden is None:
        return "nothing is known"
    if difference.hidden > 1:
        return "too noisy to say anything"
    return f"no difference above {text.percent(difference.hidden)}"


def _remarks(found: Versus) -> list[str]:
    said = []
    if any(difference.speed != ALL for difference in found.differences):
        said.append(text.EACH_BY_ITSELF)
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


def plain(question: Question, found: Versus) -> dict[str, Any]:
    """The same as plain data, for ``--json``."""
    workload = question.workload
    return {
        "a": {"written": question.names[Side.A], "configuration": dict(question.sides[Side.A])},
        "b": {"written": question.names[Side.B], "configuration": dict(question.sides[Side.B])},
        "workload": {**asdict(workload), "operation": str(workload.operation)},
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
