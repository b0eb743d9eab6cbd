"""A campaign need not be named where there is one only."""

from __future__ import annotations

from pathlib import Path

import database_values as given
import pytest
from stores import opened_store

from commtune.app.profiles.plotting import choose_campaign, write_plot
from commtune.errors import NoAnswer, UnknownName, UserError


def stored(url: str, *names: str) -> None:
    with opened_store(url) as store:
        for name in names:
            store.open_campaign(given.campaign(name))


def test_the_only_campaign_is_meant(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/commtune.db"
    stored(url, "first")
    assert choose_campaign(None, url) == "first"
    assert choose_campaign("other", url) == "other"
    stored(url, "second")
    with pytest.raises(UserError, match="there are 2 campaigns") as raised:
        choose_campaign(None, url)
    assert raised.value.hint == "name one: second, first"


def test_no_database_is_made_by_asking(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer):
        choose_campaign(None, f"sqlite:///{tmp_path}/commtune.db")
    assert not (tmp_path / "commtune.db").exists()


def test_a_picture_of_nothing_says_what_there_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/commtune.db"
    stored(url, "first")
    with pytest.raises(NoAnswer, match="campaign first has no confirmed measurements"):
        write_plot(None, tmp_path / "p.svg", url)
    with pytest.raises(UnknownName) as raised:
        write_plot("fist", tmp_path / "p.svg", url)
    assert raised.value.hint == "campaigns: first"
