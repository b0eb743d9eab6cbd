"""A database that is busy, full, or gone while a campaign runs: said clearly, and nothing lost."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Child, CommandLine, has_footer, wait_until
from components import require_component
from postgresql_fixture import PostgresqlServer, create_postgresql
from step_program import write_one_rank
from waiting import PATIENCE_S

_KEPT = "  runs keep their record files; once that is fixed, the same command continues\n"


@pytest.fixture
def commtune(tmp_path: Path) -> CommandLine:
    """A folder with a campaign that needs no MPI, which is not the point here."""
    line = CommandLine(tmp_path)
    write_one_rank(line)
    return line


def _all_is_stored(commtune: CommandLine) -> None:
    stored = {row[0] for row in commtune.query("SELECT run_id FROM runs WHERE outcome = 'ok'")}
    assert stored == {file.stem for file in commtune.records() if has_footer(file)}
    assert commtune.query("SELECT count(*) FROM runs WHERE state != 'stored'") == [(0,)]
    assert commtune.query("SELECT * FROM locks") == []
    assert commtune.left_over() == {}


def test_a_database_that_another_program_holds(commtune: CommandLine) -> None:
    # SQLite itself waits ten seconds in each attempt to write.
    commtune.extra["COMMTUNE_DB_WAIT"] = "11"
    with commtune.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(commtune.records()) >= 3, child)
        with closing(sqlite3.connect(commtune.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 3
    busy = f"the database sqlite:///{commtune.database} is busy: another program writes"
    assert err.count(f"note: {busy}; waiting for it, at most 11 s\n") == 1
    assert re.sub(r"for \d+ s", "for N s", err[err.index("commtune: ") :]) == (
        f"commtune: {busy} (database is locked); waited for N s\n"
        f"  end the program that holds it, a backup or an open sqlite3 shell perhaps\n{_KEPT}"
    )
    assert any(has_footer(file) for file in commtune.records())

    assert commtune.resume_briefly().code == 130
    _all_is_stored(commtune)


#: In a mount namespace of its own: a tiny disk for the database, which is filled while the
#: campaign runs, and freed before the campaign goes on.
_SMALL_DISK = """
set -e
disk=$1; runs=$2; shift 2
mount -t tmpfs -o size=32m,mode=700 tmpfs "$disk"
"$@" 2> full.err & child=$!
until [ "$(ls "$runs" 2> /dev/null | wc -l)" -ge 3 ]; do kill -0 $child; sleep 0.05; done
cat /dev/zero > "$disk/ballast" 2> /dev/null || true
set +e; wait $child; echo "full: $?"
rm "$disk/ballast"
"$@" 2> freed.err > freed.out; echo "freed: $?"
cp "$disk"/commtune.db* "$HOME/data/commtune/"
"""


def _namespaces() -> bool:
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_disk_that_fills_up(commtune: CommandLine, tmp_path: Path) -> None:
    require_component("user namespaces (unshare)", _namespaces())
    disk = tmp_path / "disk"
    disk.mkdir()
    tune = [sys.executable, "-m", "commtune.cli", "tune", "campaign.yaml"]
    runs = str(tmp_path / "data/commtune/campaigns/small/runs")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", _SMALL_DISK, "sh", disk, runs, *tune],
        cwd=tmp_path,
        env={
            **commtune.environment(),
            "COMMTUNE_DB": str(disk / "commtune.db"),
            "COMMTUNE_DB_WAIT": "1",
        },
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout == "full: 3\nfreed: 0\n"
    err = (tmp_path / "full.err").read_text()
    full = (
        f"the database sqlite:///{disk}/commtune.db can't grow: the disk is full "
        "(database or disk is full)"
    )
    assert err.count(f"note: {full}: free some space; waiting for it, at most 1 s\n") == 1
    assert err[err.index("commtune: ") :] == f"commtune: {full}\n  free some space\n{_KEPT}"
    _all_is_stored(commtune)


def test_messages_that_a_full_disk_does_not_take_end_nothing(commtune: CommandLine) -> None:
    tune = [sys.executable, "-m", "commtune.cli", "tune", "campaign.yaml"]
    said = subprocess.run(
        ["sh", "-c", '"$@" 2> /dev/full', "sh", *tune],
        cwd=commtune.folder,
        env=commtune.environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    assert said.returncode == 0
    assert "commtune report small" in said.stdout
    _all_is_stored(commtune)


#: As above, with blocks smaller than a page of memory, and so few of them left that SQLite's
#: index of its log would get a part of each page only.
_SMALL_BLOCKS = """
set -e
disk=$1; shift
truncate -s 8M "$disk.image"
mkfs.ext4 -q -b 1024 "$disk.image"
mount -o loop "$disk.image" "$disk"
"$@"
for left in 8 9 10 11 12; do
    head -c ${left}k /dev/zero > "$disk/last"
    dd if=/dev/zero of="$disk/ballast" bs=1k 2> /dev/null || true
    rm "$disk/last"
    "$@" 2> /dev/null && echo 0 || echo "$?"
    rm "$disk/ballast"
done
umount "$disk"
"""


def test_a_full_disk_with_small_blocks_ends_nothing(commtune: CommandLine, tmp_path: Path) -> None:
    require_component("root, and mkfs.ext4", os.getuid() == 0 and bool(shutil.which("mkfs.ext4")))
    disk = tmp_path / "disk"
    disk.mkdir()
    opens = (
        "from commtune.db.connection.engine import open_database; "
        f"open_database('sqlite:///{disk}/commtune.db').close()"
    )
    program = [sys.executable, "-c", opens]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _SMALL_BLOCKS, "sh", str(disk), *program],
        env=commtune.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    # 1: said in words. 135: ended by SIGBUS.
    assert set(done.stdout.split()) <= {"0", "1"}, done.stdout


def test_a_database_that_is_deleted(commtune: CommandLine) -> None:
    with commtune.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(commtune.records()) >= 3, child)
        for file in commtune.database.parent.glob("commtune.db*"):
            file.unlink()
        before = len(commtune.records())
        wait_until(lambda: len(commtune.records()) > before + 3, child)
        child.terminate()
        _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 3
    assert f"the database sqlite:///{commtune.database} is gone" in err


def _read_until(child: Child, words: str) -> str:
    """What it says, up to the line with these words."""
    assert child.stderr
    said = ""
    for line in child.stderr:
        said += line
        if words in line:
            return said
    pytest.fail(f"it ended, and said: {said}")


@pytest.fixture
def on_server(commtune: CommandLine, own_postgresql: PostgresqlServer) -> CommandLine:
    """The command line over a server that the test may stop."""
    commtune.extra["COMMTUNE_DB"] = create_postgresql(own_postgresql.socket)
    return commtune


def test_a_server_that_goes_away_and_comes_back(
    on_server: CommandLine, own_postgresql: PostgresqlServer
) -> None:
    with on_server.start("tune", "campaign.yaml") as child:
        for wanted in (2, 5):
            assert wait_until(lambda: len(on_server.records()) >= wanted, child)  # noqa: B023
            own_postgresql.stop()
            waits = _read_until(child, "waiting for it")
            assert "can't be reached" in waits
            assert waits.endswith("; waiting for it, at most 3600 s\n")
            own_postgresql.start()
            _read_until(child, "note: the database works again, after ")
        out, err = child.communicate(timeout=2 * PATIENCE_S)
    assert child.returncode == 0, err
    assert "small: " in out
    _all_is_stored(on_server)
    # In the order in which they were made, and none but those.
    stored = on_server.query("SELECT run_id FROM runs ORDER BY id")
    made = sorted(on_server.records(), key=lambda file: file.stat().st_mtime_ns)
    assert [run_id for (run_id,) in stored] == [file.stem for file in made]


def test_a_server_that_stays_away(
    on_server: CommandLine, own_postgresql: PostgresqlServer
) -> None:
    on_server.extra["COMMTUNE_DB_WAIT"] = "2"
    with on_server.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(on_server.records()) >= 3, child)
        own_postgresql.stop()
        _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 3
    assert err.count("; waiting for it, at most 2 s\n") == 1
    last = err[err.index("commtune: ") :]
    assert "can't be reached" in last and last.endswith(_KEPT)
    # Whoever starts it again with the server away is told at once.
    started = on_server("tune", "campaign.yaml")
    assert started.code == 3 and "waiting" not in started.err
    # A job of 'commtune submit' has nobody who could start it again.
    in_job = replace(on_server, extra={**on_server.extra, "COMMTUNE_ALLOCATION": "key"})
    assert "; waiting for it, at most 2 s\n" in in_job("tune", "campaign.yaml").err

    own_postgresql.start()
    assert on_server.resume_briefly().code == 130
    _all_is_stored(on_server)


def test_ctrl_c_while_a_server_is_waited_for(
    on_server: CommandLine, own_postgresql: PostgresqlServer
) -> None:
    with on_server.start("tune", "campaign.yaml") as child:
        assert wait_until(lambda: len(on_server.records()) >= 3, child)
        own_postgresql.stop()
        _read_until(child, "waiting for it")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
    assert "commtune: interrupted; everything measured is kept\n" in err
    own_postgresql.start()
    assert on_server.resume_briefly().code == 130
    _all_is_stored(on_server)


def test_a_folder_that_cannot_be_made(commtune: CommandLine) -> None:
    blocked = commtune.folder / "data"
    blocked.write_text("a file")
    said = commtune("tune", "campaign.yaml", "--db", "elsewhere/commtune.db")
    assert said.code == 3
    assert said.err[said.err.index("commtune: ") :] == (
        "commtune: the folder for record files can't be created: "
        f"{blocked}/commtune/campaigns/small/runs: Not a directory\n"
        "  check its permissions and free space, or set XDG_DATA_HOME to another folder\n"
    )
