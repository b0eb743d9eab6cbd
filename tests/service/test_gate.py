"""Who may read, what is refused, and that no request does more than read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import database_values as given
import pytest
from hostile_values import NASTY
from prometheus_client.parser import text_string_to_metric_families
from service_client import BEARER, TOKEN, Client, Got
from stores import opened_store

from commtune.errors import UserError
from commtune.model import Outcome
from commtune.private_files import read_token
from commtune.service.api import PREFIX, QUESTIONS
from commtune.service.auth import Tokens
from commtune.service.control import CANCEL
from commtune.service.pages import PAGES, STATIC
from commtune.service.parameters import BEST, EXPORT, RUNS

API = "/api/v1/campaigns"
#: Hostile ones; all of them take a quarter of a minute.
_REQUESTS = 10_000
#: What is served of the package, and the health, need no token.
OPEN = ("/api/v1/health", *(f"/static/{name}" for name in STATIC))


def test_without_the_token_nothing_is_told(client: Client) -> None:
    paths = [f"{PREFIX}{one.path}" for one in QUESTIONS] + [one.path for one in PAGES]
    paths += ["/campaigns/made-up/events", "/api/v1/openapi.json", "/metrics", "/nothing"]
    wrong: list[dict[str, str]] = [
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        {"authorization": "Bearer \xff\xfe"},
        {"cookie": f"commtune-1={TOKEN}"},
        {"cookie": "commtune-1="},
    ]
    for path in set(paths) - set(OPEN):
        for headers in wrong:
            got = client.get(path.replace("{campaign}", "made-up"), headers)
            assert got.status == 401, (path, headers)
            assert "made-up machine" not in got.text and TOKEN not in got.text
    assert all(client.get(path, {}).status == 200 for path in OPEN)
    assert "made-up" not in client.get("/api/v1/health", {}).text
    assert "with --token-file, the contents of that file" in client.get("/", {}).text


def test_the_first_visit_trades_the_token_for_a_cookie(client: Client) -> None:
    first = client.get(f"/campaigns/made-up?token={TOKEN}&a=b%26c", {})
    assert (first.status, first.headers["location"]) == (303, "/campaigns/made-up?a=b%26c")
    cookie = first.headers["set-cookie"]
    assert TOKEN not in cookie
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert client.get("/", {"cookie": f"other=1; {cookie.partition(';')[0]}"}).status == 200
    assert client.get("/?token=wrong", BEARER).status == 401
    assert "or reads it from its --token-file" in client.get("/?token=wrong", {}).text
    # The API takes no token in its address, where logs and histories keep it.
    assert client.get(f"{API}?token={TOKEN}", {}).status == 401
    away = client.get(f"//elsewhere.example/?token={TOKEN}", {})
    assert away.headers["location"] == "/elsewhere.example/"


def test_a_token_with_a_plus_is_accepted_as_it_is_and_encoded(
    db: str, ask: Callable[..., Client]
) -> None:
    token = "ab+cd/ef++gh0123456789=="
    client = ask(db, token=token)
    for written in (token, quote(token, safe="")):
        assert client.get(f"/?token={written}", {}).status == 303
    assert client.get(f"/?token={token[:-1]}", {}).status == 401


def test_a_new_token_ends_what_the_old_one_opened(client: Client) -> None:
    old = Tokens("the-token-of-yesterday", "commtune-1")
    assert old.admits("", {old.cookie: old.cookie_value})
    assert client.get("/", {"cookie": f"{old.cookie}={old.cookie_value}"}).status == 401
    assert client.get("/", {"authorization": "Bearer the-token-of-yesterday"}).status == 401
    assert client.get("/?token=the-token-of-yesterday", {}).status == 401


def test_behind_a_proxy_all_paths_have_the_prefix(db: str, ask: Callable[..., Client]) -> None:
    client = ask(db, "/commtune")
    first = client.get(f"/commtune/?token={TOKEN}", {})
    assert first.headers["location"] == "/commtune/"
    assert "Path=/commtune;" in first.headers["set-cookie"]
    page = client.get("/commtune/campaigns/made-up").text
    assert all(link.startswith("/commtune/") for link in links(page))
    assert client.get(f"/commtune{API}").data
    assert client.get("/commtune/api/v1/openapi.json").data["servers"][0]["url"] == (
        "/commtune/api/v1"
    )
    for path in (API, "/", "/commtunes/"):
        assert client.get(path).status == 404


def links(page: str) -> list[str]:
    """All that a page refers to, but for places in itself."""
    pieces = [rest.partition('"')[0] for name in ("href", "src", "action") for rest in
              page.split(f'{name}="')[1:]]  # fmt: skip
    return [piece for piece in pieces if not piece.startswith("#")]


#: Every route, with parts of the path that are there.
ROUTES = [
    path.format(campaign="made-up", run="1-1", number="2", format="env")
    for path in (
        *(f"{PREFIX}{one.path}" for one in QUESTIONS),
        *(one.path for one in PAGES),
        "/campaigns/{campaign}/events",
        "/metrics",
    )
]
#: Fixed files: they take no part of a path, and look nothing up.
FIXED = ["/api/v1/openapi.json", *(path for path in OPEN if path.startswith("/static/"))]


def test_no_route_goes_without_a_test_of_what_it_refuses(client: Client) -> None:
    known = {path.format(campaign="made-up", run="1-1", number="2", format="env")
             for path in client.paths}  # fmt: skip
    assert known == {*ROUTES, *FIXED}


@pytest.mark.parametrize("path", [*ROUTES, *FIXED])
def test_only_reading_is_allowed(client: Client, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
        got = client.get(path, method=method)
        assert (got.status, got.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", [*ROUTES, *FIXED])
def test_every_route_refuses_what_it_does_not_know(client: Client, path: str) -> None:
    for query in ("nothing=1", "token2=", "mytoken=1", "a=" + "1" * 400, "&".join(["a=1"] * 40)):
        assert client.get(f"{path}?{query}").status == 400, query
    assert client.get(f"{path}?{'a' * 5000}").status == 414
    assert client.get(f"{path}/nothing").status in (400, 404)
    for known in ("made-up", "/1-1", "/2", "/env"):
        if known in path:
            replaced = path.replace(known, known[: known.startswith("/")] + "..%2f%00<b>")
            assert client.get(replaced).status in (400, 404), replaced


def test_a_head_is_answered(client: Client) -> None:
    assert client.get(API, method="HEAD").status == 200


def test_every_reply_forbids_scripts_of_others(client: Client) -> None:
    for path in ("/", API, "/nothing", "/static/live.js", f"/?token={TOKEN}"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "private" in headers["cache-control"]


def test_prometheus_reads_the_metrics(client: Client) -> None:
    for path in (API, API, "/nothing"):
        client.get(path)
    got = client.get("/metrics")
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    read = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(got.text)
        for sample in family.samples
    }
    assert read["commtune_requests_total", ("status", "200")] == 2
    assert read["commtune_requests_total", ("status", "404")] == 1
    name = "commtune_request_seconds"
    assert read[(f"{name}_count",)] == read[f"{name}_bucket", ("le", "+Inf")] == 3
    assert 0 < read[(f"{name}_sum",)] < 60
    buckets = [value for key, value in read.items() if key[0] == f"{name}_bucket"]
    assert buckets == sorted(buckets)
    assert read["commtune_campaigns", ("state", "finished")] == 1
    assert read["commtune_campaigns", ("state", "running")] == 0
    # What a scrape itself took is in the next one.
    assert 'requests_total{status="200"} 3' in client.get("/metrics").text


@pytest.mark.slow
def test_a_storm_of_jobs_is_answered_and_a_flood_of_questions_is_not(client: Client) -> None:
    best = f"{PREFIX}/best?operation=allreduce&bytes="
    storm = client.get_at_once([f"{best}{1 + n % 20}" for n in range(2000)])
    assert {got.status for got in storm} == {200}
    pages = [f"/best?operation=allreduce&bytes={n + 1}" for n in range(50)]
    # Of what was never measured, as it is answered soonest.
    others = best.replace("allreduce", "ring")
    flood = client.get_at_once([f"{others}{n + 5000}" for n in range(2550)] + pages)
    assert Counter(got.status for got in flood) == {200: 2500, 503: 100}
    refused = flood[2549]
    assert (refused.data["error"]["code"], refused.headers["retry-after"]) == ("busy", "1")
    assert flood[-1].headers["content-type"] == "text/html; charset=utf-8"
    assert "ask again" in flood[-1].text
    assert client.get(f"{best}9001").status == client.get("/").status == 200


def hostile_requests(count: int) -> list[tuple[bytes, dict[str, str], str]]:
    """Targets, headers and methods; each is the same in every session of the tests."""
    rng = random.Random(20)
    routes = [f"{PREFIX}{one.path}" for one in QUESTIONS]
    routes += [one.path for one in PAGES] + ["/static/x", "/api/v2/best", "/metrics", ""]
    routes += [CANCEL, f"{PREFIX}{CANCEL}"]
    names = [one.name for one in (*BEST, *RUNS, *EXPORT)] + ["token", "db", "\x00", "__proto__"]
    values = [*NASTY, "1", "allreduce", "1MiB", "-1", "1e999", "9" * 400, "%00",
              "../../etc/passwd", "' OR 1=1 --", "\x00", "made-up", "sh", "ok", "search",
              "true", TOKEN]  # fmt: skip

    def value() -> str:
        return quote(rng.choice(values), safe=rng.choice(["", "/%&=?#;"]), errors="replace")

    made = []
    for _ in range(count):
        path = rng.choice(routes)
        for part in ("{campaign}", "{run}", "{number}", "{format}"):
            path = path.replace(part, value())
        pairs = [f"{quote(rng.choice(names))}={value()}" for _ in range(rng.randrange(4))]
        target = (path + ("?" + "&".join(pairs) if pairs else "")).encode("utf-8", "replace")
        if rng.random() < 0.1:
            target += bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        headers = dict(BEARER)
        if rng.random() < 0.3:
            name = rng.choice(["cookie", "if-none-match", "host", "authorization", "accept"])
            headers[name] = rng.choice(values)[:2000]
        method = rng.choice(["GET"] * 8 + ["HEAD", "POST"])
        made.append((target, headers, method))
    return made


@pytest.mark.slow
def test_hostile_requests_get_a_refusal_or_an_answer(
    ask: Callable[..., Client], db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = ask(db, has_control=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = sha256(Path(db).read_bytes()).hexdigest()
    seen: dict[int, int] = {}
    for target, headers, method in hostile_requests(_REQUESTS):
        got = client.get(target, headers, method)
        assert 200 <= got.status < 500, (target, headers, method, got.text[:500])
        assert "Traceback" not in got.body.decode("utf-8", "replace")
        assert_whole(got, target)
        seen[got.status] = seen.get(got.status, 0) + 1
    # All kinds of replies came, so that the requests reached what they were made for.
    assert {200, 400, 401, 404, 405, 414} <= seen.keys(), seen
    assert sha256(Path(db).read_bytes()).hexdigest() == before
    assert not list((tmp_path / "here").iterdir())
    assert {one.name for one in tmp_path.iterdir()} <= {
        "here", "commtune.db", "commtune.db-wal", "commtune.db-shm"
    }  # fmt: skip


def assert_whole(got: Got, target: bytes) -> None:
    if got.headers["content-type"] == "application/json" and got.status != 304:
        assert got.data is not None, target
    if got.status >= 400 and target.startswith(b"/api/"):
        assert got.data["error"]["message"], target
    for value in got.headers.values():
        assert "\r" not in value and "\n" not in value, target


def test_stored_text_is_never_markup(tmp_path: Path, ask: Callable[..., Client]) -> None:
    evil = "\"><script>alert(1)<script><img src=x onerror=alert(1)>{{ 7*7 }}'"
    file = tmp_path / "evil.db"
    with opened_store(file) as store:
        number = given.begin(store, given.campaign(evil))
        failed = Outcome.FAILED
        given.add_run(store, number, evil, evil, outcome=failed, detail=evil, output_tail=evil)
        store.save_profiles(number, [given.profile(evil, note=evil)])
    client = ask(str(file))
    name = quote(evil, safe="")
    paths = [
        "/",
        f"/campaigns/{name}",
        f"/campaigns/{name}/runs",
        f"/campaigns/{name}/runs/{name}",
    ]
    paths += ["/best?operation=allreduce&bytes=1024", f"/best?operation={name}", f"/{name}"]
    for path in paths:
        got = client.get(path)
        assert got.headers["content-type"].startswith("text/html")
        assert "<script>alert" not in got.text and "<img" not in got.text, path
    shown = client.get(paths[3])
    assert shown.status == 200 and "&lt;script&gt;" in shown.text and "{{ 7*7 }}" in shown.text


def test_a_token_file_must_be_private_and_long(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {TOKEN}\n")
    file.chmod(0o600)
    assert read_token(file) == TOKEN
    file.chmod(0o640)
    with pytest.raises(UserError, match="open to other users"):
        read_token(file)
    file.chmod(0o600)
    for bad in ("short", "two words of many letters", "\u00fc" * 20):
        file.write_text(bad)
        with pytest.raises(UserError):
            read_token(file)
    with pytest.raises(UserError, match="can't be read"):
        read_token(tmp_path / "none")
