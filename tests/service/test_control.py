"""``commtune serve --control``: it ends a campaign for who may, and refuses everybody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from components import require_component
from service_client import BEARER, CONTROL, TOKEN, Client, served_at
from stores import opened_store
from waiting import PATIENCE_S

import commtune as ct
from commtune.commands.campaigns.jobs import cancel_command
from commtune.db.connection.engine import open_database
from commtune.db.lock_owner import LockOwner, _start_of
from commtune.errors import DatabaseFault, NotCancellable, UserError
from commtune.service.control import CANCEL
from commtune.wiring.user_folders import data_folder

PAGE = CANCEL.format(campaign="tonight")
API = f"/api/v1{PAGE}"
CONTROLS = {"authorization": f"Bearer {CONTROL}"}
#: As a browser sends it with the form of the campaign's page.
FORM = {"host": "here:1", "origin": "http://here:1"}

#: A controller, as far as the database and signals are concerned.
_PROGRAM = """
import sys, time
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.interrupts import signals_interrupt
Store(open_database(sys.argv[1])).lock(int(sys.argv[2]))
with signals_interrupt():
    print("held", flush=True)
    try:
        time.sleep(900)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.fixture
def number(db: str) -> int:
    """A campaign on this machine that nobody works on yet."""
    with opened_store(db) as store:
        return store.open_campaign(given.campaign("tonight")).id


@pytest.fixture
def client(db: str, number: int, ask: Callable[..., Client]) -> Client:
    """A client of a service that may end campaigns."""
    del number
    return ask(db, has_control=True)


@contextmanager
def started(*words: str, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(words, stdout=subprocess.PIPE, user=user) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def controller(db: str, number: int, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is called as the command, and holds the campaign."""
    program = tmp_path / "commtune"
    program.write_text(_PROGRAM)
    with started(sys.executable, str(program), f"sqlite:///{db}", str(number)) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process


def hold(db: str, number: int, pid: int, **other: Any) -> None:
    """Has the database say that this process is the campaign's controller."""
    us = LockOwner.current()
    owner = {**vars(us), "pid": pid, "pid_start": _start_of(pid) or 0, **other}
    with opened_store(db) as store:
        store.lock(number, LockOwner(**owner), take_over=True)


def cookie_of(client: Client, word: str, token: str) -> str:
    first = client.get(f"/?{word}={token}", {})
    assert (first.status, first.headers["location"]) == (303, "/")
    assert first.headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    return first.headers["set-cookie"].partition(";")[0]


def test_a_program_ends_a_campaign(
    client: Client, controller: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    got = client.get(API, CONTROLS, "POST")
    assert got.status == 200, got.text
    assert got.data["campaign"] == "tonight"
    assert got.data["message"].startswith(f"process {controller.pid} on ")
    assert controller.wait(timeout=PATIENCE_S) == 130
    assert f"ended over HTTP: campaign 'tonight': 'process {controller.pid} on" in caplog.text
    again = client.get(API, CONTROLS, "POST")
    assert (again.status, again.data["error"]["code"]) == (409, "not-cancellable")
    assert "no controller works on it" in again.data["error"]["message"]


def test_a_browser_ends_a_campaign_by_the_button_of_its_page(
    client: Client, controller: subprocess.Popen[bytes]
) -> None:
    reads = {"cookie": cookie_of(client, "token", TOKEN)}
    button = f'<form action="{PAGE}" method="post">'
    assert button not in client.get("/campaigns/tonight", reads).text
    both = {"cookie": f"{reads['cookie']}; {cookie_of(client, 'control', CONTROL)}"}
    page = client.get("/campaigns/tonight", both)
    assert button in page.text
    assert "only reads" not in page.text
    # Else a browser would say "null" in the place of the page that a form is of.
    assert page.headers["referrer-policy"] == "same-origin"
    got = client.get(PAGE, {**both, **FORM}, "POST")
    assert (got.status, got.headers["location"]) == (303, "/campaigns/tonight")
    assert controller.wait(timeout=PATIENCE_S) == 130
    assert button not in client.get("/campaigns/tonight", reads).text


def test_who_may_not_is_refused_and_nothing_ends(
    client: Client, db: str, controller: subprocess.Popen[bytes]
) -> None:
    reads, controls = cookie_of(client, "token", TOKEN), cookie_of(client, "control", CONTROL)
    before = sha256(Path(db).read_bytes()).hexdigest()
    refused: Sequence[tuple[str, dict[str, str], int]] = [
        (API, {}, 401),
        (API, BEARER, 401),
        (API, {"authorization": f"Bearer {CONTROL[:-1]}"}, 401),
        (API, {"authorization": f"Basic {CONTROL}"}, 401),
        (API, {"cookie": controls, **FORM}, 401),  # no form of any page reaches the API
        (API, {**CONTROLS, "host": "here:1", "origin": "http://here:2"}, 403),
        (PAGE, {"cookie": reads, **FORM}, 401),
        (PAGE, {"cookie": controls.replace("=", "=x"), **FORM}, 401),
        (PAGE, {"cookie": f"{reads}; {controls}"}, 403),
        (PAGE, {"cookie": controls, "host": "here:1", "origin": "http://here:2"}, 403),
        (PAGE, {"cookie": controls, "host": "here:1", "origin": "http://here"}, 403),
        (PAGE, {"cookie": controls, "host": "here:1", "origin": "null"}, 403),
        (PAGE, {"cookie": controls, "host": "here:1", "origin": "http://[here:1"}, 403),
        (PAGE, {"cookie": controls, "origin": "http://here:1"}, 403),
        (f"{API}?control={CONTROL}", {}, 401),
        (f"{API}?a=1", CONTROLS, 400),
        ("/api/v1/campaigns/none/cancel", CONTROLS, 404),
        (f"/api/v1{CANCEL.format(campaign='..%2f..%2fetc')}", CONTROLS, 405),  # no such path
    ]
    for path, headers, status in refused:
        got = client.get(path, headers, "POST")
        assert got.status == status, (path, headers, got.text)
        assert CONTROL not in got.text and TOKEN not in got.text
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        for path in (API, PAGE):
            got = client.get(path, {**CONTROLS, "cookie": f"{reads}; {controls}"}, method)
            assert (got.status, got.headers["allow"]) == (405, "POST")
    assert controller.poll() is None
    assert sha256(Path(db).read_bytes()).hexdigest() == before


def test_the_control_token_reads_nothing(client: Client) -> None:
    assert client.get("/api/v1/campaigns", CONTROLS).status == 401
    assert client.get("/", {"cookie": cookie_of(client, "control", CONTROL)}).status == 401
    assert client.get(f"/?token={CONTROL}", {}).status == 401
    assert client.get(f"/?control={TOKEN}", {}).status == 401


def test_without_the_flag_nothing_is_controlled(
    db: str, number: int, ask: Callable[..., Client]
) -> None:
    del number
    client = ask(db)
    for path in (API, PAGE):
        got = client.get(path, {**CONTROLS, **FORM}, "POST")
        assert (got.status, got.headers["allow"]) == (405, "GET, HEAD")
    assert client.get(f"/?control={CONTROL}", {}).status == 401
    assert "/campaigns/{campaign}/cancel" not in client.get("/api/v1/openapi.json").data["paths"]


def test_the_document_says_how_a_campaign_is_ended(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").data
    said = document["paths"][CANCEL]["post"]
    assert said["security"] == [{"control": []}]
    assert {"200", "401", "403", "404", "409"} <= said["responses"].keys()
    codes = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]
    assert {"not-cancellable", "forbidden"} <= set(codes["code"]["enum"])


def refusal(client: Client) -> str:
    got = client.get(API, CONTROLS, "POST")
    assert (got.status, got.data["error"]["code"]) == (409, "not-cancellable")
    return f"{got.data['error']['message']}; {got.data['error']['hint']}"


def test_what_is_not_this_users_command_on_this_machine_goes_on(
    client: Client, db: str, number: int
) -> None:
    """Whoever writes the database doesn't choose which process is ended."""
    with started("sleep", "120") as other:
        hold(db, number, other.pid)
        assert (
            f"is not the command 'commtune'; end it as you end that program; kill {other.pid}"
            in (refusal(client))
        )
        assert other.poll() is None
    hold(db, number, os.getpid(), host="node7", boot_id="another", pid_namespace=1)
    said = refusal(client)
    assert "process" in said and "on node7, is not on this machine" in said
    assert "there: commtune cancel tonight" in said


def test_a_campaign_of_another_user_goes_on(
    client: Client, db: str, number: int, tmp_path: Path
) -> None:
    require_component("root, who starts a process of another user", os.geteuid() == 0)
    program = Path("/bin/sleep")
    with started(str(program), "120", user=65534) as other:
        hold(db, number, other.pid)
        said = refusal(client)
        assert "belongs to another user; as that user: commtune cancel tonight" in said
        assert other.poll() is None
    runs = tmp_path / "runs"
    runs.mkdir()
    os.chown(runs, 65534, 65534)
    record = given.campaign("theirs", what={"slurm": {}}, folder=str(runs))
    with opened_store(db) as store:
        store.open_campaign(record)
    got = client.get(API.replace("tonight", "theirs"), CONTROLS, "POST")
    assert got.status == 409 and "belongs to another user" in got.text


def test_what_another_site_measured_is_not_ended(client: Client, db: str, number: int) -> None:
    with open_database(f"sqlite:///{db}") as database, database.write() as connection:
        connection.exec_driver_sql(f"UPDATE campaigns SET site = 'site-b' WHERE id = {number}")
    assert "was measured at site-b" in refusal(client)


def test_no_name_leads_out_of_the_folder_of_campaigns(
    client: Client, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the database can't be read, folders tell which jobs are a campaign's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    data = data_folder()
    (data / "campaigns").mkdir(parents=True)
    Path(db).write_bytes(b"no database" * 1000)
    for name in ("..", "."):
        got = client.get(f"/api/v1/campaigns/{name}/cancel", CONTROLS, "POST")
        assert (got.status, got.data["error"]["code"]) == (400, "bad-request"), got.text
    assert client.get(API, CONTROLS, "POST").status == 503
    assert not list(data.glob("**/cancelled"))


def test_the_python_client_ends_a_campaign(db: str, controller: subprocess.Popen[bytes]) -> None:
    with served_at(db, control=CONTROL) as address:
        where = address.partition("/?")[0]
        with ct.open_store(where, token=TOKEN) as store:
            for wrong in (None, TOKEN):
                with pytest.raises(UserError):
                    store.cancel("tonight", control_token=wrong)
            assert controller.poll() is None
            assert f"process {controller.pid}" in store.cancel("tonight", control_token=CONTROL)
            assert controller.wait(timeout=PATIENCE_S) == 130
            with pytest.raises(NotCancellable, match="no controller works on it"):
                store.cancel("tonight", control_token=CONTROL)
    with (
        served_at(db) as address,
        ct.open_store(address.partition("/?")[0], token=TOKEN) as store,
        pytest.raises(DatabaseFault, match="this address answers GET only"),
    ):
        store.cancel("tonight", control_token=CONTROL)


def test_the_command_ends_a_campaign_on_this_machine(
    db: str, controller: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    cancel_command("tonight", db)
    first, then = capsys.readouterr().out.splitlines()
    assert first.startswith(f"tonight: process {controller.pid} on ")
    assert first.endswith(" was told to stop; what was measured is kept")
    assert then.endswith("tune' continues it")
    assert controller.wait(timeout=PATIENCE_S) == 128 + signal.SIGINT
    with ct.open_store(db) as store, pytest.raises(NotCancellable, match="no controller"):
        store.cancel("tonight")
