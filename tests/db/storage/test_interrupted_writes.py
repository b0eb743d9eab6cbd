"""Ctrl-C while something is written: it waits for the end, and nothing stays locked."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import text
from stores import opened_store

from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.storage.store import Store
from commtune.errors import DatabaseFault
from commtune.interrupts import Interrupts


def strike_when_begun(frame: FrameType, what: str, value: object) -> None:
    """A profile function: Ctrl-C as soon as the transaction has begun, before anybody has it."""
    del value
    if what != "return" or frame.f_code.co_qualname != "_GeneratorContextManager.__enter__":
        return
    if frame.f_locals["self"].gen.__name__ == "_begin":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)


def test_who_handles_it_can_write(sqlite_store: Store) -> None:
    written = "UPDATE locks SET pid = 1"
    sys.setprofile(strike_when_begun)
    try:
        with sqlite_store.database.write() as connection:
            connection.execute(text(written))
    except KeyboardInterrupt:
        # With a transaction left open by the one before this would wait for itself, in vain.
        with sqlite_store.database.write(BusyRetry(wait_s=0)) as connection:
            connection.execute(text(written))
    else:
        pytest.fail("the interrupt got lost")
    finally:
        sys.setprofile(None)


def test_a_wait_for_another_program_can_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.1")
    said: list[str] = []

    def struck(message: str) -> None:
        said.append(message)
        os.kill(os.getpid(), signal.SIGINT)

    with (
        opened_store(tmp_path / "test.db") as store,
        closing(sqlite3.connect(tmp_path / "test.db", isolation_level=None)) as other,
    ):
        write = store.database.write
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(KeyboardInterrupt), write(BusyRetry(wait_s=60, say=struck)):
            pass
        assert len(said) == 1
        # Also where a run is settled, which holds them back by itself.
        with pytest.raises(KeyboardInterrupt), Interrupts():
            with suppress(DatabaseFault), write(BusyRetry(wait_s=1, say=struck)):
                pass
            pytest.fail("it was held back")
        assert len(said) == 2
