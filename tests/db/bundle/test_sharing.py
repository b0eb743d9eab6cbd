"""Bundles: written, signed, checked, merged; what another site measured is no answer here."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from best_rows import best_profiles
from command_line import SMALL
from components import require_component
from stored_campaigns import Made
from stores import opened_store

from commtune.app.campaigns import sharing
from commtune.app.campaigns.first_proposals import find_proposals
from commtune.app.campaigns.pseudonyms import Pseudonyms
from commtune.app.campaigns.recent import list_recent
from commtune.app.profiles.rule_files import prepare_rules
from commtune.app.profiles.use import apply_profile, export_profile
from commtune.campaign.loading import parse_campaign
from commtune.commands.campaigns import bundle as commands
from commtune.db.connection.engine import open_database
from commtune.db.inspection import find_damage
from commtune.db.lock_owner import LockOwner
from commtune.db.queries.best import measured_sizes
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.queries.proven import proven_profiles
from commtune.db.queries.results import find_results
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignRecord
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged, NoAnswer, UserError
from commtune.model import Configuration, Workload

WORKLOAD = {"operation": "allreduce", "sizes": list(given.SIZES), "ranks": 2, "nodes": 1}
WORDS = Workload.of_plain(WORKLOAD)
_PROFILE = given.profile(tails=(given.tail(1024),))


def record(name: str = "shm") -> CampaignRecord:
    """A campaign whose texts name its host and its user."""
    return given.campaign(
        name,
        what={"workload": WORKLOAD, "guards": {"UCX_LOG_FILE": "/home/ann/ucx.log"}},
        settings={"budget": {}, "slurm": {"file": "/home/ann/c.yaml", "exclude": ["gpu07"]}},
    )


def fill(url: str, name: str = "shm", run: str = "r1") -> None:
    """Stores a campaign with a run on two nodes, a profile, a job, and a run under way."""
    with opened_store(url) as store:
        handle, _ = store.begin(record(name), LockOwner("gpu01", "boot", 1, 2, 3))
        number = handle.id
        store.add_trial(number, 1, given.TUNED, "sampler")
        store.start_runs(number, [given.request(run), given.request(f"{run}-open")], "s1")
        header = {"argv": ["/home/ann/bench"], "rank_info": [{"host": "gpu01.site.example"}]}
        result = given.result(
            run,
            nodes=("gpu01", "gpu02"),
            header=header,
            output_tail="gpu01: bye",
            detail="ann@gpu01 lost gpu13 at 10.1.2.3",
        )
        store.finish_run(number, result, "allreduce")
        store.job_book(number).put_job(given.job(f"{name}-job"))
        store.add_execution(number, given.execution(said=("gpu[01-04] connect",)))
        store.save_profiles(number, [_PROFILE])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of another site's database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('site')}/commtune.db"
    fill(url)
    return url


@pytest.fixture(scope="module")
def bundle(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of it, not signed."""
    file = tmp_path_factory.mktemp("bundle") / "shm.bundle"
    sharing.create_bundle(file, db=source)
    return file


def merge(file: Path, url: str, site: str = "site-a") -> list[tuple[str, bool]]:
    return sharing.merge_bundle(sharing.read_bundle(file), site, url)


def test_a_merge_that_waits_for_another_program_says_so(bundle: Path, tmp_path: Path) -> None:
    url, said = f"sqlite:///{tmp_path}/here.db", list[str]()
    open_database(url).close()
    with closing(sqlite3.connect(tmp_path / "here.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def say(words: str) -> None:
            said.append(words)
            other.execute("ROLLBACK")

        ((_, is_new),) = sharing.merge_bundle(sharing.read_bundle(bundle), "site-a", url, say=say)
    assert is_new
    busy = f"the database {url} is busy: another program writes"
    assert said == [f"note: {busy}; waiting for it, at most 300 s"]


def lines(file: Path) -> Iterator[Any]:
    with gzip.open(file) as opened:
        yield from map(json.loads, opened)


def test_a_bundle_has_no_name_of_a_host_or_user(bundle: Path) -> None:
    text = gzip.decompress(bundle.read_bytes()).decode().lower()
    for name in ("gpu0", "gpu1", "ann", "site.example", "10.1.2.3", "bench", "c.yaml", "bye"):
        assert name not in text, name
    assert socket.gethostname().lower() not in text.replace("mpi-host", "")
    (run,) = (row for table, row in list(lines(bundle))[1:] if table == "runs")
    first, second = run["nodes"].split(",")
    assert first != second and first.startswith("host-")
    # Who runs the test may have a name as well, which is a user's, too.
    assert re.match(rf"user-\d@{first} lost host-", run["detail"])
    assert run["header"]["rank_info"] == [{"host": first}]


def test_names_are_there_for_who_asks(source: str, tmp_path: Path) -> None:
    file = tmp_path / "named.bundle"
    assert sharing.create_bundle(file, ["shm"], names=True, db=source).names
    text = gzip.decompress(file.read_bytes()).decode()
    assert "gpu01.site.example" in text and "gpu01: bye" in text


def test_words_of_ours_are_nobodys_names() -> None:
    rows = [("runs", {"nodes": "host,device01", "operation": "allreduce"})]
    assert {"host", "device01"} & set(Pseudonyms.of_rows(rows).known) == {"device01"}


def test_merging_keeps_all_evidence(bundle: Path, source: str, url: str) -> None:
    fill(url, "own", "own-r1")
    assert merge(bundle, url) == [("shm@site-a", True)]
    assert merge(bundle, url) == [("shm@site-a", False)]
    with opened_store(source) as theirs, opened_store(url) as ours:
        number = {one.name: one.id for one in given.summaries_of(ours)}["shm@site-a"]
        (run,), (merged,) = theirs.runs(1), ours.runs(number)
        assert merged.measurements == run.measurements
        assert given.samples_of(ours, "r1", 8) == given.samples_of(theirs, "r1", 8)
        assert given.count(ours, "jobs") == 1 and given.count(ours, "locks") == 1
        (loaded,) = find_profiles(url, "shm@site-a")
        assert load_profile(url, str(loaded.id)).profile == _PROFILE
        assert find_damage(ours.database) == []


def test_facts_know_their_site(bundle: Path, url: str) -> None:
    fill(url, "own", "own-r1")
    merge(bundle, url)
    with opened_store(url) as store:
        sites = {one.name: one.site for one in given.summaries_of(store)}
        assert sites == {"own": "", "shm@site-a": "site-a"}
    assert {one.campaign: one.site for one in find_profiles(url)} == sites
    results = find_results(url, [])
    place = list(results.columns).index("site")
    assert {row[0]: row[place] for row in results} == sites
    assert {one.campaign.name for one in list_recent(0.0, url)} == {"own"}


def test_a_verification_stays_one_of_the_other_sites_profile(tmp_path: Path, url: str) -> None:
    source = f"sqlite:///{tmp_path}/source.db"
    with opened_store(source) as store:
        store.open_campaign(replace(record("again"), settings={"verifies": "shm/large"}))
    sharing.create_bundle(tmp_path / "again", db=source)
    merge(tmp_path / "again", url)
    assert [one.settings for one in list_summaries(url)] == [{"verifies": "shm@site-a/large"}]


def test_what_another_site_measured_is_no_answer(bundle: Path, sqlite_url: str) -> None:
    merge(bundle, sqlite_url)
    with pytest.raises(NoAnswer) as refused:
        best_profiles(sqlite_url, "allreduce", 1024)
    assert "measured at site-a: new campaigns try it first" in refused.value.hint
    assert measured_sizes(sqlite_url, "allreduce") == []
    (stored,) = find_profiles(sqlite_url)
    answer = load_profile(sqlite_url, str(stored.id))
    uses: list[Callable[[], object]] = [
        lambda: export_profile(answer, "sh", None),
        lambda: apply_profile(str(stored.id), "true", {}, sqlite_url),
        lambda: prepare_rules("shm@site-a", "mpich-json", db=sqlite_url),
    ]
    for use in uses:
        with pytest.raises(UserError, match="was measured at site-a"):
            use()


def test_another_sites_campaign_is_not_continued(
    bundle: Path, sqlite_store: Store, sqlite_url: str
) -> None:
    merge(bundle, sqlite_url)
    with pytest.raises(CampaignChanged, match="site"):
        sqlite_store.begin(record("shm@site-a"))


def test_new_campaigns_try_the_best_of_other_sites_first(bundle: Path, url: str) -> None:
    merge(bundle, url)
    (found,) = proven_profiles(url, WORDS)
    assert (found.site, found.configuration) == ("site-a", given.TUNED)


def test_nothing_of_another_site_is_tried_that_the_space_lacks(
    tmp_path: Path, sqlite_url: str
) -> None:
    legal = Configuration({"MPIR_CVAR_DEVICE_COLLECTIVES": "none"})
    loads_code = Configuration({"LD_PRELOAD": "/tmp/evil.so"})
    found = [
        given.profile("known", configuration=legal),
        given.profile("evil", configuration=loads_code),
    ]
    other = f"sqlite:///{tmp_path}/other.db"
    with opened_store(other) as store:
        store.save_profiles(store.open_campaign(record()).id, found)
    sharing.create_bundle(tmp_path / "b", db=other)
    merge(tmp_path / "b", sqlite_url)
    plain = parse_campaign(SMALL.partition("budget:")[0], tmp_path)
    spec = find_proposals(plain, sqlite_url)(plain)
    assert spec.plan.first == (legal,)
    assert spec.remarks[-1].startswith("note: tried first, as shm@site-a found it best: ")


def test_the_same_name_with_other_runs_is_a_conflict(
    bundle: Path, tmp_path: Path, sqlite_url: str
) -> None:
    merge(bundle, sqlite_url)
    other = f"sqlite:///{tmp_path}/other.db"
    fill(other, run="r9")
    sharing.create_bundle(tmp_path / "other.bundle", db=other)
    with pytest.raises(UserError, match="already here, with other runs") as refused:
        merge(tmp_path / "other.bundle", sqlite_url)
    assert "commtune delete shm@site-a" in refused.value.hint
    # From another site it is another campaign.
    assert merge(tmp_path / "other.bundle", sqlite_url, "site-b") == [("shm@site-b", True)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE measurements SET median_s = 2 * median_s",
        "UPDATE runs SET outcome = 'interrupted' WHERE run_id = 'r1'",
        "UPDATE profiles SET minimum_gain = 0.03",
    ],
)
def test_the_same_campaign_with_other_results_is_a_conflict(
    tmp_path: Path, sqlite_url: str, change: str
) -> None:
    source = f"sqlite:///{tmp_path}/source.db"
    fill(source)
    sharing.create_bundle(tmp_path / "before", db=source)
    merge(tmp_path / "before", sqlite_url)
    with open_database(source) as database, database.write() as connection:
        assert connection.exec_driver_sql(change).rowcount
    sharing.create_bundle(tmp_path / "after", db=source)
    with pytest.raises(UserError, match="already here, with other runs or results"):
        merge(tmp_path / "after", sqlite_url)


def test_campaigns_that_swapped_their_names_are_known_again(
    tmp_path: Path, sqlite_url: str
) -> None:
    source = f"sqlite:///{tmp_path}/source.db"
    fill(source, "one", "r1")
    fill(source, "two", "r2")
    sharing.create_bundle(tmp_path / "before", db=source)
    merge(tmp_path / "before", sqlite_url)
    with open_database(source) as database, database.write() as connection:
        for name, new in (("one", "free"), ("two", "one"), ("free", "two")):
            connection.exec_driver_sql(
                f"UPDATE campaigns SET name = '{new}' WHERE name = '{name}'"
            )
    sharing.create_bundle(tmp_path / "after", db=source)
    known = [("one@site-a", False), ("two@site-a", False)]
    assert merge(tmp_path / "after", sqlite_url) == known


def test_of_a_bundle_all_is_stored_or_nothing(bundle: Path, sqlite_url: str) -> None:
    fill(sqlite_url, "mine", "r1")  # a run of the same name
    with pytest.raises(UserError, match="another campaign's"):
        merge(bundle, sqlite_url)
    with opened_store(sqlite_url) as store:
        assert [one.name for one in given.summaries_of(store)] == ["mine"]
        assert given.count(store, "systems") == 1


def test_only_the_site_that_measured_shares(bundle: Path, tmp_path: Path, sqlite_url: str) -> None:
    merge(bundle, sqlite_url)
    with pytest.raises(UserError, match="was measured at site-a"):
        sharing.create_bundle(tmp_path / "x", ["shm@site-a"], db=sqlite_url)
    with pytest.raises(NoAnswer):
        sharing.create_bundle(tmp_path / "x", db=sqlite_url)
    assert not (tmp_path / "x").exists()


def test_a_whole_campaign_comes_back(tmp_path: Path, sqlite_url: str) -> None:
    source = f"sqlite:///{tmp_path}/made.db"
    with opened_store(source) as store:
        Made(trials=4, blocks=4).store(store)
    sharing.create_bundle(tmp_path / "b", db=source)
    assert merge(tmp_path / "b", sqlite_url) == [("made-up@site-a", True)]
    assert merge(tmp_path / "b", sqlite_url) == [("made-up@site-a", False)]
    with open_database(source) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET name = 'renamed'")
    sharing.create_bundle(tmp_path / "c", db=source)
    assert merge(tmp_path / "c", sqlite_url) == [("made-up@site-a", False)]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two keys, and a file that allows the first to sign bundles."""
    require_component("ssh-keygen", shutil.which("ssh-keygen") is not None)
    folder = tmp_path_factory.mktemp("keys")
    for name in ("site-a", "stranger"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    public = (folder / "site-a.pub").read_text()
    (folder / "allowed").write_text(f'site-a namespaces="commtune-bundle" {public}')
    (folder / "others").write_text(f'site-a namespaces="git" {public}')
    return folder


def test_a_signed_bundle_tells_its_site(
    source: str, keys: Path, tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, allowed = tmp_path / "signed.bundle", keys / "allowed"
    commands.bundle_create_command(file, ["shm"], sign=keys / "site-a", db=source)
    commands.bundle_inspect_command(file, allowed)
    assert "signed by site-a" in capsys.readouterr().out
    for _ in range(2):
        commands.bundle_merge_command(file, allowed, db=sqlite_url)
    assert capsys.readouterr().out.splitlines() == [
        "stored shm@site-a",
        "shm@site-a is already there",
    ]
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match="not what was signed"):
        sharing.read_bundle(file, allowed)


def test_a_signature_that_does_not_hold_is_refused(
    source: str, bundle: Path, keys: Path, tmp_path: Path
) -> None:
    file = tmp_path / "strange.bundle"
    sharing.create_bundle(file, key=keys / "stranger", db=source)
    assert sharing.read_bundle(file).signed and not sharing.read_bundle(file).signer
    with pytest.raises(UserError, match="signer is not in"):
        sharing.read_bundle(file, keys / "allowed")
    with pytest.raises(UserError, match="is not signed"):
        sharing.read_bundle(bundle, keys / "allowed")
    signed = tmp_path / "signed.bundle"
    sharing.create_bundle(signed, key=keys / "site-a", db=source)
    with pytest.raises(UserError):
        sharing.read_bundle(signed, keys / "others")  # the key may sign commits only
    with pytest.raises(UserError, match="can't sign"):
        sharing.create_bundle(tmp_path / "x", key=keys / "allowed", db=source)
    assert not (tmp_path / "x").exists()


def test_whose_a_bundle_is_must_be_said(bundle: Path, sqlite_url: str) -> None:
    with pytest.raises(UserError, match="who may sign"):
        commands.bundle_merge_command(bundle, db=sqlite_url)
    with pytest.raises(UserError, match="can't name a site"):
        commands.bundle_merge_command(bundle, unsigned="a/b", db=sqlite_url)


def test_what_is_in_a_bundle_as_json(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands.bundle_inspect_command(bundle, json_output=True)
    told = json.loads(capsys.readouterr().out)
    (campaign,) = told["campaigns"]
    assert (campaign["name"], campaign["runs"], campaign["measurements"]) == ("shm", 1, 3)
    assert (told["signed"], told["names"]) == (False, False)
