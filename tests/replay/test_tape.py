"""A recording in progress: what was recorded stays, whatever happens to its next session."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from recorded_grids import small_grid

from commtune.errors import EnvironmentFault
from commtune.replay.recording import Recorder


def test_where_there_is_no_room_to_go_on_nothing_is_lost(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "small.jsonl.gz")
    tape.begin(small_grid())
    before = tape.part.read_bytes()
    known = tape.load()
    assert known is not None
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, most))
    try:
        with pytest.raises(EnvironmentFault, match="can't write"):
            tape.begin(known)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert tape.part.read_bytes() == before
    assert list(tmp_path.iterdir()) == [tape.part]
