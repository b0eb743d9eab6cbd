"""``commtune db``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.commands.options import DbOption, YesOption, called_as, is_confirmed, shown_database
from commtune.db.connection.location import database_url
from commtune.documents.quantities import whole_number
from commtune.errors import DatabaseFault, UserError
from commtune.formatting import format_count


def db_path_command(db: DbOption = None) -> None:
    """Print where the database is."""
    print(shown_database(db))


def db_upgrade_command(db: DbOption = None) -> None:
    """Upgrade the database's schema to this version of commtune."""
    from commtune.app.setup.upgrading import upgrade_database

    print(f"{upgrade_database(db)} has the schema of this version")


def db_check_command(db: DbOption = None) -> None:
    """Read all of the database and list what is damaged; exit code 3 if anything is."""
    from commtune.db.inspection import inspect_database

    place, damage = inspect_database(db)
    for one in damage:
        print(one)
    if damage:
        found = format_count(len(damage), "damaged value")
        raise DatabaseFault(
            f"the database {place} has {found}",
            hint="commtune db repair rebuilds it without damaged campaigns; the old file is kept",
        )
    print(f"{place} is sound")


def db_repair_command(db: DbOption = None) -> None:
    """Rebuild the database from the undamaged campaigns; the old file is kept."""
    from commtune.db.repair import set_damaged_apart

    done = set_damaged_apart(database_url(db))
    if done is None:
        print("nothing is damaged, and nothing was changed")
        return
    for one in done.damage:
        print(one)
    print(f"kept: {', '.join(done.kept) or 'no campaign'}")
    print(f"set apart: {', '.join(done.set_apart) or 'no campaign'}")
    print(f"the database as it was: {done.side_file}")


def db_backup_command(
    file: Annotated[Path, typer.Argument(help="the copy, a file that is not there yet")],
    db: DbOption = None,
) -> None:
    """Write a consistent copy of the database, also while a campaign writes."""
    from commtune.db.repair import back_up

    back_up(database_url(db), file)
    print(file)


def _days(written: str) -> int:
    if (days := whole_number(written.removesuffix("d")) or 0) > 0:
        return days
    raise typer.BadParameter(f"{written!r} is not a number of days, such as 30")


def db_prune_command(
    older_than: Annotated[
        int,
        typer.Option("--older-than", metavar="DAYS", parser=_days, help="days since the last run"),
    ],
    yes: YesOption = False,
    db: DbOption = None,
) -> None:
    """Drop samples that no profile of an old campaign rests on; compress its record files."""
    from commtune.app.setup.pruning import find_prunable, prune_campaigns, record_files

    found = find_prunable(older_than, db)
    runs = sum(campaign.runs for campaign in found)
    files = sum(len(record_files(campaign)) for campaign in found)
    old = format_count(len(found), "campaign")
    if not (runs or files):
        print(f"nothing to prune in {old} without a run in {format_count(older_than, 'day')}")
        return
    print(f"{old} without a run in {format_count(older_than, 'day')}:")
    lost = format_count(runs, "run")
    print(f"  {lost} of search and ablation would lose samples and output, for good")
    print(f"  {format_count(files, 'record file')} would be compressed")
    if not yes and not is_confirmed("Prune?"):
        raise UserError(
            "nothing was pruned",
            hint=f"{called_as()} db prune --older-than {older_than} --yes prunes without asking",
        )
    for name, why in prune_campaigns(found, db):
        print(f"{name} was left as it is: {why}")
    print("pruned")
