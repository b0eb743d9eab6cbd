"""A store behind a service gives what the database itself gives, and says what is wrong."""

from __future__ import annotations

import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from service_client import TOKEN, served_at
from stored_campaigns import Made
from stores import opened_store

import commtune as ct
from commtune.commands.campaigns import manage, results
from commtune.commands.profiles import best, use
from commtune.db.connection.location import shown_url
from commtune.db.connection.service import with_token
from commtune.db.queries.results import COLUMNS
from commtune.errors import CommtuneError, DatabaseFault, NoAnswer, UnknownName, UserError
from commtune.service.server import Place

PREFIX = "/site"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with two campaigns, one of them replayed."""
    file = str(tmp_path_factory.mktemp("served") / "made.db")
    with opened_store(file) as store:
        Made(trials=20, blocks=12).store(store)
        Made(name="replayed", simulated=True).store(store)
    return file


@pytest.fixture(scope="module")
def address(file: str) -> Iterator[str]:
    """Where it is served, below a prefix."""
    with served_at(file, PREFIX) as printed:
        yield printed.partition("/?")[0]


@pytest.fixture
def stores(file: str, address: str) -> Iterator[tuple[ct.Store, ct.Store]]:
    """The database itself, and the same behind its service."""
    with ct.open_store(file) as local, ct.open_store(f"{address}/", token=TOKEN) as served:
        yield local, served


def test_all_reads_give_the_same(stores: tuple[ct.Store, ct.Store]) -> None:
    local, served = stores
    assert served.campaigns() == local.campaigns()
    assert list(served.profiles()) == list(local.profiles())
    assert served.profiles("replayed")[0] == local.profiles("replayed")[0]
    for least, count in ((1, len(local.profiles())), (10**6, 0)):
        for store in stores:
            assert len(store.profiles(min_pairs=least, min_days=least, min_nodes=1)) == count
    some = local.profiles("made-up")[0]
    assert served.profile(some.reference) == served.profile(some.number) == some
    assert served.results().rows() == local.results().rows()
    assert served.results("made-up").to_frame().equals(local.results("made-up").to_frame())
    for size in (8, 1000, 8192, "64KiB", "1MiB"):
        assert served.best("allreduce", size) == local.best("allreduce", size)
    found = served.best("allreduce", "1MiB", campaign="made-up")
    assert found.export() == local.best("allreduce", "1MiB", campaign="made-up").export()


def test_a_unix_socket_serves_the_same(file: str, tmp_path: Path) -> None:
    path = tmp_path / "user@here.sock"
    with served_at(file, place=Place(path)), ct.open_store(file) as local:
        for where in (f"unix:{path}", f"unix://{path}"):
            with ct.open_store(where, token=TOKEN) as served:
                assert served.best("allreduce", 8192) == local.best("allreduce", 8192)
                assert list(served.profiles()) == list(local.profiles())
        with pytest.raises(UserError, match=r"here\.sock wants a token"):
            ct.open_store(f"unix:{path}")
    with pytest.raises(DatabaseFault, match=r"here\.sock can't be reached: no such file"):
        ct.open_store(f"unix:{path}", token=TOKEN)


def test_errors_are_those_of_the_database(stores: tuple[ct.Store, ct.Store]) -> None:
    questions: list[Callable[[ct.Store], Any]] = [
        lambda store: store.best("alltoall", 8),
        lambda store: store.profile("made-up/none"),
        lambda store: store.profile(999),
        lambda store: store.results("none").rows(),
    ]
    for question in questions:
        said = []
        for store in stores:
            with pytest.raises((NoAnswer, UnknownName)) as raised:
                question(store)
            said.append((raised.type, raised.value.message, raised.value.hint))
        assert said[0] == said[1]


def test_commands_print_the_same(
    file: str,
    address: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(token))
    commands: list[Callable[[str], None]] = [
        *(
            lambda db, size=size, as_json=as_json: best.best_command(
                "allreduce", size, campaign="made-up", db=db, json_output=as_json
            )
            for size in (None, "8", "8192", "1MiB")
            for as_json in (False, True)
        ),
        lambda db: use.export_command("made-up/allreduce-65536-1048576", "sh", db=db),
        lambda db: results.results_command(["made-up"], db=db),
        *(
            lambda db, pairs=pairs: manage.profiles_command("made-up", min_pairs=pairs, db=db)
            for pairs in (None, 1, 99)
        ),
    ]
    for command in commands:
        printed = []
        for db in (file, address):
            command(db)
            printed.append(capsys.readouterr().out.replace(address, file))
        assert printed[0] == printed[1] != ""


def test_what_only_a_database_can_do_is_said(stores: tuple[ct.Store, ct.Store]) -> None:
    with pytest.raises(UserError, match="is a service, and this needs the database itself") as no:
        _ = stores[1].database
    assert TOKEN not in no.value.message and TOKEN not in repr(stores[1])


def refusal(address: str, token: str | None = TOKEN) -> CommtuneError:
    with pytest.raises(CommtuneError) as raised:
        ct.open_store(address, token=token)
    assert TOKEN not in f"{raised.value.message} {raised.value.hint}"
    return raised.value


def test_a_wrong_address_or_token_is_said(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "doesn't know the token" in refusal(address, "another-token").message
    monkeypatch.delenv("COMMTUNE_TOKEN", raising=False)
    missing = refusal(address, None)
    assert missing.message.endswith("wants a token") and "COMMTUNE_TOKEN_FILE" in missing.hint
    assert "not one word" in refusal(address, "two\r\nwords").message
    printed = refusal(f"{address}/?token=secret", None)
    assert "other users of this machine see" in printed.message
    assert "secret" not in printed.message
    assert "Invalid IPv6 URL" in refusal("http://[fe80", None).message
    assert "has a user" in refusal(address.replace("://", "://me:you@"), None).message
    # All paths begin with the prefix: elsewhere, somebody else answers.
    assert "another version" in refusal(address.removesuffix(PREFIX)).message
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # no business of this machine's ports
    monkeypatch.setenv("COMMTUNE_TOKEN", TOKEN)
    ct.open_store(address)
    nobody = refusal("http://127.0.0.1:9")
    assert "can't be reached: connection refused" in nobody.message and "ssh -L" in nobody.hint
    assert isinstance(nobody, DatabaseFault) and nobody.transient
    assert "no TLS in common" in refusal(address.replace("http://", "https://")).message


class _Page(http.server.BaseHTTPRequestHandler):
    """Whatever a web server may say in the place of a service."""

    says: tuple[int, dict[str, str], bytes] = (200, {}, b"")
    seen: list[str | None]

    def do_GET(self) -> None:
        status, headers, body = self.says
        self.seen.append(self.headers.get("authorization"))
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def web_server(
    status: int, headers: dict[str, str], body: bytes, certificate: Path | None = None
) -> Iterator[tuple[str, list[str | None]]]:
    """A web server that says the same to everybody; its address, and the tokens that it saw."""
    seen: list[str | None] = []
    handler = type("Page", (_Page,), {"says": (status, headers, body), "seen": seen})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"{scheme}://localhost:{server.server_address[1]}", seen
        server.shutdown()


_JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (200, {"content-type": "text/html"}, b"<html>", "no commtune service: it answers with te"),
        (200, _JSON, b"{", "its answer is no JSON"),
        (200, _JSON, b"[" * 200_000, "its answer is no JSON"),
        (302, {"location": "http://127.0.0.1:9/login"}, b"", "it sends on to 'http://127.0.0.1:9"),
        (404, {"content-type": "text/html"}, b"<html>", "it answers with status 404"),
        (401, {"content-type": "text/html"}, b"<html>", "doesn't know the token"),
        (503, _JSON, b'{"error": {"code": "busy", "message": "full", "hint": ""}}', ": full"),
        (
            404,
            _JSON,
            b'{"error": {"code": "not-found", "message": "no", "hint": ""}}',
            "another v",
        ),
        (200, {"content-type": "application/json", "content-length": "9"}, b"{", "be reached"),
    ],
)
def test_a_page_that_is_no_service_is_said(
    status: int, headers: dict[str, str], body: bytes, said: str
) -> None:
    with web_server(status, headers, body) as (address, seen):
        assert said in refusal(address).message
    assert seen[0] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(("retry_after", "asked"), [("0", 2), ("Wed, 21 Oct", 1), ("\xb2", 1)])
def test_a_busy_service_is_asked_once_more(retry_after: str, asked: int) -> None:
    said = b'{"error": {"code": "busy", "message": "too many ask", "hint": "later"}}'
    told = {"content-type": "application/json", "retry-after": retry_after}
    with web_server(503, told, said) as (address, seen):
        assert "too many ask" in refusal(address).message
        assert len(seen) == asked


def test_answers_of_another_version_are_said() -> None:
    with (
        web_server(200, _JSON, b'{"version": "9.1", "sizes": 1}') as (address, _),
        pytest.raises(DatabaseFault, match=r"another version of commtune, 9\.1") as raised,
    ):
        ct.open_store(address, token=TOKEN).profile(1)
    assert "pip install --upgrade" in raised.value.hint


def test_results_without_a_column_are_of_another_version() -> None:
    page = {"campaign_id": 1, "newest": 1, "variables": [], "columns": ["run"], "next": None}
    with (
        web_server(200, _JSON, json.dumps(page | {"rows": [["r1"]], "version": "1"}).encode()) as (
            address,
            _,
        ),
        pytest.raises(DatabaseFault, match="another version of commtune, 1 "),
    ):
        ct.open_store(address, token=TOKEN).results("night").rows()


def test_a_page_that_is_its_own_next_one_ends_the_reading() -> None:
    page = {"campaign_id": 1, "newest": 9, "variables": [], "columns": [*COLUMNS], "rows": []}
    served = json.dumps(page | {"next": 7, "version": "1"}).encode()
    with (
        web_server(200, _JSON, served) as (address, seen),
        pytest.raises(DatabaseFault, match="behind run 7 it names 7 as the next page"),
    ):
        ct.open_store(address, token=TOKEN).results("night").rows()
    assert len(seen) < 10


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "site.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", str(made), "-nodes"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    certificate = tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", *key, *name, "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + certificate.read_text())
    with web_server(200, _JSON, b"{}", made) as (address, seen):
        refused = refusal(address)
        assert "a certificate that is not to be trusted" in refused.message
        assert "SSL_CERT_FILE" in refused.hint and not seen
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        ct.open_store(address, token=TOKEN)
        assert seen == [f"Bearer {TOKEN}"]


def test_the_place_of_a_token_is_that_of_a_password() -> None:
    assert shown_url(with_token("https://host/path", "a/b")) == "https://:***@host/path"
