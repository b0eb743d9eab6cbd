"""A recording in progress: what was recorded stays, whatever happens to its next session."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from recorded_grids import small_grid

from commtune.errors import EnvironmentFault, UserError
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


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("text", ["one", "one\ntwo", "1\n2\n3\n4"])
def test_what_is_no_recording_stays_as_it_is(tmp_path: Path, text: str, *, is_link: bool) -> None:
    tape = Recorder(tmp_path / "small.jsonl.gz")
    mine = tmp_path / "mine" if is_link else tape.part
    mine.write_text(text)
    if is_link:
        tape.part.symlink_to(mine)
    with pytest.raises(UserError, match="is not a recording"):
        tape.load()
    assert mine.read_text() == text


def test_a_link_that_others_laid_there_meanwhile_is_not_followed(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "small.jsonl.gz")
    tape.begin(small_grid())
    mine = tape.part.rename(tmp_path / "mine")
    before = mine.read_bytes()
    tape.part.symlink_to(mine)
    with pytest.raises(UserError, match="can't write"):
        tape.add(small_grid().runs[0])
    tape.begin(small_grid())  # replaces the link
    tape.add(small_grid().runs[0])
    assert mine.read_bytes() == before
