"""``commtune run`` keeps what protects hardware, and refuses what rests on too little."""

from __future__ import annotations

from pathlib import Path

import database_values as given
from command_line import CommandLine

from commtune.db.storage.store import Store
from commtune.model import Configuration


def test_a_guard_stays_as_the_environment_sets_it(store: Store, url: str, tmp_path: Path) -> None:
    found = Configuration({"NCCL_NVLS_ENABLE": "2", "NCCL_NTHREADS": "128"})

    campaign_id = store.open_campaign(given.campaign()).id
    store.add_trial(campaign_id, 1, found, "user")
    profile = given.profile(configuration=found)
    store.save_profiles(campaign_id, [profile])

    shell = CommandLine(tmp_path, {"NCCL_NVLS_ENABLE": "0", "NCCL_NTHREADS": "64"})
    words = ("run", "--profile", f"{given.campaign().name}/{profile.name}", "--db", url)
    said = shell(*words, "--", "printenv", "NCCL_NVLS_ENABLE", "NCCL_NTHREADS")
    assert said.out.split() == ["0", "128"], said.err
    assert "NCCL_NVLS_ENABLE=0 stays as your environment sets it" in said.err
    assert "replaces what your environment sets: NCCL_NTHREADS\n" in said.err
    assert f"{profile.name}: {profile.note}" in said.err
    del shell.extra["NCCL_NVLS_ENABLE"]
    assert shell(*words, "--", "printenv", "NCCL_NVLS_ENABLE").out == "2\n"


def test_what_rests_on_less_than_asked_for_is_not_applied(
    store: Store, url: str, tmp_path: Path
) -> None:
    campaign_id = store.open_campaign(given.campaign()).id
    profile = given.profile(points=(given.point(1024, "all"),))
    store.save_profiles(campaign_id, [profile])
    words = ("run", "--profile", f"{given.campaign().name}/{profile.name}", "--db", url)
    shell = CommandLine(tmp_path)
    assert shell(*words, "--min-pairs", "2", "--", "printenv", "HOME").out != ""
    said = shell(*words, "--min-days", "2", "--", "printenv", "HOME")
    assert said.out == ""
    assert f"profile {profile.name} rests on less than --min-days 2: " in said.err
