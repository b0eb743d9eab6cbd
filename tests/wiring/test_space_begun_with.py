"""The space of a stored campaign that goes on, where another preset would be chosen today."""

from __future__ import annotations

from pathlib import Path

import database_values as values
import pytest

from commtune.db.storage.store import Store
from commtune.wiring import space_fitting

_CASES = {
    "another preset of the library": ("openmpi-host", {}, "openmpi-host"),
    "today's": ("openmpi", {}, "openmpi"),
    "a file": ("below", {}, "openmpi"),
    "a preset of another library": ("mpich-host", {}, "openmpi"),
    "a recording": ("openmpi-host", {"simulated": True}, "openmpi"),
}


@pytest.mark.parametrize("case", _CASES)
def test_a_campaign_goes_on_with_the_preset_that_it_was_begun_with(
    case: str, store: Store, url: str
) -> None:
    space, changes, expected = _CASES[case]
    plain = {"name": space, "version": 1, "library": "whatever"}
    store.open_campaign(values.campaign("stored", space=plain, **changes))
    assert space_fitting.preset_begun_with(url, "stored", "openmpi") == expected
    assert space_fitting.preset_begun_with(url, "another", "openmpi") == "openmpi"


def test_campaigns_from_before_spaces_had_names_get_today_s(store: Store, url: str) -> None:
    store.open_campaign(values.campaign("stored"))
    assert space_fitting.preset_begun_with(url, "stored", "openmpi") == "openmpi"


def test_without_a_database_it_is_today_s(tmp_path: Path) -> None:
    nowhere = f"sqlite:///{tmp_path / 'campaigns.db'}"
    assert space_fitting.preset_begun_with(nowhere, "stored", "openmpi") == "openmpi"
    assert not (tmp_path / "campaigns.db").exists()
