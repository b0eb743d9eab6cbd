"""Questions: answered alike by every database, and fast where it counts."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from best_rows import best_profiles
from database_values import profiles_of
from stores import opened_store

from commtune.db.connection.reader import OpenConnections, open_for_reading
from commtune.db.queries import profiles
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.errors import DatabaseFault, NoAnswer, UnknownName
from commtune.model import DEFAULT, Interval, Phase, PointEvidence, Verdict


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with two campaigns on two machines, the second one newer."""
    fill(store)
    return store


@pytest.fixture
def filled_file(sqlite_url: str) -> str:
    """The URL of an SQLite file with the same."""
    with opened_store(sqlite_url) as store:
        fill(store)
    return sqlite_url


def fill(store: Store) -> None:
    """Stores two campaigns on two machines, the second one newer."""
    first = store.open_campaign(given.campaign()).id
    other = given.campaign(
        "big",
        system=SystemRecord("sys-2", "cluster", {"gpus": 4}),
        stack=StackRecord("stack-2", "Open MPI 5.0", {"libraries": ["libucp"]}),
        simulated=True,
    )
    second = store.open_campaign(other).id
    small = given.profile(
        "small", bytes_low=8, bytes_high=1023, configuration=DEFAULT, verdict=Verdict.DEFAULT
    )
    store.save_profiles(first, [given.profile(), small])
    big = given.profile("big", ranks=8, nodes=2, backend="mpi-cuda", simulated=True)
    store.save_profiles(second, [big, replace(big, name="small", operation="alltoall")])


@pytest.mark.parametrize("snapshot", [True, False])
def test_questions_see_one_state_unless_they_take_long(filled: Store, snapshot: bool) -> None:
    asked = "SELECT count(*) AS profiles FROM profiles"
    with open_for_reading(filled.database.whole_url, snapshot=snapshot) as rows:
        ((before,),) = (row.values() for row in rows(asked, {}))
        for campaign in rows("SELECT id FROM campaigns", {}):
            filled.save_profiles(campaign["id"], [])
        assert before > 0
        assert rows(asked, {}) == [{"profiles": before if snapshot else 0}]


def test_the_newest_answer_comes_first(url: str, filled: Store) -> None:
    assert filled
    newest, older = best_profiles(url, "allreduce", 1 << 20)
    assert (newest.name, newest.campaign, newest.system) == ("big", "big", "cluster")
    assert (newest.system_fingerprint, newest.stack_fingerprint) == ("sys-2", "stack-2")
    assert (newest.stack, newest.simulated) == ("Open MPI 5.0", True)
    assert (older.name, older.configuration) == ("allreduce-large", given.TUNED)
    assert (older.verdict, older.simulated, older.note) == ("faster", False, "steady")
    assert (older.bytes_low, older.bytes_high, older.ranks) == (1024, 1 << 20, 2)
    assert newest.created > older.created
    assert [row.name for row in best_profiles(url, "allreduce", 1 << 20, limit=1)] == ["big"]


def test_evidence_is_that_of_the_nearest_measured_size(url: str, filled: Store) -> None:
    assert filled
    (row,) = best_profiles(url, "allreduce", 200_000, ranks=2)
    assert row.nearest_bytes == 1 << 20
    assert [point.speed for point in row.points] == ["fast", "slow"]
    assert row.points[0] == given.profile().points[1]
    (row,) = best_profiles(url, "allreduce", 4096, ranks=2)
    assert row.nearest_bytes == 1024


def test_both_ends_of_a_range_belong_to_it(url: str, filled: Store) -> None:
    assert filled
    for size, name in ((8, "small"), (1023, "small"), (1024, "allreduce-large")):
        assert [row.name for row in best_profiles(url, "allreduce", size, ranks=2)] == [name]


@pytest.mark.parametrize(
    "condition",
    [
        {"ranks": 8},
        {"nodes": 2},
        {"system": "cluster"},
        {"system": "sys-2"},
        {"backend": "mpi-cuda"},
        {"campaign": "big"},
        {"ranks": 8, "nodes": 2, "system": "cluster", "backend": "mpi-cuda", "campaign": "big"},
    ],
)
def test_conditions_narrow_the_answer(url: str, filled: Store, condition: dict[str, Any]) -> None:
    assert filled
    (row,) = best_profiles(url, "allreduce", 4096, **condition)
    assert row.campaign == "big"


@pytest.mark.parametrize("least", ["min_pairs", "min_days", "min_sessions", "min_nodes"])
def test_an_answer_rests_on_as_much_as_was_asked_for(url: str, filled: Store, least: str) -> None:
    """Seven pairs, confirmed within two days in two sessions on four nodes, not the search's."""
    campaign = given.begin(filled)
    last = 1_700_006_399.0  # of a day
    made = [(last, "s1", "n1 n2"), (last + 2, "s2", "n2 n3"), (last + 4000, "s3", "n10 n1")]
    for number, (started_at, session, nodes) in enumerate(made):
        run = given.request(f"c{number}", phase=Phase.CONFIRM, block=number)
        on = tuple(nodes.split())
        given.add_run(filled, campaign, run, session, started_at=started_at, nodes=on)
    search = given.request("search", block=9)
    given.add_run(filled, campaign, search, "s4", started_at=last + 10 * 86400, nodes=("n7",))
    filled.save_profiles(campaign, [given.profile(points=(given.point(1024, "all"),))])
    most = {"min_pairs": 7, "min_days": 2, "min_sessions": 2, "min_nodes": 4}[least]
    asked: dict[str, Any] = {"ranks": 2, least: most}
    (row,) = best_profiles(url, "allreduce", 4096, **asked)
    assert row.name == "allreduce-large"
    with pytest.raises(NoAnswer, match=f"{least.replace('_', ' ')} {most + 1}"):
        best_profiles(url, "allreduce", 4096, **asked | {least: most + 1})


def test_a_range_with_too_few_pairs_is_no_gap_between_others(url: str, filled: Store) -> None:
    ranges = ((8, 1024, 20), (4096, 65536, 7), (1 << 18, 1 << 20, 20))
    profiles = []
    for low, high, pairs in ranges:
        point = given.point(low, "all")
        points = (replace(point, gain=replace(point.gain, pairs=pairs)),)
        profiles.append(given.profile(f"{low}", bytes_low=low, bytes_high=high, points=points))
    number = filled.open_campaign(given.campaign("ranges")).id
    filled.save_profiles(number, profiles)
    asked: dict[str, Any] = {"campaign": "ranges", "min_pairs": 10}
    with pytest.raises(NoAnswer, match="min pairs 10"):
        best_profiles(url, "allreduce", 65536, **asked)
    (row, *_) = best_profiles(url, "allreduce", 2048, campaign="ranges")  # a gap
    assert row.name in {"8", "4096"}


def test_no_answer_says_what_there_is(url: str, filled: Store) -> None:
    assert filled
    with pytest.raises(NoAnswer) as refusal:
        best_profiles(url, "alltoall", 4, ranks=2, system="it's; DROP TABLE runs")
    assert refusal.value.message.startswith("no profile for alltoall, 4 B, ranks 2, system it's;")
    first, *rest = refusal.value.hint.removeprefix("there are: ").split("; ")
    assert first == "alltoall, 1 KiB to 1 MiB, 8 ranks on 2 nodes, mpi-cuda, on cluster"
    assert "allreduce, 8 B to 1 MiB, 2 ranks on 1 node, mpi-host, on laptop" in rest


@pytest.mark.parametrize("condition", [{}, {"ranks": 10**30}, {"nodes": -(10**30)}])
def test_a_number_that_no_database_holds_has_no_answer(
    url: str, filled: Store, condition: dict[str, Any]
) -> None:
    assert filled
    with pytest.raises(NoAnswer, match="no profile for allreduce"):
        best_profiles(url, "allreduce", 4096 if condition else 10**30, **condition)
    with pytest.raises(UnknownName, match="no profile 9999"):
        profiles.load_profile(url, "9" * 30)


def test_no_profile_yet_names_the_campaigns(url: str, store: Store) -> None:
    with pytest.raises(NoAnswer, match="no profile yet") as refusal:
        best_profiles(url, "allreduce", 8)
    assert refusal.value.hint == "commtune tune runs a campaign"
    store.open_campaign(given.campaign())
    with pytest.raises(NoAnswer) as refusal:
        best_profiles(url, "allreduce", 8)
    assert "shm" in refusal.value.hint and "commtune status" in refusal.value.hint


def test_a_profile_comes_back_whole(url: str, filled: Store) -> None:
    number = next(line.id for line in profiles_of(filled) if line.name == "allreduce-large")
    for ref in ("allreduce-large", "shm/allreduce-large", str(number)):
        answer = profiles.load_profile(url, ref)
        assert answer.profile == given.profile()
        assert (answer.id, answer.campaign) == (number, "shm")
        assert answer.system == given.campaign().system
        assert answer.stack == given.campaign().stack
        assert answer.space == given.campaign().space


def test_a_name_that_two_have_must_be_said_fully(url: str, filled: Store) -> None:
    assert filled
    with pytest.raises(UnknownName, match="2 profiles are called small") as refusal:
        profiles.load_profile(url, "small")
    assert "shm/small" in refusal.value.hint and "big/small" in refusal.value.hint
    assert profiles.load_profile(url, "big/small").profile.operation == "alltoall"


@pytest.mark.parametrize("ref", ["shm/allreduce-lrage", "99999", "", "%"])
def test_an_unknown_profile_names_those_there_are(url: str, filled: Store, ref: str) -> None:
    assert filled
    with pytest.raises(UnknownName, match=f"no profile {ref}") as refusal:
        profiles.load_profile(url, ref)
    assert "shm/allreduce-large" in refusal.value.hint


def test_the_list_is_that_of_the_store(url: str, filled: Store) -> None:
    assert profiles.find_profiles(url) == profiles_of(filled)
    assert [line.name for line in profiles.find_profiles(url, "shm")] == [
        "small",
        "allreduce-large",
    ]


def test_odd_floats_survive(url: str, store: Store) -> None:
    gain = Interval(1.1, 0.1 + 0.2, 1e300, 5)
    point = PointEvidence("allreduce", 1024, "all", 1e-9, 0.1 + 0.2, gain, Verdict.UNDECIDED)
    odd = given.profile(points=(point,), guards=(), bytes_high=1 << 40)
    store.save_profiles(store.open_campaign(given.campaign()).id, [odd])
    assert profiles.load_profile(url, "allreduce-large").profile == odd
    assert best_profiles(url, "allreduce", 1 << 40)[0].points == (point,)


def plan_of(
    url: str, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any], of: str
) -> list[str]:
    """How SQLite goes about the statements of a question in which a word occurs."""
    statements: list[str] = []

    class Traced(sqlite3.Connection):
        """Notes each statement with its values written in."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(statements.append)

    with monkeypatch.context() as watched:
        watched.setattr(sqlite3, "connect", Traced)
        ask()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return [
            row[3]
            for statement in statements
            if of in statement
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]


def test_an_answer_is_found_by_index(filled_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = plan_of(
        filled_file, monkeypatch, lambda: best_profiles(filled_file, "allreduce", 4096), "profile"
    )
    assert any("ix_profiles_best" in step for step in steps)
    # Of all verifications, which are few, it is asked which campaigns have harmful findings.
    scans = [
        step for step in steps if "SCAN" in step and not step.startswith("SCAN verifications")
    ]
    assert not scans and not any("measurements" in step for step in steps), steps


@pytest.mark.parametrize(("campaign", "how"), [(None, "SCAN"), (1, "SEARCH")])
def test_runs_are_counted_by_index_alone(
    filled_file: str, monkeypatch: pytest.MonkeyPatch, campaign: int | None, how: str
) -> None:
    steps = plan_of(
        filled_file, monkeypatch, lambda: list_summaries(filled_file, campaign), "FROM runs"
    )
    # In the order of the groups, so that nothing is sorted.
    (step,) = steps
    assert step.startswith(f"{how} runs USING COVERING INDEX ix_runs_campaign_state")


@pytest.mark.parametrize("table", ["trials", "profiles", "jobs"])
def test_the_summary_of_a_campaign_reads_no_others(
    filled_file: str, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    steps = plan_of(filled_file, monkeypatch, lambda: list_summaries(filled_file, 1), table)
    assert steps and not any(step.startswith(f"SCAN {table}") for step in steps), steps


def test_an_answer_takes_one_connection_to_a_server(
    postgresql_url: str, postgresql_socket: Path
) -> None:
    with opened_store(postgresql_url) as store:
        fill(store)
    log = postgresql_socket / "log"
    before = log.stat().st_size
    logged = f"{postgresql_url}&options=-c%20log_statement%3Dall"
    assert best_profiles(logged, "allreduce", 4096)
    said = re.findall(r"\[(\d+)\] LOG:  (?:statement|execute \S+): (.*)", read_from(log, before))
    statements = [statement for _, statement in said]
    assert len({process for process, _ in said}) == 1
    # One begins the transaction that all are in, and two ask for the schema.
    assert len(statements) <= 10 and "BEGIN" not in "".join(statements[1:]), statements


def test_a_server_finds_an_answer_by_index(postgresql_url: str, postgresql_socket: Path) -> None:
    with opened_store(postgresql_url) as store:
        fill(store)
    log = postgresql_socket / "log"
    before = log.stat().st_size
    # Tables so small are read whole, unless that is taken for expensive.
    explained = (
        "-c%20session_preload_libraries%3Dauto_explain%20-c%20auto_explain.log_min_duration%3D0"
        "%20-c%20enable_seqscan%3Doff"
    )
    assert best_profiles(f"{postgresql_url}&options={explained}", "allreduce", 4096)
    said = read_from(log, before)
    assert "ix_profiles_best" in said, said
    read_whole = set(re.findall(r"Seq Scan on (\w+)", said))
    assert not read_whole & {"runs", "measurements", "profiles", "campaigns", "trials"}, said


def read_from(file: Path, offset: int) -> str:
    return file.read_bytes()[offset:].decode()


def test_the_shells_way_imports_no_sqlalchemy(url: str, filled: Store) -> None:
    assert filled
    program = (
        "import sys; from commtune.app.profiles import best; "
        "from commtune.db.queries import profiles; "
        "next(best.best_at_size('allreduce', 4096, {}, db=sys.argv[1])); "
        "profiles.find_profiles(sys.argv[1]); "
        "profiles.load_profile(sys.argv[1], 'big/big', with_details=False); "
        "print(*{'sqlalchemy', 'alembic', 'numpy', 'platformdirs', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_no_database_yet(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    for ask in (
        lambda: best_profiles(url, "allreduce", 8),
        lambda: profiles.load_profile(url, "x"),
    ):
        with pytest.raises(NoAnswer, match="there is no database at") as refusal:
            ask()
        assert "commtune tune" in refusal.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_stays_empty(new_postgresql_url: str, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for url in (new_postgresql_url, f"sqlite:///{tmp_path}/empty.db"):
        with pytest.raises(NoAnswer, match="is empty"):
            profiles.find_profiles(url)
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    with pytest.raises(DatabaseFault, match="is not commtune's"):
        profiles.find_profiles(f"sqlite:///{path}")
    path.write_text("not a database, whatever it is called. " * 50)
    with pytest.raises(DatabaseFault, match="is not an SQLite database"):
        profiles.find_profiles(f"sqlite:///{path}")


def test_answers_come_while_a_controller_writes(filled: Store, url: str) -> None:
    with filled.database.write() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET folder = 'x'")
        assert best_profiles(url, "allreduce", 4096)


def test_somebody_elses_folder_can_be_read(as_nobody: Path) -> None:
    path = as_nobody / "commtune.db"
    with opened_store(path) as store:
        store.save_profiles(store.open_campaign(given.campaign()).id, [given.profile()])
    path.chmod(0o400)
    as_nobody.chmod(0o500)
    assert not os.access(as_nobody, os.W_OK, effective_ids=True)
    assert best_profiles(f"sqlite:///{path}", "allreduce", 4096)


def test_an_open_connection_sees_what_is_written_and_replaced(
    filled_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Counted(sqlite3.Connection):
        """Notes each file that is opened."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            opened.append(str(arguments[0]))
            super().__init__(*arguments, **options)

    path = tmp_path / "served.db"
    shutil.copy(filled_file.removeprefix("sqlite:///"), path)
    url = f"sqlite:///{path}"
    connections = OpenConnections(url)

    def names() -> list[str]:
        with connections.borrow():
            return [row.name for row in best_profiles(url, "allreduce", 1 << 20)]

    with monkeypatch.context() as watched:
        watched.setattr(sqlite3, "connect", Counted)
        assert names() == names() == ["big", "allreduce-large"]
        assert len(opened) == 1
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE profiles SET name = 'renamed' WHERE name = 'big'")
    assert names() == ["renamed", "allreduce-large"]
    for one in tmp_path.glob("served.db*"):
        one.unlink()
    shutil.copy(filled_file.removeprefix("sqlite:///"), path)
    assert names() == ["big", "allreduce-large"]
    path.parent.chmod(0o755)
    path.chmod(0o666)
    with pytest.raises(DatabaseFault, match="can write it"):
        names()
    path.unlink()
    with pytest.raises(NoAnswer, match="there is no database"):
        names()
    connections.close()
