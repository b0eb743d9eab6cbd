"""``commtune tune``."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from commtune import wiring
from commtune.commands.progress import LineReporter, TerminalReporter, reporter
from commtune.commands.quick import Flags, flag, quick_campaign
from commtune.commands.summary import plain, summary
from commtune.db.location import database_url, shown_url, sqlite_path
from commtune.errors import CampaignError, CommtuneError, DatabaseFault, UserError
from commtune.model import MpiInstallation
from commtune.tuner.campaign_file import CampaignSpec, load_campaign


def run(
    campaign: Path | None,
    flags: Flags,
    db: str | None,
    *,
    json_output: bool,
    take_over: bool,
    program: str,
) -> None:
    """Runs or continues a campaign and prints what it came to."""
    tell = reporter()
    url = database_url(db)
    where = str(sqlite_path(url) or shown_url(url))
    spec, mpi = _campaign(campaign, flags)
    tell.say(f"{spec.plan.name}: {_outlook(spec)}")
    with wiring.database(db) as opened, _ended_cleanly(tell, spec, program):
        for warning in opened.warnings:
            tell.say(f"note: {warning}")
        report = wiring.tune(spec, mpi, opened, tell, take_over=take_over)
    tell.close()
    if json_output:
        print(json.dumps(plain(spec.plan, report, where), indent=2))
    else:
        print(
            summary(
                spec.plan, report, program=program, where=where, again=_again(campaign, program)
            )
        )


def _again(campaign: Path | None, program: str) -> str:
    """The command that goes on with a larger budget, with all that was asked for this time."""
    if campaign is not None:
        return (
            f"{program} tune {shlex.quote(str(campaign))}   (with a larger 'budget' in the file)"
        )
    return shlex.join([program, *sys.argv[1:], "--search", "5min"])


def _campaign(campaign: Path | None, flags: Flags) -> tuple[CampaignSpec, MpiInstallation]:
    if campaign is None:
        mpi = wiring.find(flags.mpi or "auto")
        space = wiring.preset_for(mpi, flags.operation or "allreduce")
        return quick_campaign(flags, space, f"{mpi.flavour}-{mpi.version}"), mpi
    given = [name for name, value in vars(flags).items() if value not in (None, ())]
    if given:
        raise UserError(
            f"{flag(given[0])} and a campaign file don't go together",
            hint=f"change it in {campaign}, or leave the file out and describe all by flags",
        )
    spec = load_campaign(campaign)
    try:
        return spec, wiring.find(spec.mpi)
    except UserError as error:
        raise CampaignError(
            f"mpi: {error.message}", file=campaign, line=spec.mpi_line, hint=error.hint
        ) from error


def _outlook(spec: CampaignSpec) -> str:
    plan = spec.plan
    count = len(plan.workload.sizes)
    return (
        f"{plan.workload.operation}, {plan.workload.ranks} ranks, "
        f"{count} size{'s' if count > 1 else ''}, {plan.space.count():,} configurations; "
        f"{plan.budget.search_s:g} s of search, {plan.budget.confirmation_s:g} s of confirmation"
    )


@contextmanager
def _ended_cleanly(
    tell: LineReporter | TerminalReporter, spec: CampaignSpec, program: str
) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a lost terminal end the run in progress; says how to go on."""
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:  # nohup: it wants to outlive the terminal
            signal.signal(number, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        tell.close()
        print(
            f"commtune: interrupted; everything measured is kept\n"
            f"  the same command goes on with {spec.plan.name}; '{program} status' shows it",
            file=sys.stderr,
        )
        sys.exit(130)
    except DatabaseFault as fault:
        tell.close()
        kept = "runs keep their record files; once that is mended, the same command goes on"
        raise DatabaseFault(fault.message, hint=f"{fault.hint}\n{kept}".strip()) from fault
    except CommtuneError:
        tell.close()
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: object) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt
