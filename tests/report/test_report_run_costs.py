"""What a run costs, as the page says it: of runs in a real database, through the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import database_values as given
from report_words import words_in
from stores import opened_store

from commtune.app.profiles.reporting import write_campaign_report
from commtune.model import DEFAULT

_SPACE = {"name": "made-up", "version": 1, "variables": {}, "pinned": {}}
_HEADER = {"record": "header", "init_s": 0.25, "rank_info": []}
_FOOTER = {"elapsed_s": 0.5, "measure_s": 0.125}


def page(folder: Path, ends_s: list[float | None]) -> str:
    """The text of a report on runs of 1 s whose launchers ended so long after the last record."""
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        what = {"workload": given.request().workload.plain()}
        campaign_id = store.open_campaign(given.campaign(space=_SPACE, what=what)).id
        store.add_trial(campaign_id, 0, DEFAULT, "baseline")
        for number, end_s in enumerate(ends_s):
            request = given.request(f"r{number}", trial=0, configuration=DEFAULT)
            said: dict[str, Any] = {"header": _HEADER, "footer": _FOOTER, "end_s": end_s}
            given.add_run(store, campaign_id, request, **said, wall_s=1.0)
    write_campaign_report("shm", folder / "page.html", None, url)
    return words_in((folder / "page.html").read_text(encoding="utf-8"))


def test_medians_of_each_part(tmp_path: Path) -> None:
    said = page(tmp_path, [0.125, 0.25, 0.375])
    assert "What a run costs" in said
    for row in (
        "launch 250 ms 125 ms 375 ms 3 ",
        "MPI_Init 250 ms 250 ms 250 ms 3 ",
        "first calls 1.20 ms 1.20 ms 1.20 ms 3 ",
        "measuring 124 ms 124 ms 124 ms 3 ",
        "rest 125 ms 125 ms 125 ms 3 ",
        "end 250 ms 125 ms 375 ms 3 ",
        "whole run 1.00 s 1.00 s 1.00 s 3 ",
    ):
        assert row in said


def test_on_other_machines_launch_and_end_are_one(tmp_path: Path) -> None:
    said = page(tmp_path, [None])
    assert "launch and end 500 ms 500 ms 500 ms 1 " in said
    assert " end 500 ms" in said and "from the last record" not in said


def test_runs_that_tell_nothing_have_no_table(tmp_path: Path) -> None:
    assert "What a run costs" not in page(tmp_path, [])
