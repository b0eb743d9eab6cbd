"""``commtune status``, and with ``--since`` what happened, on one screen."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Annotated, Any

import typer

from commtune import formatting as text
from commtune import wording
from commtune.app.campaigns import stored
from commtune.app.campaigns.next_steps import describe_next_steps
from commtune.app.campaigns.recent import RecentCampaign, list_recent
from commtune.app.campaigns.stored import CampaignState, CampaignSummary
from commtune.app.profiles.nominal_share import Share
from commtune.commands.options import DbOption, JsonOption, print_json, shown_database
from commtune.db.settings import excluded_nodes, node_hours_budget
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import parse_seconds
from commtune.errors import InvalidValue, UserError
from commtune.model import Aggressor, JobKind, JobRecord, JobStage, Verdict

#: Jobs of a campaign, and campaigns of a summary, that are told one by one: what a screen holds.
_MOST_JOBS, _MOST_CAMPAIGNS = 12, 7
_DAY_S = 86400.0


def status_command(
    db: DbOption = None,
    json_output: JsonOption = False,
    since: Annotated[
        str | None,
        typer.Option(help="summary since then: yesterday, today, 12h, 2d, 2026-11-22T18:00"),
    ] = None,
) -> None:
    """List campaigns: state, trials, runs, best confirmed speedup, jobs.

    Exit codes with --since: 0 fine, 4 nothing ran, 20 a campaign needs somebody.
    """
    if since is not None:
        _print_recent(since, db, json_output=json_output)
        return
    listed = stored.ask_schedulers(stored.list_campaigns(db))
    if json_output:
        print_json([stored.summary_data(campaign, db) for campaign, _ in listed])
        return
    if not listed:
        print(f"no campaigns yet in {shown_database(db)}; start one with: commtune tune")
        return
    level = wording.format_common_level({campaign.settings.get("level") for campaign, _ in listed})
    rows = [_row(campaign, level, db) for campaign, _ in listed]
    print(text.format_rows(rows, right="trials,runs,failed,lost"))
    no_accounts = stored.explain_silent_accounts(
        campaign for campaign, is_old in listed if not is_old
    )
    for campaign, is_old in listed:
        for profile, note in campaign.notes.items():
            print(f"\n{text.format_note(f'{campaign.name}/{profile}', note)}")
        if said := _jobs(campaign, is_old=is_old, no_accounts=no_accounts):
            print(f"\n{said}")


def _row(campaign: CampaignSummary, level: str, db: str | None) -> dict[str, str]:
    return {
        "campaign": campaign.name + _describe_kind(campaign),
        "state": _describe_state(campaign),
        **{name: str(getattr(campaign, name)) for name in ("trials", "runs", "failed", "lost")},
        "measured": text.format_wall_time(campaign.wall_s),
        f"best confirmed speedup, {level}": _describe_speedup(campaign, db),
    }


def _jobs(campaign: CampaignSummary, *, is_old: bool, no_accounts: str) -> str:
    """What a scheduler does for a campaign, and did; empty where it has nothing to do with it."""
    has_jobs = campaign.jobs or campaign.node_hours or campaign.aggressor
    if not has_jobs or not campaign.folder:  # another site's has no folder here
        return ""
    kind = stored.scheduler_of(campaign)
    count, budget = _count_jobs(campaign), node_hours_budget(campaign.settings)
    of = "" if budget is None else f" of {text.format_node_hours(budget)}"
    said = [
        f"{count} when {kind.label} was last asked" if is_old else count,
        f"{text.format_node_hours(campaign.node_hours)}{of} node-hours used",
    ]
    if campaign.aggressor:
        said.append(f"runs {text.describe_aggressor(Aggressor.of_plain(campaign.aggressor))}")
    if without := excluded_nodes(campaign.settings):
        said.append(f"without {', '.join(without)}")
    headline = f"{campaign.name}: {'; '.join(said)}"
    steps = describe_next_steps(campaign, is_old=is_old, no_accounts=no_accounts)
    headline = "\n  ".join([headline, *steps])
    if not campaign.jobs:
        return headline
    if edited := stored.edited_files(campaign):
        headline = (
            f"{headline}\n  {', '.join(edited)} was edited since 'commtune submit': jobs use "
            f"a copy\n  'commtune cancel {campaign.name}', then 'commtune submit' applies it"
        )
    header = ("job", "for", "state", "since", "reason", "nodes")
    ordered = stored.sort_jobs(campaign.jobs)
    table = text.format_table(header, [_job(job) for job in ordered[:_MOST_JOBS]], right="job")
    further = []
    if more := ordered[_MOST_JOBS:]:
        count = text.format_count(len(more), "further job")
        further = [f"and {count}: {stored.count_job_states(more)}"]
    return "\n  ".join([headline, *table.splitlines(), *further])


def _count_jobs(campaign: CampaignSummary) -> str:
    """How many jobs there are: ``4 jobs in flight, 2 not submitted yet``."""
    alive = [job for job in campaign.jobs if job.stage is not JobStage.OVER]
    submitted = [job for job in alive if job.stage is JobStage.SUBMITTED]
    more = len(alive) - len(submitted)
    said = f"{text.format_count(len(submitted), 'job')} in flight"
    return f"{said}, {more} not submitted yet" if more else said


def _job(job: JobRecord) -> tuple[str, ...]:
    number, what, state, reason, nodes = stored.describe_job(job).values()
    since = job.prepared_at if job.started_at is None else job.started_at
    return (number, what, state, _describe_ago(since), reason, nodes)


def _describe_kind(campaign: CampaignSummary) -> str:
    """What must be said of a campaign that measured nothing, no real nodes, or not here."""
    return _describe_runs(campaign) + (f" (of {campaign.site})" if campaign.site else "")


def _describe_runs(campaign: CampaignSummary) -> str:
    if nodes := campaign.settings.get("emulated_nodes"):
        return f" ({text.describe_emulated(nodes)})"
    if recording := campaign.settings.get("replayed"):
        return f" (replayed from {recording})"
    return " (simulated)" if campaign.simulated else ""


def _describe_state(campaign: CampaignSummary) -> str:
    """The state, and by whom or since when."""
    if campaign.state is CampaignState.RUNNING:
        return f"running ({campaign.locked_by})"
    for job in campaign.jobs:
        if job.kind is JobKind.ALLOCATION and job.stage is JobStage.SUBMITTED:
            word = job.word or "submitted"
            return f"{word} (job {job.number})" if job.number else word
    if campaign.state is CampaignState.FINISHED and campaign.finished is not None:
        return f"finished {_describe_ago(campaign.finished)} ago"
    return str(campaign.state)


def _describe_ago(moment: float) -> str:
    """How long ago a moment (seconds since 1970) was."""
    return text.format_wall_time(time.time() - moment)


def _describe_speedup(campaign: CampaignSummary, db: str | None) -> str:
    """The best confirmed speedup, with its interval, pairs and share of the nominal bandwidth."""
    share = Share.of_best(campaign, db)
    return stored.describe_best_gain(campaign, str(share or ""))


class _ExitCode(IntEnum):
    """What a script in the morning wants to know."""

    FINE = 0
    NOTHING_RAN = 4
    LOOK = 20


def _print_recent(since: str, db: str | None, *, json_output: bool) -> None:
    """Prints the summary, and exits with the code that says whether to look."""
    now = datetime.now()
    moment = _parse_since(since, now)
    found = list_recent(moment, db)
    if json_output:
        print_json(_plain(found, moment, now.timestamp()))
    else:
        print(_describe(found, moment, now.timestamp(), db))
    sys.exit(_exit_code(found))


def _parse_since(written: str, now: datetime) -> float:
    """Parses ``yesterday``, ``today``, ``12h``, ``2d``, ``2026-11-22`` or ``2026-11-22T18:00``.

    Args:
        now: the local time.

    Returns:
        Seconds since 1970; days begin at midnight, local time.

    Raises:
        UserError: it can't be parsed, or is in the future.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": midnight, "yesterday": midnight - timedelta(days=1)}
    try:
        moment = days.get(written) or datetime.fromisoformat(written)
        since = moment.timestamp()
    except ValueError:
        since = now.timestamp() - _parse_ago(written)
    if since > now.timestamp():
        raise UserError(f"--since {written} is to come", hint="write yesterday, 12h or 2026-11-22")
    return since


def _parse_ago(written: str) -> float:
    try:
        if days := re.fullmatch(r"(\d{1,5})d", written):
            return int(days[1]) * _DAY_S
        return parse_seconds(written)
    except InvalidValue as error:
        raise UserError(
            f"--since: {quote_value(written)} is no moment",
            hint="write yesterday, today, 12h, 2d, 2026-11-22 or 2026-11-22T18:00",
        ) from error


def _exit_code(found: Sequence[RecentCampaign]) -> _ExitCode:
    if not found:
        return _ExitCode.NOTHING_RAN
    return _ExitCode.LOOK if any(one.need for one in found) else _ExitCode.FINE


def _describe(found: Sequence[RecentCampaign], since: float, until: float, db: str | None) -> str:
    window = f"commtune, {_minute(since)} to {_minute(until)}"
    if not found:
        return f"{window}: no campaign ran"
    # Those that somebody should look at first.
    ordered = sorted(found, key=lambda one: not one.need)
    measured = text.format_wall_time(sum(one.campaign.wall_s for one in found))
    lines = [
        f"{window}: {text.format_count(len(found), 'campaign')}, "
        f"{_runs([one.campaign for one in found])}, {measured} measured"
    ]
    for one in ordered[:_MOST_CAMPAIGNS]:
        lines += _lines(one, db)
    if rest := ordered[_MOST_CAMPAIGNS:]:
        lines.append(f"and {text.format_count(len(rest), 'further campaign')}: commtune status")
    return "\n".join(lines)


def _lines(one: RecentCampaign, db: str | None) -> list[str]:
    campaign = one.campaign
    named = f"{campaign.name}{_describe_kind(campaign)}"
    lines = [f"{named}: {_describe_state(campaign)}; {_runs([campaign])}"]
    if one.need:
        said = f"; the last job said: {one.words}" if one.words else ""
        lines.append(f"  LOOK: {one.need}{said}")
    if one.profiles:
        lines.append(f"  {_result(one, db)}")
        lines += [
            f"    {campaign.name}/{profile}: {note}" for profile, note in campaign.notes.items()
        ]
    return lines


def _result(one: RecentCampaign, db: str | None) -> str:
    campaign = one.campaign
    proven = [p for p in one.profiles if p.verdict == Verdict.FASTER]
    gone = sum(p.verdict == Verdict.WITHDRAWN for p in one.profiles)
    withdrawn = f"; {text.format_count(gone, 'profile')} withdrawn" if gone else ""
    if not proven or campaign.best is None:
        likely = sum(p.verdict == Verdict.LIKELY for p in one.profiles)
        more = f"; {text.format_count(likely, 'likely speedup')}" if likely else ""
        return f"keep the default{more}{withdrawn}"
    count = text.format_count(len(proven), "profile")
    best = f"{campaign.name}/{campaign.best.profile}"
    return f"{count} faster than the default; {best}: {_describe_speedup(campaign, db)}{withdrawn}"


def _runs(campaigns: Sequence[CampaignSummary]) -> str:
    runs, failed, lost = (
        sum(getattr(campaign, name) for campaign in campaigns)
        for name in ("runs", "failed", "lost")
    )
    counted = text.format_count(runs, "run")
    return f"{counted} ({failed} failed, {lost} lost)" if failed or lost else counted


def _minute(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _plain(found: Sequence[RecentCampaign], since: float, until: float) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "exit_code": int(_exit_code(found)),
        "campaigns": [
            {
                "campaign": one.campaign.name,
                "simulated": one.campaign.simulated,
                "state": str(one.campaign.state),
                "look": str(one.need) or None,
                "last_job_said": one.words,
                "outcomes": dict(one.campaign.outcomes),
                "runs": one.campaign.runs,
                "failed": one.campaign.failed,
                "lost": one.campaign.lost,
                "measured_s": one.campaign.wall_s,
                "finished": one.campaign.finished,
                "profiles": [
                    {"profile": f"{p.campaign}/{p.name}", "verdict": str(p.verdict)}
                    for p in one.profiles
                ],
                "best": _best(one),
                "notes": dict(one.campaign.notes),
            }
            for one in found
        ],
    }


def _best(one: RecentCampaign) -> dict[str, Any] | None:
    best = one.campaign.best
    if best is None or best.profile not in {p.name for p in one.profiles}:
        return None
    names = ("profile", "operation", "bytes", "ratio", "low", "high", "pairs")
    return {name: getattr(best, name) for name in names}
