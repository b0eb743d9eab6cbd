"""``commtune verify``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from commtune import wiring
from commtune.app.progress import LineReporter
from commtune.app.tuning import LOOK_AT
from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.commands import text
from commtune.commands.campaigns.progress import TerminalReporter, make_reporter
from commtune.commands.options import DbOption, JsonOption
from commtune.commands.profiles.stored import find_profile, on_slurm_again, plan_of, seconds_flag
from commtune.commands.signals import signals_interrupt
from commtune.db.codec import list_differences
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.db.queries.description import CampaignDescription
from commtune.db.queries.query_results import ProfileAnswer
from commtune.db.storage.records import CampaignRecord
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.model import DEFAULT, MpiInstallation, Phase, content_key
from commtune.tuner.execution.runner import Runner, time_limit
from commtune.tuner.execution.session import Session
from commtune.tuner.ports import Batches, Benchmark
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.verification.claims import (
    OTHER_SHARES,
    Claim,
    SizeVerification,
    VerificationVerdict,
    claim_of,
)
from commtune.tuner.verification.phase import Verification, VerifyPhase
from commtune.wiring import records
from commtune.wiring.on_slurm import OnSlurm


class ExitCode(IntEnum):
    """How ``commtune verify`` ends, apart from errors (1 to 4) and signals (from 128 on)."""

    HOLDS = 0
    WEAKER = 10
    GONE = 11
    WORSE = 12
    UNDECIDED = 13


@dataclass(frozen=True)
class Question:
    """What is to be measured again, and against what it was measured on.

    Attributes:
        record: the campaign as it would be begun here and now, under the name to store it by.
        changes: what changed since, in words; then the runs are a campaign of their own.
        on: where and how jobs are started, if the campaign's runs were made on Slurm.
    """

    answer: ProfileAnswer
    stored: CampaignDescription
    claim: Claim
    plan: Plan
    mpi: MpiInstallation
    record: CampaignRecord
    changes: tuple[str, ...]
    on: OnSlurm | None = None

    @property
    def name(self) -> str:
        """How the profile is named on the command line."""
        return f"{self.answer.campaign}/{self.answer.profile.name}"


def run(
    reference: str,
    time_written: str,
    mpi: str | None,
    db: str | None,
    *,
    json_output: bool,
    take_over: bool,
) -> None:
    """Measures a profile again, prints what came of it, and ends with its exit code."""
    time_s = seconds_flag("--time", time_written)
    tell = make_reporter()
    question = _question(reference, mpi, db, tell)
    for line in _changed(question):
        tell.say(line)
    with signals_interrupt():
        found = _measure(question, time_s, db, tell, take_over=take_over)
    tell.close()
    url = database_url(db)
    where = str(sqlite_path(url) or shown_url(url))
    if json_output:
        data = text.without_infinities(_verification_data(question, found, where))
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        print(_verification_summary(question, found, where))
    if found.stopped == "interrupted":
        print("commtune: interrupted; everything measured is kept", file=sys.stderr)
        sys.exit(130)
    sys.exit(ExitCode[found.finding.name])


def _question(
    reference: str, mpi_named: str | None, db: str | None, tell: LineReporter | TerminalReporter
) -> Question:
    answer, stored = find_profile(reference, db)
    if answer.profile.simulated or stored.simulated:
        raise UserError(
            f"profile {answer.profile.name} is simulated or replayed: there is no machine to "
            "measure it on again",
            hint="run the campaign on the machine itself",
        )
    plan = plan_of(stored)
    claim = claim_of(answer.profile, plan.workload.sizes)
    on = on_slurm_again(stored, mpi_named, tell.say)
    named = mpi_named or stored.settings.get("mpi") or "auto"
    mpi = on.mpi if on else wiring.find_named_mpi(named, plan.workload)
    _refuse_another_library(stored, mpi)
    record = records.slurm_record(on) if on else _today(stored, mpi)
    record = replace(record, stack=record.stack.as_known_to(stored.stack.description))
    _refuse_another_machine(answer, stored, record)
    changes = _changes(stored, record)
    if changes:
        record = _own(answer, record)
    return Question(answer, stored, claim, plan, mpi, record, changes, on and _named(on, record))


def _today(stored: CampaignDescription, mpi: MpiInstallation) -> CampaignRecord:
    return records.record_of_today(stored, mpi, wiring.versions_again(stored, mpi))


def _named(on: OnSlurm, record: CampaignRecord) -> OnSlurm:
    """With jobs and folders called as the campaign that the runs are stored with."""
    plan = replace(on.spec.plan, name=record.name)
    return replace(on, spec=replace(on.spec, plan=plan), folder=Path(record.folder).parent)


def _refuse_another_library(stored: CampaignDescription, mpi: MpiInstallation) -> None:
    flavour = stored.what["mpi"]["flavour"]
    if str(mpi.flavour) != flavour:
        raise UserError(
            f"{stored.name} is about {stored.stack.text}, but the MPI found is "
            f"{mpi.flavour} {mpi.version} ({mpi.compiler}), which has other variables",
            hint="name the MPI with --mpi: 'commtune mpi list' shows what there is",
        )


def _refuse_another_machine(
    answer: ProfileAnswer, stored: CampaignDescription, record: CampaignRecord
) -> None:
    lines = list_differences(stored.what["machine"], record.what["machine"])
    if lines:
        raise UserError(
            f"{answer.profile.name} was measured on another system, {stored.system.name}; "
            f"this is {record.system.name} (then -> now):"
            + "".join(f"\n  {line}" for line in lines),
            hint="verify it on a machine of that kind, or tune here: commtune tune\n"
            f"what it does here: commtune compare default {answer.campaign}/{answer.profile.name}",
        )


def _changes(stored: CampaignDescription, record: CampaignRecord) -> tuple[str, ...]:
    """What changed around the profile on the same machine, as ``key: then -> now``."""
    what = list_differences(stored.what, record.what)
    stack = list_differences(stored.stack.description, record.stack.description)
    moved = stored.system.fingerprint != record.system.fingerprint
    moved |= stored.stack.fingerprint != record.stack.fingerprint
    said = [*what, *(line for line in stack if not line.startswith(("mpi:", "version:")))]
    return tuple(said) or (("the system's fingerprint",) if moved else ())


def _own(answer: ProfileAnswer, record: CampaignRecord) -> CampaignRecord:
    """A campaign of its own for runs that don't compare with the profile's campaign."""
    reference = f"{answer.campaign}/{answer.profile.name}"
    what = {**record.what, "verifies": reference}
    key = content_key([what, record.system.fingerprint, record.stack.fingerprint])[:4]
    day = time.strftime("%Y-%m-%d")
    name = f"verify-{answer.campaign}-{answer.profile.name}-{day}-{key}"
    settings = {**record.settings, "verifies": reference}
    folder = str(records.runs_folder(name))
    return replace(record, name=name, what=what, settings=settings, folder=folder)


def _changed(question: Question) -> list[str]:
    if not question.changes:
        return []
    return [
        f"{question.name} was measured under something else; changed since (then -> now):",
        *(f"  {change}" for change in question.changes),
        f"so these runs are stored apart, as campaign {question.record.name}",
    ]


def _measure(
    question: Question,
    time_s: float,
    db: str | None,
    tell: LineReporter | TerminalReporter,
    *,
    take_over: bool,
) -> Verification:
    with (
        wiring.opened_database(db) as opened,
        wiring.held_campaign(opened, question.record, tell, take_over=take_over) as (
            store,
            campaign_id,
        ),
    ):
        benchmark = _benchmark(question, store, campaign_id)
        known = Evidence()
        for run in store.runs(question.stored.id):
            known.add(run)
        look_at = LOOK_AT if question.on else ""
        hand = ""
        if isinstance(benchmark, LocalBenchmark):
            hand = wiring.by_hand(benchmark, question.plan.workload, question.plan.timing)
        plan = _limited(question.plan, known)
        runner = Runner(plan, campaign_id, benchmark, store, look_at=look_at, by_hand=hand)
        runner.recover()
        runner.load()
        runner.new_trial(DEFAULT, "baseline")
        session = Session(runner.plan, runner, tell)
        phase = VerifyPhase(session, question.claim, known, time_s)
        tell.say(_outlook(question, phase))
        found = phase.run()
        if question.changes:
            store.finish_campaign(campaign_id)
        return found


def _benchmark(question: Question, store: Store, campaign_id: int) -> Benchmark | Batches:
    if question.on is not None:
        return wiring.more_on_slurm(question.on, store, campaign_id)
    answer = question.answer
    return wiring.prepare_pinned(
        question.mpi,
        answer.pinned,
        (*answer.pinned, *answer.variables),
        question.plan.workload,
        Path(question.record.folder),
        tuple(question.stored.what.get("guards", {})),
    )


def _limited(plan: Plan, known: Evidence) -> Plan:
    """The plan with a time limit for each run, from what the campaign's default took."""
    runs = known.good(Phase.SEARCH, Phase.CONFIRM)
    walls = [run.wall_s for run in runs if run.configuration.is_default]
    if plan.time_limit_s is not None or not walls:
        return plan
    return replace(plan, time_limit_s=time_limit(walls))


def _outlook(question: Question, phase: VerifyPhase) -> str:
    workload = question.plan.workload
    expected_s = 2 * phase.planned * phase.run_s()
    return (
        f"{question.name}: {workload.operation}, "
        f"{text.format_ranks(workload.ranks, workload.nodes)}, "
        f"{_count(len(question.claim.sizes), 'size')}; {phase.planned} blocks of 2 runs, about "
        f"{text.format_wall_time(expected_s)}, fewer if it is clear before"
    )


def _verification_summary(question: Question, found: Verification, where: str) -> str:
    """What came of it, for people."""
    so_far = "so far " if found.stopped == "interrupted" else ""
    parts = [
        f"{question.name}: {so_far}{found.finding}\n{_basis(question, found)}",
        _table(question, found),
        "\n".join(_remarks(question, found)),
        f"Stored in {where}, campaign {question.record.name}",
    ]
    return "\n\n".join(part for part in parts if part)


def _basis(question: Question, found: Verification) -> str:
    workload = question.plan.workload
    stack = f"{records.MPI_NAMES[question.mpi.flavour]} {question.mpi.version}"
    when = time.strftime("%Y-%m-%d", time.localtime(question.answer.created))
    why = {"clear": ", clear by then", "time": "", "failing": "", "interrupted": ", interrupted"}
    return (
        f"{workload.words}, "
        f"{text.format_ranks(workload.ranks, workload.nodes)}, {stack}; stated {when}, "
        f"measured again in {_count(found.blocks, 'block')}{why[found.stopped]}"
    )


def _table(question: Question, found: Verification) -> str:
    level = f"today, {text.format_confidence(question.plan.level)} together"
    header = ("size", "default", "tuned", "stated", level, "pairs", "finding")
    rows = [_row(size) for size in found.sizes]
    return text.format_table(header, rows, right="size,default,tuned,pairs")


def _row(size: SizeVerification) -> tuple[str, ...]:
    point = size.point
    stated = text.format_ratio(size.stated) if size.stated else "no harm"
    if point is None:
        return (text.format_size(size.bytes), "-", "-", stated, "-", "0", str(size.finding))
    return (
        text.format_size(size.bytes),
        text.format_duration(point.default_s),
        text.format_duration(point.tuned_s),
        stated,
        text.format_ratio(point.gain),
        str(point.gain.pairs),
        str(size.finding),
    )


def _remarks(question: Question, found: Verification) -> list[str]:
    said = []
    if found.oversubscribed:
        said.append("more ranks than cores: these times say nothing")
    if found.failures:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in found.failures.items())
        said.append(f"runs of the profile's settings failed: {counts}: {found.detail}")
    if found.lost:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in found.lost.items())
        said.append(f"runs were lost, for which nothing is blamed: {counts}")
    if limits := found.speeds.thresholds_s:
        said.append(f"compared within each of {len(limits) + 1} machine speeds{_moved(found)}")
    if found.finding is VerificationVerdict.UNDECIDED and not found.oversubscribed:
        said.append(_more(found))
    if question.changes:
        said.append("changed since the profile was measured: " + "; ".join(question.changes))
    return said


def _moved(found: Verification) -> str:
    """How the shares of the machine speeds changed, where that can explain another gain."""
    then, now = found.then, found.now
    if all(abs(then.get(name, 0.0) - share) <= OTHER_SHARES for name, share in now.items()):
        return ""
    changes = [f"{name} {then.get(name, 0.0):.0%} -> {now[name]:.0%}" for name in now]
    return f", whose shares changed: {', '.join(changes)}; gains may differ between them"


def _more(found: Verification) -> str:
    if found.more is None:
        return "undecided, and nobody can tell how many more runs would decide it"
    total_s = 2 * (found.blocks + found.more) * found.run_s
    return f"undecided: about {2 * found.more} more runs would tell: --time {_tens(total_s)}s"


def _tens(seconds_: float) -> int:
    """Whole tens of seconds, upwards."""
    return 10 * (int(seconds_) // 10 + 1)


def _verification_data(question: Question, found: Verification, where: str) -> dict[str, Any]:
    """The same as plain data, for ``--json``."""
    return {
        "profile": question.name,
        "finding": str(found.finding),
        "exit_code": int(ExitCode[found.finding.name]),
        "interrupted": found.stopped == "interrupted",
        "stopped": found.stopped,
        "stated_at": question.answer.created,
        "configuration": dict(question.claim.configuration),
        "campaign": question.record.name,
        "database": where,
        "changes": list(question.changes),
        "level": found.level,
        "blocks": found.blocks,
        "planned_blocks": found.planned,
        "more_blocks": found.more,
        "failures": {str(outcome): count for outcome, count in found.failures.items()},
        "lost": {str(outcome): count for outcome, count in found.lost.items()},
        "failure": found.detail,
        "oversubscribed": found.oversubscribed,
        "speed_shares": {"then": dict(found.then), "now": dict(found.now)},
        "sizes": [_size_plain(size) for size in found.sizes],
        "points": [asdict(point) for point in found.points],
    }


def _size_plain(size: SizeVerification) -> dict[str, Any]:
    return {
        "bytes": size.bytes,
        "finding": str(size.finding),
        "stated": asdict(size.stated) if size.stated else None,
        "today": asdict(size.point.gain) if size.point else None,
        "default_s": size.point.default_s if size.point else None,
        "tuned_s": size.point.tuned_s if size.point else None,
        "more_pairs": size.more,
    }


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def verify_command(
    profile: Annotated[str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")],
    time: Annotated[str, typer.Option(help="wall time of the runs")] = "30s",
    mpi: Annotated[str | None, typer.Option(help="which MPI [the campaign's]")] = None,
    db: DbOption = None,
    json_output: JsonOption = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the lock from a controller that is gone")
    ] = False,
) -> None:
    """Measure a profile again: exit code 0 holds, 10 weaker, 11 gone, 12 worse, 13 undecided."""
    run(profile, time, mpi, db, json_output=json_output, take_over=take_over)
