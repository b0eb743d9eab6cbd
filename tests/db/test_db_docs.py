"""The page about the database names what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import database_values as given
import pytest
from sqlalchemy import inspect, text

from commtune.db.connection.location import SCHEMA
from commtune.db.storage.store import Store
from commtune.db.tables import METADATA

PAGE = (Path(__file__).parents[2] / "docs" / "database.md").read_text()


def described(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE))


def test_every_table_and_view_is_described_and_no_other(sqlite_store: Store) -> None:
    tables, _, views = PAGE.partition("## Tables")[2].partition("## Views")
    assert described(tables) == set(METADATA.tables)
    assert described(views) == set(inspect(sqlite_store.database.engine).get_view_names())
    assert f"`{SCHEMA}`" in PAGE


def test_the_query_of_costs_gives_what_commands_show(sqlite_store: Store) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.partition("## Views")[0], re.DOTALL)
    header = {"init_s": 0.25, "library": {"init_s": 0.125}}
    footer = {"elapsed_s": 0.625, "measure_s": 0.125}
    campaign_id = given.begin(sqlite_store)
    given.add_run(sqlite_store, campaign_id, header=header, footer=footer, end_s=0.0625)
    (cost,) = sqlite_store.costs(campaign_id).values()
    with sqlite_store.database.read() as connection:
        (row,) = connection.execute(text(query)).mappings()
    assert row["run_id"] == "r1"
    parts = {name: value for name, value in row.items() if name != "run_id"}
    assert parts == pytest.approx({name: getattr(cost, str(name)) for name in parts})


def test_the_program_that_reads_samples_works(sqlite_store: Store, sqlite_url: str) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    campaign_id = given.begin(sqlite_store)
    given.add_run(sqlite_store, campaign_id)
    path = sqlite_url.removeprefix("sqlite:///")
    arguments = [sys.executable, "-c", f"{program}\nprint(*samples_s)", path]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    printed = [float(word) for word in done.stdout.split()]
    assert printed == pytest.approx(given.result().measurements[0].samples_s, rel=1e-6)
