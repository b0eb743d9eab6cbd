"""``commtune tune`` with what earlier campaigns of the database found best."""

from __future__ import annotations

import json
from pathlib import Path

import database_values as given
import pytest
from command_line import CommandLine
from step_program import LAUNCHED, MODES_SPACE, STEP_CAMPAIGN, STEP_PROGRAM, write_one_rank
from stores import opened_store

from commtune.model import Configuration

FOUND = Configuration({"MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir"})


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    """A command line whose database has a campaign for another operation."""
    line = CommandLine(tmp_path)
    line.database.parent.mkdir(parents=True)
    with opened_store(line.database) as store:
        number = store.open_campaign(given.campaign("night")).id
        store.save_profiles(number, [given.profile(operation="broadcast", configuration=FOUND)])
    return line


def test_it_is_tried_first_and_the_result_says_what_it_brought(here: CommandLine) -> None:
    write_one_rank(here, campaign=LAUNCHED.replace("trials: 3", "trials: 10"))
    said = here.succeed("tune", "campaign.yaml")
    assert f"note: tried first, as night found it best: {FOUND}" in said.err
    assert "\nTried first, from earlier campaigns: " in said.out
    ((environment, origin),) = here.query(
        "SELECT c.environment, t.origin FROM trials t JOIN configurations c "
        "ON c.id = t.configuration_id WHERE t.number = 1"
    )
    assert (json.loads(environment), origin) == (dict(FOUND), "user")
    again = here("tune", "campaign.yaml", "--json")  # the same question: it is finished
    assert again.code == 0, again.err
    assert json.loads(again.out)["learned"].startswith("Tried first, from earlier campaigns: ")
    here.succeed("report", "small", "-o", "page.html")
    assert "Tried first, from earlier campaigns: " in (here.folder / "page.html").read_text()


def test_names_as_options(here: CommandLine) -> None:
    options = ("tune", "--mpi", "wheel:mpich", "--sizes", "8", "--trials", "0")
    wrong = here(*options, "--learn-from", "nigth")
    assert (wrong.code, wrong.out) == (2, "")
    assert "there is no campaign 'nigth' to learn from" in wrong.err
    assert "nearest: night" in wrong.err
    none = here.succeed(*options, "--search", "1s", "--learn-from", "none", "--json")
    assert json.loads(none.out)["learned"] == ""
    assert "tried first" not in none.err


def test_an_unknown_name_in_a_file_is_refused_with_its_line_before_any_run(
    here: CommandLine,
) -> None:
    here.write("touch measured\n" + STEP_PROGRAM, "step.sh")
    here.write(MODES_SPACE, "space.yaml")
    # Runs tell what one costs where no budget is named.
    lines = [line for line in STEP_CAMPAIGN.splitlines() if not line.startswith("budget")]
    here.write("\n".join([*lines, "learn_from: [nigth]\n"]))
    said = here("tune", "campaign.yaml")
    assert said.code == 2
    words = f"campaign.yaml:{len(lines) + 1}: there is no campaign 'nigth' to learn from"
    assert words in said.err
    assert not (here.folder / "measured").exists()
