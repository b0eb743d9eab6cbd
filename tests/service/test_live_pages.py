"""Pages as a reader gets them, and a campaign that goes on while it is watched."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import database_values as given
import psycopg
import pytest
from page_reader import PageReader
from service_client import BEARER, TOKEN, Client, connect, served_at
from starlette.requests import Request
from starlette.types import Message
from stores import opened_store
from waiting import PATIENCE_S, wait_for

from commtune.app.profiles.reporting import render_campaign_report
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store
from commtune.model import Conditions, JobStage, Outcome
from commtune.service import cache, pages
from commtune.service.live import Viewers
from commtune.service.replies import Reply, json_reply

#: Takes seconds to make.
_REPORT = "/campaigns/made-up/report"


def check_structure(reader: PageReader) -> None:
    """One heading of the first level, named fields, headed columns; no script or style inside."""
    assert len(reader.all("h1")) == 1 and reader.all("main") and reader.all("title")
    assert ("html", {"lang": "en"}) in reader.tags
    assert all(cell.get("scope") for cell in reader.all("th"))
    inside_label = len(reader.all("label"))
    assert inside_label == len(reader.all("input")) + len(reader.all("select"))
    assert all(script.get("src") for script in reader.all("script")) and not reader.all("style")
    for _, attributes in reader.tags:
        assert not any(name == "style" or name.startswith("on") for name in attributes)
    for region in reader.all("div"):
        assert "role" not in region or region.get("aria-label") or region.get("aria-labelledby")
    ids = [a["id"] for _, a in reader.tags if "id" in a]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "made-up finished made-up machine, 2 cores; Made-up MPI 1.0"),
        ("/campaigns/made-up", "Best confirmed speedup 1."),
        ("/campaigns/made-up", "LIB_ALGORITHM=tree"),
        ("/campaigns/made-up/runs?outcome=crashed", "crashed"),
        ("/campaigns/made-up/runs/1-1", "The end of its output"),
        (
            "/best?operation=allreduce&bytes=1MiB&ranks=&system=",
            "recommended use profile made-up/",
        ),
        ("/best?operation=alltoall&bytes=8", "not-measured no profile for alltoall, 8 B"),
        ("/campaigns/made-up?from=1MiB", "1 MiB 213 us 146 us 1.17x to 2.04x"),
        ("/profiles/2", "None yet: commtune verify made-up/allreduce-65536-1048576"),
        ("/profiles/1", "is the default: it claims no speedup that could be verified"),
        ("/compare", "Compare A choose made-up made-up machine, 2 cores"),
        (
            "/compare?left=campaign:made-up&right=campaign:made-up&from=1MiB",
            "1 MiB A 213 us 146 us 1.17x to 2.04x (1.54x, 12 pairs) all faster LIB_ALGORITHM=tree "
            "LIB_EAGER_THRESHOLD=65536 made-up, 2 ranks, mpi-host B 213 us",
        ),
        (
            "/compare?left=campaign:made-up&right=campaign:made-up&operation=alltoall",
            "no profile for alltoall",
        ),
        ("/compare?left=campaign:made-up&right=system:no", "there is no system:no"),
        ("/campaigns/none", "no campaign none campaigns: made-up 404, unknown-name"),
    ],
)
def test_pages_show_what_is_stored(client: Client, path: str, shown: str) -> None:
    got = client.get(path)
    reader = PageReader(got.text)
    assert shown in reader.text
    check_structure(reader)


def test_what_was_measured_under_other_conditions_is_another_question(
    client: Client, db: str
) -> None:
    with opened_store(db) as store:
        for name, estimand in (("medians", ""), ("means", "mean")):
            number = store.open_campaign(given.campaign(name)).id
            profile = given.profile(conditions=Conditions(estimand=estimand))
            store.save_profiles(number, [profile])
    page = "/compare?left=campaign:medians&right=campaign"
    assert "Not the same question" not in PageReader(client.get(f"{page}:medians").text).text
    shown = PageReader(client.get(f"{page}:means").text).text
    assert "ways to communicate or conditions differ" in shown
    assert "means, 2 ranks, mpi-host; speedups are ratios of mean times" in shown


def test_every_link_of_every_page_leads_somewhere(client: Client) -> None:
    seen: set[str] = set()
    to_see = ["/", "/best?operation=allreduce&bytes=1MiB", "/campaigns/made-up/runs?limit=3"]
    while to_see:
        path = to_see.pop()
        seen.add(path)
        got = client.get(path)
        assert got.status == 200, path
        if "/runs" in path or not got.headers["content-type"].startswith("text/html"):
            continue
        reader = PageReader(got.text)
        found = [a.get("href") or "" for a in (*reader.all("a"), *reader.all("link"))]
        found += [a.get("src") or "" for a in reader.all("script")]
        assert all(one.startswith(("/", "#")) for one in found)
        to_see += [one for one in found if one[0] == "/" and one not in {*seen, _REPORT}]
    assert {"/static/live.js", "/api/v1/openapi.json"} <= seen
    formats = {one.rpartition("/")[2] for one in seen if "/export/" in one}
    # Not those of other libraries' files, nor module files, which need guard operations.
    assert formats == {"env", "sh", "csh", "fish", "json", "task-prolog"}


def test_the_report_runs_no_script(client: Client) -> None:
    got = client.get(_REPORT)
    assert got.status == 200 and "commtune report" in got.text
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy and "sandbox" in policy


@pytest.mark.slow
def test_a_report_is_kept_until_the_database_is_written(
    client: Client, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_KEPT_S", -1.0)
    monkeypatch.setattr(cache, "_COSTS", 0.0)
    made = 0

    def count(*arguments: Any) -> str:
        nonlocal made
        made += 1
        return render_campaign_report(*arguments)

    monkeypatch.setattr(pages, "render_campaign_report", count)
    first = client.get(_REPORT).body
    assert (client.get(_REPORT).body, made) == (first, 1)
    store.open_campaign(given.campaign("tonight"))
    assert (client.get(_REPORT).status, made) == (200, 2)


def test_a_head_of_the_events_ends(served: str) -> None:
    connection = connect(served)
    for path in ("/campaigns/made-up/events", "/metrics"):
        connection.request("HEAD", path, headers=BEARER)
        head = connection.getresponse()
        assert (head.status, head.read()) == (200, b"")
    connection.request("GET", "/metrics", headers=BEARER)
    assert b"commtune_viewers 0" in connection.getresponse().read()
    connection.close()


class Events:
    """The events of a campaign, from a real server."""

    def __init__(self, address: str, campaign: str) -> None:
        self._connection = connect(address)
        self._connection.request("GET", f"/campaigns/{campaign}/events", headers=BEARER)
        self._reply = self._connection.getresponse()
        assert self._reply.getheader("content-type", "").startswith("text/event-stream")

    def until(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event like this; fails if none comes."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            line = self._reply.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                said: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                if is_it(said):
                    return said
        raise AssertionError("no such event")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def store(db: str) -> Iterator[Store]:
    with opened_store(db) as store:
        yield store


def words(event: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = event["words"]
    return found


def test_a_campaign_is_watched_while_it_goes_on(served: str, store: Store) -> None:
    number = given.begin(store, given.campaign("tonight"))
    events = Events(served, "tonight")
    first = events.until(lambda _: True)
    assert (words(first)["state"], words(first)["runs"], first["runs"]) == ("stopped", "0", [])
    store.lock(number)
    assert events.until(lambda now: words(now)["state"] == "running")
    for name, outcome in (("a", Outcome.OK), ("b", Outcome.CRASHED)):
        given.add_run(store, number, name, outcome=outcome)
    now = events.until(lambda now: words(now)["runs"] == "2")
    assert (words(now)["failed"], words(now)["phase"]) == ("1", "search")
    assert [row["outcome"] for row in now["runs"]] == ["crashed", "ok"]
    store.save_profiles(number, [given.profile()])
    now = events.until(lambda now: words(now)["profiles"] == "1")
    assert words(now)["confirmed"].startswith("1.60x to 1.80x")
    store.finish_campaign(number)
    assert events.until(lambda now: now["over"])
    events.close()


def test_campaigns_that_are_watched_share_connections(
    new_postgresql_url: str,
) -> None:
    """The server has as many of them as queries run at once, and they are the same ones."""
    with opened_store(new_postgresql_url) as store:
        names = [f"night-{number}" for number in range(10)]
        for name in names:
            store.open_campaign(given.campaign(name))
    asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    with (
        closing(psycopg.connect(new_postgresql_url.replace("+psycopg", ""))) as connection,
        served_at(new_postgresql_url) as address,
    ):
        connection.autocommit = True

        def processes() -> set[int]:
            rows = connection.execute(asked).fetchall()
            return {pid for (pid,) in rows} - {connection.info.backend_pid}

        streams = [Events(address, names[0])]
        first = processes()
        streams += [Events(address, name) for name in names[1:]]
        again = processes()
        assert len(again) <= 4 and first & again
        for stream in streams:
            assert stream.until(lambda now: words(now)["state"] == "stopped")
            stream.close()


def test_a_connection_that_the_server_ended_is_opened_again(
    new_postgresql_url: str, ask: Callable[..., Client]
) -> None:
    open_database(new_postgresql_url).close()
    client = ask(new_postgresql_url)
    assert client.get("/api/v1/systems").status == 200
    with closing(psycopg.connect(new_postgresql_url.replace("+psycopg", ""))) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert ended == [(True,)]
    assert client.get("/api/v1/stacks").status == 200


def test_the_queue_of_its_jobs_is_watched(served: str, client: Client, store: Store) -> None:
    number = store.open_campaign(given.campaign("queued")).id
    events = Events(served, "queued")
    first = events.until(lambda _: True)
    assert (words(first)["jobs"], first["jobs"]) == ("none", [])
    assert any(
        "hidden" in one for one in PageReader(client.get("/campaigns/queued").text).all("div")
    )
    book = store.job_book(number)
    waits = given.job("q-1", stage=JobStage.SUBMITTED, number="41", word="PENDING",
                      reason="Resources")  # fmt: skip
    book.put_job(waits)
    book.put_job(given.job("q-2"))
    assert events.until(lambda now: words(now)["jobs"].startswith("1 PENDING (Resources)"))
    runs = replace(waits, word="RUNNING", reason="None", nodes="n[1-2]", started_at=1_700_000_060)
    book.put_job(runs)
    now = events.until(lambda now: words(now)["jobs"] == "1 RUNNING, 1 not submitted yet")
    assert now["jobs"] == [
        {"job": "41", "for": "block 4", "state": "RUNNING", "reason": "", "nodes": "n[1-2]",
         "since": "2023-11-14 22:14:20"},
        {"job": "-", "for": "block 4", "state": "not submitted yet", "reason": "",
         "nodes": "2 nodes", "since": "2023-11-14 22:13:20"},
    ]  # fmt: skip
    events.close()
    shown = "41 block 4 RUNNING 2023-11-14 22:14:20 n[1-2]"

    def find_page() -> PageReader | None:
        found = PageReader(client.get("/campaigns/queued").text)
        return found if shown in found.text else None

    # A slow machine keeps the first page for longer.
    check_structure(wait_for(find_page, f"a page that shows {shown}"))


def test_a_controller_that_is_killed_is_seen(served: str, store: Store, db: str) -> None:
    number = store.open_campaign(given.campaign("killed")).id
    program = (
        "import sys; from commtune.db.connection.engine import open_database;"
        "from commtune.db.storage.store import Store;"
        f"Store(open_database('sqlite:///{db}')).lock({number}); print('held', flush=True);"
        "sys.stdin.read()"
    )
    controller = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert controller.stdout is not None and controller.stdout.readline() == b"held\n"
    events = Events(served, "killed")
    try:
        running = events.until(lambda now: words(now)["state"] == "running")
        holder = rf"process {controller.pid} on .*, since [-\d]+ [:\d]+ [+-]\d{{4}}"
        assert re.fullmatch(holder, words(running)["by"])
    finally:
        controller.kill()
        controller.communicate()
    gone = events.until(lambda now: words(now)["state"] == "stopped")
    assert words(gone)["by"] == "nobody"
    events.close()


def test_streams_that_are_opened_at_once_are_limited() -> None:
    opened: Counter[int] = Counter()

    async def open_all() -> int:
        viewers, all_ask, all_told = Viewers(), asyncio.Barrier(210), asyncio.Event()

        async def look() -> Reply:
            if not opened:
                await all_ask.wait()
            return json_reply({})

        async def receive() -> Message:
            await all_told.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened[message["status"]] += 1
            if opened.total() == 210:
                all_told.set()

        async def open_one() -> None:
            scope = {
                "type": "http",
                "method": "GET",
                "headers": [],
                "asgi": {"spec_version": "2.4"},
            }
            response = await viewers.follow(Request(scope, receive), look)
            await response(scope, receive, send)

        await asyncio.gather(*(open_one() for _ in range(210)))
        return viewers.count

    assert asyncio.run(open_all()) == 0
    assert opened == {200: 200, 503: 10}


def test_a_browser_comes_in_by_the_printed_address(served: str) -> None:
    parts = urlsplit(served)
    assert parse_qs(parts.query) == {"token": [TOKEN]}
    connection = connect(served)
    connection.request("GET", f"{parts.path}?{parts.query}")
    first = connection.getresponse()
    first.read()
    assert first.status == 303 and "server" not in {name.lower() for name, _ in first.getheaders()}
    cookie = (first.getheader("set-cookie") or "").partition(";")[0]
    connection.request("GET", first.getheader("location") or "", headers={"cookie": cookie})
    page = connection.getresponse()
    assert page.status == 200 and b"made-up" in page.read()
    connection.request("GET", "/", headers={"x-large": "a" * 200_000})
    with pytest.raises((http.client.HTTPException, AssertionError, OSError)):
        large = connection.getresponse()
        assert large.status < 400
    connection.close()
