"""``commtune status``."""

from __future__ import annotations

from typing import Annotated

import typer

from commtune import formatting as text
from commtune import wording
from commtune.app.campaigns import stored
from commtune.app.campaigns.next_steps import describe_next_steps
from commtune.app.campaigns.stored import CampaignSummary
from commtune.commands.campaigns.recent import print_recent
from commtune.commands.campaigns.state import (
    describe_ago,
    describe_kind,
    describe_speedup,
    describe_state,
)
from commtune.commands.options import DbOption, JsonOption, print_json, shown_database
from commtune.model import Aggressor, JobRecord

#: Jobs of a campaign that are listed one by one: what a screen has room for.
_MOST_JOBS = 12


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
        print_recent(since, db, json_output=json_output)
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
        if said := _jobs(campaign, is_old=is_old, no_accounts=no_accounts):
            print(f"\n{said}")


def _row(campaign: CampaignSummary, level: str, db: str | None) -> dict[str, str]:
    return {
        "campaign": campaign.name + describe_kind(campaign),
        "state": describe_state(campaign),
        **{name: str(getattr(campaign, name)) for name in ("trials", "runs", "failed", "lost")},
        "measured": text.format_wall_time(campaign.wall_s),
        f"best confirmed speedup, {level}": describe_speedup(campaign, db),
    }


def _jobs(campaign: CampaignSummary, *, is_old: bool, no_accounts: str) -> str:
    """What a scheduler does for a campaign, and did; empty where it has nothing to do with it."""
    if not campaign.jobs and not campaign.node_hours and not campaign.aggressor:
        return ""
    kind = stored.scheduler_of(campaign)
    count, budget = stored.count_jobs(campaign), stored.node_hours_budget(campaign.settings)
    of = "" if budget is None else f" of {text.format_node_hours(budget)}"
    said = [
        f"{count} when {kind.label} was last asked" if is_old else count,
        f"{text.format_node_hours(campaign.node_hours)}{of} node-hours used",
    ]
    if campaign.aggressor:
        said.append(f"runs {text.describe_aggressor(Aggressor.of_plain(campaign.aggressor))}")
    if without := stored.excluded_nodes(campaign.settings):
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


def _job(job: JobRecord) -> tuple[str, ...]:
    number, what, state, reason, nodes = stored.describe_job(job).values()
    since = job.prepared_at if job.started_at is None else job.started_at
    return (number, what, state, describe_ago(since), reason, nodes)
