"""``commtune show``, ``profiles``, ``rename`` and ``delete``: what is stored, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from commtune import formatting as text
from commtune import wording
from commtune.app.campaigns import stored
from commtune.commands.options import (
    DbOption,
    JsonOption,
    YesOption,
    called_as,
    is_confirmed,
    print_json,
    takes_least_strength,
)
from commtune.errors import DatabaseFault, UserError
from commtune.model import Tail, Verdict, Workload
from commtune.tuner.outcome.displayed_points import displayed_points

_Name = Annotated[str, typer.Argument(help="name of a campaign")]


def show_command(
    name: Annotated[str, typer.Argument(help="CAMPAIGN, CAMPAIGN/PROFILE, or a profile's number")],
    db: DbOption = None,
    json_output: JsonOption = False,
) -> None:
    """Describe a stored campaign or profile."""
    found = stored.find_stored(name, db, with_details=json_output)
    if isinstance(found, stored.ProfileAnswer):
        if json_output:
            print_json(stored.profile_data(found))
        else:
            print(_describe_profile(found))
        return
    profiles = stored.find_profiles(db, name)
    if json_output:
        print_json({**asdict(found), "profiles": [asdict(one) for one in profiles]})
    else:
        print(_describe_campaign(found, profiles))


def _describe_campaign(
    campaign: stored.CampaignDescription, profiles: list[stored.StoredProfile]
) -> str:
    if "workload" not in campaign.what:
        raise DatabaseFault(f"campaign {campaign.name} is stored without its workload")
    workload = Workload.of_plain(campaign.what["workload"])
    budget = campaign.settings.get("budget", {})
    spent = [
        f"{phase} {text.format_wall_time(budget[f'{phase}_s'])}"
        for phase in ("search", "ablation", "confirmation")
        if budget.get(f"{phase}_s")
    ]
    finished = campaign.finished
    ended = "not finished" if finished is None else f"finished {text.format_day(finished)}"
    lines = [
        f"{campaign.name}: {workload.words}, {text.format_ranks(workload.ranks, workload.nodes)}",
        f"  system   {campaign.system.name}",
        f"  library  {campaign.stack.text}, backend {workload.backend}",
        f"  sizes    {', '.join(map(text.format_size, workload.sizes))}",
        f"  space    {campaign.space.get('name') or 'unknown'}",
        f"  budget   {', '.join(spent) or 'unknown'}; seed {campaign.seed}",
        f"  started  {text.format_day(campaign.created)}, {ended}",
    ]
    warnings = wording.list_warnings(campaign.site, simulated=campaign.simulated)
    lines += [f"  {warning}" for warning in warnings]
    table = _list_profiles(profiles) if profiles else "no profiles yet"
    return "\n".join(lines) + f"\n\n{table}"


def _describe_profile(answer: stored.ProfileAnswer) -> str:
    profile = answer.profile
    rows = [
        (*wording.point_cells(p), p.speed, wording.describe_finding(p))
        for p in displayed_points(profile.points_inside)
    ]
    level = wording.format_simultaneous(answer.level, profile.level)
    header = (*wording.point_columns(level), "state", "verdict")
    settings = [f"  {name}={value}" for name, value in profile.configuration.items()]
    pinned = [f"  {name}={value} (pinned in every run)" for name, value in answer.pinned.items()]
    lines = [
        f"{answer.reference} (number {answer.id}): {wording.describe_verdict(profile.verdict)}",
        f"  {profile.operation}, {text.format_ranks(profile.ranks, profile.nodes)}, "
        f"{text.format_sizes(profile.bytes_low, profile.bytes_high)}, backend {profile.backend}",
        f"  on {answer.system.name}, {answer.stack.text}, {text.format_day(answer.created)}",
        *(settings or ["  keeps the default"]),
        *pinned,
        f"  {wording.describe_strength(answer.strength)}",
        *(
            f"  {said}"
            for said in (text.describe_conditions(profile.conditions), profile.note)
            if said
        ),
    ]
    warnings = wording.list_warnings(answer.site, simulated=profile.simulated)
    lines += [f"  {warning}" for warning in warnings]
    table = text.format_table(header, rows, right="size,default,candidate")
    parts = ["\n".join(lines), table if rows else "", _list_tails(profile.tails)]
    return "\n\n".join(part for part in parts if part)


def _list_tails(tails: Sequence[Tail]) -> str:
    """What stands beside the speedups; empty where nothing is stored."""
    rows = [(text.format_size(tail.bytes), *wording.tail_cells(tail)) for tail in tails]
    header = ("size", *wording.tail_columns())
    return text.format_table(header, rows, right="size,of 95th percentiles") if rows else ""


@takes_least_strength
def profiles_command(
    campaign: Annotated[str | None, typer.Argument(help="only those of this campaign")] = None,
    db: DbOption = None,
    **least: int | None,
) -> None:
    """List stored profiles, newest first."""
    found = stored.find_profiles(db, campaign, **least)
    none = "no such profiles" if any(least.values()) else "no profiles yet"
    print(_list_profiles(found) if found else f"{none}; commtune tune makes them")


def _list_profiles(profiles: list[stored.StoredProfile]) -> str:
    # The others' notes say why they are not recommended.
    noted = [one for one in profiles if one.note and one.verdict == Verdict.FASTER]
    rows = [
        {
            "number": str(one.id),
            "profile": f"{one.campaign}/{one.name}"
            + (" (simulated or replayed)" if one.simulated else ""),
            "operation": one.operation,
            "sizes": text.format_sizes(one.bytes_low, one.bytes_high),
            "ranks": text.format_ranks(one.ranks, one.nodes),
            "verdict": wording.describe_verdict(one.verdict)
            + (", see its note" if one in noted else ""),
        }
        for one in profiles
    ]
    notes = [text.format_note(f"{one.campaign}/{one.name}", one.note) for one in noted]
    return "\n\n".join([text.format_rows(rows, right="number"), *notes])


def rename_command(
    name: _Name,
    new: Annotated[str, typer.Argument(help="its new name")],
    db: DbOption = None,
) -> None:
    """Rename a campaign."""
    stored.rename_campaign(name, new, db)
    print(f"{name} is now {new}")
    if not stored.describe_campaign(db, new).site:
        print(f"to continue it, change 'name:' in its file, or add --name {new}")


def delete_command(
    name: _Name,
    yes: YesOption = False,
    db: DbOption = None,
) -> None:
    """Delete a campaign with its runs and profiles."""
    campaign = stored.describe_campaign(db, name)
    count = len(stored.find_profiles(db, name))
    lost = f"{name} with all its runs and {text.format_count(count, 'profile')}"
    if not yes and not is_confirmed(f"Delete {lost}?"):
        raise UserError(
            f"{name} was not deleted",
            hint=f"{called_as()} delete {name} --yes deletes it without asking",
        )
    stored.delete_campaign(name, db)
    print(f"deleted {lost}")
    if campaign.folder:
        print(f"the files of its runs stay in {campaign.folder}")
