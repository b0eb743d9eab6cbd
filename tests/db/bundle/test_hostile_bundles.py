"""Whatever a bundle holds, it is refused in words, or harmless; nothing is stored of one refused.

``COMMTUNE_BUNDLES=20000`` tries more mutated ones.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import os
import random
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from stores import opened_store

from commtune.app.campaigns import sharing
from commtune.db.bundle.merging import merge_rows
from commtune.db.connection.engine import Database
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.model import Workload
from commtune.model.conclusion import Conclusion, Decision

_BUNDLES = int(os.environ.get("COMMTUNE_BUNDLES", "1000"))

Lines = list[Any]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The lines of a bundle with a row of every table."""
    folder = tmp_path_factory.mktemp("hostile")
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        workload = Workload.of_plain(
            {"operation": "allreduce", "sizes": list(given.SIZES), "ranks": 2, "nodes": 1}
        )
        number = given.begin(store, given.campaign(what={"workload": workload.plain()}))
        given.add_run(store, number)
        store.plan_block(number, given.block())
        store.add_execution(number, given.execution())
        store.save_profiles(number, [given.profile()])
        store.decide(number, Decision(blocks=5))
        store.conclude(number, Conclusion())
    made = sharing.create_bundle(folder / "b", db=url)
    return [json.loads(line) for line in gzip.decompress(made.packed).splitlines()]


def pack(lines: Lines) -> bytes:
    return gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode(), 1)


def rows_of(lines: Lines, table: str) -> list[dict[str, Any]]:
    return [line[1] for line in lines if isinstance(line, list) and line[0] == table]


def put(table: str, column: str, value: Any) -> Callable[[Lines], None]:
    """Writes a value into the first row of a table."""

    def change(lines: Lines) -> None:
        rows_of(lines, table)[0][column] = value

    return change


def put_in_header(**values: Any) -> Callable[[Lines], None]:
    return lambda lines: lines[0].update(values)


def nested(depth: int) -> Any:
    found: Any = "x"
    for _ in range(depth):
        found = [found]
    return found


def double(table: str) -> Callable[[Lines], None]:
    """Adds the first row of a table once more, behind it."""

    def change(lines: Lines) -> None:
        at = next(n for n, line in enumerate(lines) if n and line[0] == table)
        lines.insert(at + 1, json.loads(json.dumps(lines[at])))

    return change


_BOMB = base64.b64encode(zlib.compress(bytes(2**24), 9)).decode()

_ATTACKS: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "nothing": (lambda lines: lines.clear(), "no header"),
    "no campaign": (lambda lines: lines.__delitem__(slice(1, None)), "no row of"),
    "no rows of its campaign": (lambda lines: lines.__delitem__(slice(3, None)), "no row of"),
    "no header": (lambda lines: lines.pop(0), "no header"),
    "newer": (put_in_header(schema="r9999"), "newer schema r9999"),
    "older": (put_in_header(schema="r0001"), "older schema r0001"),
    "no schema": (put_in_header(schema="1; DROP TABLE runs"), "header"),
    "a date": (put_in_header(created=2**60), "header"),
    "unknown table": (lambda lines: lines.append(["sqlite_master", {}]), "is no row"),
    "locks": (lambda lines: lines.append(["locks", {"campaign_id": 1}]), "is no row"),
    "unknown column": (put("campaigns", "id = 1; --", 1), "no column"),
    "lacking": (lambda lines: rows_of(lines, "runs")[0].pop("phase"), "lacks phase"),
    "another row's number": (put("runs", "id", 7), "its number is 7"),
    "another's run": (put("measurements", "run_id", 9), "belongs to no row"),
    "two campaigns": (double("campaigns"), "two rows of campaigns"),
    "another site's": (put("campaigns", "site", "site-b"), "another site"),
    "a path as name": (put("campaigns", "name", "../../x"), "can't name a campaign"),
    "markup as name": (put("campaigns", "name", "<script>x</script>"), "can't name a campaign"),
    "a run under way": (put("runs", "state", "running"), "not over"),
    "an operation": (put("runs", "operation", "rm -rf"), "operation"),
    "deep": (put("campaigns", "settings", {"x": nested(40)}), "nested too deeply"),
    "very deep": (put("campaigns", "settings", {"x": nested(900)}), "nested too deeply"),
    "large": (put("runs", "block", 2**40), "too large"),
    "very large": (put("campaigns", "seed", 2**70), "too large"),
    "digits": (put("campaigns", "seed", 10**4000), "too large"),
    "no number": (put("measurements", "median_s", float("nan")), "not JSON"),
    "endless": (put("measurements", "median_s", float("inf")), "not JSON"),
    "a time": (put("measurements", "median_s", -1.0), "time"),
    "a moment": (put("campaigns", "created", 1e300), "moment"),
    "NUL": (put("runs", "detail", "a\0b"), "no text"),
    "half a character": (put("runs", "detail", "\ud800"), "no text"),
    "NUL in a key": (put("configurations", "environment", {"A\0": "1"}), "no text"),
    "long": (put("systems", "fingerprint", "f" * 61), "longer than 60"),
    "longer": (put("runs", "run_id", "r" * 300), "longer than 255"),
    "samples": (put("measurements", "samples", "AAAA"), "samples"),
    "other samples": (put("measurements", "n_samples", 3), "samples are not 3"),
    "a bomb of samples": (put("measurements", "samples", _BOMB), "samples are not"),
    "no base 64": (put("measurements", "samples", "%%%"), "base 64"),
    "a number as text": (put("runs", "detail", 5), "not text"),
    "a list as row": (lambda lines: lines.append(["runs", [1]]), "is no row"),
    "a text as row": (lambda lines: lines.append("runs"), "is no row"),
}


@pytest.mark.parametrize("name", _ATTACKS)
def test_an_attack_is_refused_with_its_place(name: str, lines: Lines) -> None:
    attacked = json.loads(json.dumps(lines))
    change, words = _ATTACKS[name]
    change(attacked)
    with pytest.raises(UserError, match=words):
        sharing._read_packed(pack(attacked), "the bundle")


def test_a_line_that_nests_too_deeply_is_said_in_words() -> None:
    with pytest.raises(UserError, match="reads: line 1: nested too deeply"):
        sharing._read_packed(gzip.compress(b'{"a":' * 100_000 + b"\n"), "the bundle")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x1f\x8b",
        b"PK\x03\x04 a zip",
        gzip.compress(b""),
        gzip.compress(b"[" * 100_000),
        gzip.compress(bytes(2**25), 1),  # one line of 32 MiB
        gzip.compress(b"\xff\xfe\n"),
        gzip.compress(b'{"format": "commtune-bundle"}\n')[:-6],
    ],
    ids=["empty", "cut", "zip", "no lines", "brackets", "bomb", "binary", "no end"],
)
def test_what_is_no_bundle_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(UserError):
        sharing.read_bundle(tmp_path / "b")


def test_a_pipe_or_a_device_is_not_read() -> None:
    with pytest.raises(UserError, match="not a regular file"):
        sharing.read_bundle(Path("/dev/zero"))


def test_a_configuration_is_known_by_what_it_sets(
    lines: Lines, sqlite_store: Store, sqlite_url: str
) -> None:
    """Else a bundle could put other variables under the key of one that is used here."""
    changed = json.loads(json.dumps(lines))
    for row in rows_of(changed, "configurations"):
        if row["environment"]:
            row["environment"] = {"LD_PRELOAD": "/tmp/evil.so"}
            break
    number = given.begin(sqlite_store, given.campaign("own"))
    sharing.merge_bundle(sharing._read_packed(pack(changed), "b"), "site-a", sqlite_url)
    assert [trial.configuration for trial in sqlite_store.trials(number)] == [given.TUNED]


#: What was found to go wrong somewhere, or is likely to.
_HOSTILE = [
    None, True, -1, 0, 2**31, 2**63, 1e308, -1e-320, "", "x" * 300, "\0", "\ud800",
    "\x1b]52;c;x", "$(touch RAN)", "`touch RAN`", "'; DROP TABLE runs; --",
    "<script>alert(1)</script>", "{{ 1/0 }}", "../../etc/passwd", "/dev/zero", "file:///etc/passwd",
    [], {}, [[]], {"": None}, nested(30),
    {"__class__": "os.system"}, {"workload": 1}, {"operation": []}, [None] * 50, 3.5, "1",
    "allreduce",
]  # fmt: skip


def mutate(lines: Lines, chance: random.Random) -> bytes:
    """The bundle with one to three changes, of values, lines or bytes."""
    changed = json.loads(json.dumps(lines))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed))
        how = chance.random()
        if how < 0.7:
            _change_value(changed, at, chance)
        elif how < 0.8:
            changed.insert(chance.randrange(len(changed)), changed[at])
        elif how < 0.9 and len(changed) > 1:
            del changed[at]
        else:
            other = chance.randrange(len(changed))
            changed[at], changed[other] = changed[other], changed[at]
    packed = bytearray(pack(changed))
    if chance.random() < 0.1:
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
    return bytes(packed)


def _change_value(holder: Any, key: Any, chance: random.Random) -> None:
    """Replaces a value somewhere below."""
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.9:
        holder = holder[key]
        key = chance.choice([*holder] if isinstance(holder, dict) else range(len(holder)))
    if isinstance(holder, dict) and chance.random() < 0.1:
        holder[chance.choice(["x", "id", "a\0", "name"])] = holder.pop(key)
    else:
        holder[key] = copy.deepcopy(chance.choice(_HOSTILE))


class _Undone(Exception):
    """Takes back what was stored."""


def _merge_and_undo(database: Database, bundle: sharing.Bundle) -> None:
    digests = {one.name: one.digest for one in bundle.campaigns}
    lines = sharing._lines(bundle.packed)
    next(lines)
    with pytest.raises(_Undone), database.write() as connection:
        merge_rows(connection, sharing._rows(lines), digests, "site-a")
        raise _Undone


def test_mutated_bundles_are_refused_or_harmless(
    lines: Lines, sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chance, seen = random.Random(7), Counter[str]()
    for number in range(_BUNDLES):
        packed = mutate(lines, chance)
        try:
            bundle = sharing._read_packed(packed, "the bundle")
        except UserError as error:
            assert error.message and "\n" not in error.message
            seen["refused"] += 1
            continue
        seen["read"] += 1
        if number % 10 == 0:
            try:
                _merge_and_undo(sqlite_store.database, bundle)
            except UserError as error:
                assert error.message
    assert seen["refused"] > _BUNDLES // 2, seen
    assert given.summaries_of(sqlite_store) == []
    assert not (tmp_path / "RAN").exists()
