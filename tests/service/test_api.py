"""The HTTP API gives what the commands give, as its own document says."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import database_values as given
import jsonschema
import pytest
from service_client import BEARER, Client
from stored_campaigns import Made
from stores import opened_store

from commtune.app.profiles.explained import Answer
from commtune.commands.campaigns import status
from commtune.commands.profiles import best, use
from commtune.db.connection.engine import open_database
from commtune.model import Verdict
from commtune.service import api, cache
from commtune.service.api import QUESTIONS

BEST = "/api/v1/best?operation=allreduce&bytes="


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_best_gives_what_the_command_prints(
    client: Client, db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for size in ("8", "1000", "64KiB", "1MiB"):
        best.best_command("allreduce", size, db=db, json_output=True)
        first = printed(capsys)[0]
        told = client.get(f"{BEST}{size}").data
        assert told["best"] == first
        assert told["answer"] == first["answer"]
    best.best_command("allreduce", db=db, json_output=True)
    assert client.get("/api/v1/best?operation=allreduce").data["sizes"] == printed(capsys)


def test_status_and_export_are_those_of_the_commands(
    client: Client, db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status.status_command(db, json_output=True)
    listed = client.get("/api/v1/campaigns").data
    assert listed == printed(capsys)
    one = client.get(f"/api/v1/campaigns/{listed[0]['name']}").data
    assert {name: one[name] for name in listed[0]} == listed[0]
    number = client.get(f"{BEST}1MiB").data["best"]["id"]
    for form in ("sh", "env", "json", "fish", "csh"):
        use.export_command(str(number), form, db=db)
        exported = client.get(f"/api/v1/profiles/{number}/export/{form}")
        assert exported.text.strip() == capsys.readouterr().out.strip()
        assert exported.headers["content-disposition"].startswith("attachment")
    path = f"/api/v1/profiles/{number}/export/sh"
    assert client.get(f"{path}?min_pairs=1&min_days=1").text == client.get(path).text
    refused = client.get(f"{path}?min_days=2")
    assert refused.status == 409
    assert "rests on less than --min-days 2: " in refused.data["error"]["message"]


def test_each_answer_has_its_code(client: Client) -> None:
    found = client.get(f"{BEST}1MiB").data
    assert found["answer"] == Answer.RECOMMENDED
    assert found["environment"] == found["best"]["configuration"] != {}
    kept = client.get(f"{BEST}8").data
    assert (kept["answer"], kept["best"]["reason"]) == (Answer.KEEP_DEFAULT, "inconclusive")
    assert kept["environment"] == {} and kept["message"].startswith("keep the default (")
    assert client.get(f"{BEST}8192").data["answer"] == Answer.NEIGHBOURS_DISAGREE
    none = client.get("/api/v1/best?operation=alltoall&bytes=8").data
    assert none["answer"] == Answer.NOT_MEASURED and "allreduce" in none["hint"]
    other = client.get(f"{BEST}1MiB&stack=elsewhere").data
    assert other["answer"] == Answer.ANOTHER_STACK and "Made-up MPI" in other["hint"]
    assert other["environment"] == {} and other["others"]
    assert client.get(f"{BEST}1MiB&stack=made-up").data["answer"] == Answer.RECOMMENDED


def test_what_is_only_likely_is_said_so(db: str, ask: Callable[..., Client]) -> None:
    with opened_store(db) as store:
        number = store.open_campaign(given.campaign("unsure")).id
        undecided = given.profile(
            "broadcast-all", operation="broadcast", verdict=Verdict.UNDECIDED
        )
        likely = given.profile(
            "broadcast-likely",
            operation="broadcast",
            verdict=Verdict.LIKELY,
            tails=(given.tail(1024),),
        )
        store.save_profiles(number, [undecided, likely])
    found = ask(db).get("/api/v1/best?operation=broadcast&bytes=1024").data
    assert (found["answer"], found["environment"]) == (Answer.LIKELY, {})
    assert found["best"]["likely"]["profile"] == "unsure/broadcast-likely"
    assert found["best"]["likely"]["tails"] == [vars(given.tail(1024))]


def test_the_operation_of_a_users_own_benchmark_is_asked_for(
    db: str, ask: Callable[..., Client]
) -> None:
    with opened_store(db) as store:
        number = store.open_campaign(given.campaign("mine")).id
        store.save_profiles(number, [given.profile("own-all", operation="own:run.sh")])
    client = ask(db)
    found = client.get("/api/v1/best?operation=own:run.sh&bytes=1024").data
    assert (found["best"]["campaign"], found["best"]["name"]) == ("mine", "own-all")
    assert "mine/own-all" in client.get("/best?operation=own:run.sh&bytes=1024").text
    assert client.get("/api/v1/best?operation=own:&bytes=1024").status == 400


def test_what_was_replayed_sets_nothing(db: str, ask: Callable[..., Client]) -> None:
    with opened_store(db) as store:
        Made(name="replayed", simulated=True).store(store)
    found = ask(db).get(f"{BEST}1MiB&campaign=replayed").data
    assert found["answer"] == Answer.RECOMMENDED and found["best"]["simulated"]
    assert found["environment"] == {}
    refused = ask(db).get(f"/api/v1/profiles/{found['best']['id']}/export/sh")
    assert refused.status == 409 and refused.data["error"]["code"] == "export-refused"


def test_all_runs_come_page_by_page(client: Client) -> None:
    seen: list[int] = []
    following: int | None = 10**9
    while following is not None:
        page = client.get(f"/api/v1/campaigns/made-up/runs?limit=7&before={following}").data
        seen += [run["id"] for run in page["runs"]]
        following = page["next"]
    total = client.get("/api/v1/campaigns/made-up").data
    assert len(seen) == sum(total["outcomes"].values())
    assert seen == sorted(set(seen), reverse=True)
    crashed = client.get("/api/v1/campaigns/made-up/runs?outcome=crashed&limit=1000").data
    assert len(crashed["runs"]) == total["outcomes"]["crashed"]
    one = crashed["runs"][0]
    told = client.get(f"/api/v1/campaigns/made-up/runs/{one['run_id']}").data
    assert {name: told[name] for name in one} == one and "output_tail" in told


def test_all_trials_come_page_by_page(client: Client) -> None:
    path = "/api/v1/campaigns/made-up/trials"
    seen: list[dict[str, Any]] = []
    following: int | None = 0
    while following is not None:
        page = client.get(f"{path}?limit=3&first={following}").data
        seen += page["trials"]
        following = page["next"]
    total = client.get("/api/v1/campaigns/made-up").data
    assert [one["number"] for one in seen] == list(range(total["trials"]))
    assert (seen[0]["environment"], seen[0]["origin"]) == ({}, "baseline")
    assert all(one["environment"] for one in seen[1:])
    assert sum(one["runs"] for one in seen) == sum(total["outcomes"].values())
    assert sum(one["runs_ok"] for one in seen) == total["outcomes"]["ok"]
    runs = client.get("/api/v1/campaigns/made-up/runs?limit=1000").data["runs"]
    assert seen[1]["runs"] == sum(run["trial"] == 1 for run in runs)


@pytest.mark.filterwarnings("default::commtune.db.damage.DamagedRowWarning")
@pytest.mark.parametrize(
    ("damaged", "asked"), [("runs SET detail", "before=10"), ("trials SET origin", "first=0")]
)
def test_a_damaged_row_is_not_the_end_of_the_list(
    damaged: str, asked: str, db: str, ask: Callable[..., Client]
) -> None:
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(f"UPDATE {damaged} = x'ff00' WHERE id = 5")
    table = damaged.partition(" ")[0]
    page = ask(db).get(f"/api/v1/campaigns/made-up/{table}?limit=6&{asked}").data
    assert len(page[table]) == 5 and page["next"] is not None


def test_an_answer_is_kept_until_the_database_is_written(
    db: str, ask: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_KEPT_S", -1.0)
    monkeypatch.setattr(cache, "_COSTS", 0.0)
    client, made = ask(db), 0
    answer = api.answer_request

    def count(*arguments: Any) -> Any:
        nonlocal made
        made += 1
        return answer(*arguments)

    monkeypatch.setattr(api, "answer_request", count)
    first = [client.get(f"{BEST}1MiB").data for _ in range(3)]
    assert made == 1 and first[0] == first[2]
    for _ in range(2):
        client.get("/api/v1/campaigns")  # its controller may be gone: no write says so
    assert made == 3
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE profiles SET verdict = 'undecided'")
    after = client.get(f"{BEST}1MiB").data
    assert (first[0]["answer"], after["answer"]) == (Answer.RECOMMENDED, Answer.KEEP_DEFAULT)
    assert client.get(f"{BEST}1MiB").data == after and made == 4
    # Another file in its place, whose counter may be the same.
    empty = Path(db).with_name("other.db")
    open_database(f"sqlite:///{empty}").close()
    empty.replace(db)
    assert client.get(f"{BEST}1MiB").data["answer"] == Answer.NOT_MEASURED


def fill(path: str) -> str:
    """A path with values that there are."""
    parts = {"campaign": "made-up", "run": "1-1", "number": "1", "format": "json"}
    return re.sub(r"{(\w+)}", lambda name: parts[name[1]], path)


def test_the_document_says_what_is_answered(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").data
    assert len(document["paths"]) == len(QUESTIONS)
    for path, operations in document["paths"].items():
        said = operations["get"]
        in_path = {one["name"] for one in said["parameters"] if one["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))
        needed = [one["name"] for one in said["parameters"] if one["required"]]
        asked = {"operation": "allreduce", "name": "1"}
        query = "".join(f"?{name}={asked[name]}" for name in needed if name in asked)
        got = client.get(f"/api/v1{fill(path)}{query}")
        if "export" in path:  # profile 1 keeps the default
            assert got.status == 409
            jsonschema.validate(got.data, document["components"]["schemas"]["Error"])
            continue
        assert got.status == 200, got.text
        ((kind, content),) = said["responses"]["200"]["content"].items()
        assert got.headers["content-type"].startswith(kind)
        jsonschema.validate(got.data, {**content["schema"], "components": document["components"]})
        wrong = client.get(f"/api/v1{fill(path)}?{query[1:]}&nonsense=1")
        assert wrong.status == 400
        jsonschema.validate(wrong.data, document["components"]["schemas"]["Error"])


def test_the_document_has_every_field_of_an_answer(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").data
    components = document["components"]
    ((_, content),) = document["paths"]["/best"]["get"]["responses"]["200"]["content"].items()

    def told(query: str) -> Any:
        found = client.get(f"/api/v1/best?operation={query}").data
        jsonschema.validate(found, {**content["schema"], "components": components})
        return found

    for query in ("allreduce&bytes=8", "alltoall&bytes=8", "alltoall"):
        told(query)
    answer = told("allreduce&bytes=1MiB")
    between = told("allreduce&bytes=8192")["best"]["neighbours"]
    (size, *_) = told("allreduce")["sizes"]
    (other, *_) = told("allreduce&bytes=1MiB&stack=elsewhere")["others"]
    shown = {"Answer": answer, "Best": answer["best"], "Row": other, "Neighbour": between[0]}
    shown |= {"Point": answer["best"]["points"][0], "BestOfSize": size}
    shown |= {"Tail": answer["best"]["tail"]}
    whole = client.get(f"/api/v1/profiles/{answer['best']['id']}").data
    assert answer["best"]["tail"] in whole["tails"]
    assert size["tail"] is None  # the default stays there
    assert {name: set(one) for name, one in shown.items()} == {
        name: set(components["schemas"][name]["properties"]) for name in shown
    }


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("campaigns/none", 404, "unknown-name"),
        ("profiles/999", 404, "unknown-name"),
        ("profiles/none", 400, "bad-request"),
        ("profiles/1/export/exe", 400, "bad-request"),
        ("best", 400, "bad-request"),
        ("best?operation=bcast&bytes=8", 400, "bad-request"),
        ("best?operation=allreduce&bytes=much", 400, "bad-request"),
        ("best?operation=allreduce&bytes=8&bytes=9", 400, "bad-request"),
        ("campaigns/made-up/runs?limit=1001", 400, "bad-request"),
        ("nothing", 404, "not-found"),
        ("", 404, "not-found"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_do(
    client: Client, path: str, status: int, code: str
) -> None:
    got = client.get(f"/api/v1/{path}")
    assert (got.status, got.data["error"]["code"]) == (status, code)
    assert got.data["error"]["message"]
    assert got.data["error"]["hint"]


def test_what_is_known_is_not_sent_again(client: Client) -> None:
    first = client.get(f"{BEST}1MiB")
    tag = first.headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = client.get(f"{BEST}1MiB", {**BEARER, "if-none-match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert "content-length" not in again.headers
    other = client.get(f"{BEST}8", {**BEARER, "if-none-match": tag})
    assert other.status == 200 and other.body


def test_postgresql_answers_as_sqlite_does(
    ask: Callable[..., Client], made_file: Path, tmp_path: Path, postgresql_url: str
) -> None:
    with opened_store(postgresql_url) as store:
        Made(trials=20, blocks=12).store(store)
    on_file = ask(str(shutil.copy(made_file, tmp_path / "commtune.db")))
    on_server = ask(postgresql_url)

    def without_keys(got: Any) -> Any:
        if isinstance(got, dict):
            own = ("id", "run_id", "created", "finished", "next")
            return {name: without_keys(value) for name, value in got.items() if name not in own}
        return [without_keys(one) for one in got] if isinstance(got, list) else got

    paths = [f"{BEST}1MiB", "/api/v1/best?operation=allreduce"]
    paths += [f"/api/v1/{name}" for name in ("systems", "stacks", "campaigns", "profiles")]
    paths += ["/api/v1/campaigns/made-up", "/api/v1/campaigns/made-up/trials?limit=5"]
    paths += ["/api/v1/campaigns/made-up/runs?phase=search&limit=5"]
    for path in paths:
        one, other = on_file.get(path), on_server.get(path)
        assert (one.status, other.status) == (200, 200), other.text
        assert without_keys(one.data) == without_keys(other.data), path


def test_without_a_database_there_is_an_answer(ask: Callable[..., Client], tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    _check_empty(ask(str(file)))
    assert not list(tmp_path.iterdir())
    file.touch()  # as it is while its first campaign makes the schema
    _check_empty(ask(str(file)))
    file.write_bytes(b"no database" * 1000)
    later = ask(str(file)).get("/api/v1/campaigns")
    assert (later.status, later.data["error"]["code"]) == (503, "database-fault")


def _check_empty(client: Client) -> None:
    assert client.get("/api/v1/health").data["status"] == "empty"
    assert client.get("/api/v1/campaigns").data == []
    assert client.get(f"{BEST}8").data["answer"] == Answer.NOT_MEASURED
    assert "commtune tune" in client.get("/").text
    assert client.get("/").status == 200
