"""Files that were compressed are read as before."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, get_native_id

import pytest

from commtune.documents.packed_files import kept_file, pack_file, read_kept
from commtune.private_files import replace_own_file


def test_a_packed_file_is_read_as_before_and_keeps_mode_and_time(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"line\n" * 1000)
    file.chmod(0o640)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    plain = read_kept(file, 100)
    assert kept_file(file) == file and len(plain) == 100
    pack_file(file)
    packed = tmp_path / "run.jsonl.gz"
    assert list(tmp_path.iterdir()) == [packed] == [kept_file(file)]
    assert read_kept(file, 100) == plain
    status = packed.stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o640, 1_700_000_000)
    assert status.st_size < 500


def test_several_may_pack_and_read_at_once(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    files = [tmp_path / f"{number}.jsonl" for number in range(40)]
    for file in files:
        file.write_bytes(content)
    with ThreadPoolExecutor(4) as pool:
        packed = [pool.submit(pack_file, file) for file in files for _ in range(2)]
        read = [pool.submit(read_kept, file, 10**6) for file in files for _ in range(20)]
        assert all(one.result() == content for one in read)
        assert [one.result() for one in packed] == [None] * len(packed)
    assert sorted(tmp_path.iterdir()) == sorted(kept_file(file) for file in files)
    assert not any(file.exists() for file in files)


def test_threads_replace_the_same_file_with_whole_texts(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: replace_own_file(file, f"{n % 10}" * 100_000), range(100)))
    assert len(file.read_text()) == 100_000 and len(set(file.read_text())) == 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_that_others_lay_at_a_temporary_name_is_not_followed(tmp_path: Path) -> None:
    mine, file = tmp_path / "mine", tmp_path / "kept"
    mine.write_text("mine")
    part, done = tmp_path / f"kept.{get_native_id()}.part", Event()

    def lay_links() -> None:
        while not done.is_set():
            with suppress(OSError):
                part.symlink_to(mine)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lay_links)
        try:
            for _ in range(1000):
                with suppress(FileExistsError):  # the link is there first
                    replace_own_file(file, "theirs")
        finally:
            done.set()
    assert mine.read_text() == "mine"
    assert not file.is_symlink()


def test_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    link = tmp_path / "run.jsonl"
    link.symlink_to(tmp_path / "other")
    pack_file(link)
    assert (tmp_path / "other").read_text() == "mine" and link.is_symlink()


@pytest.mark.parametrize("end", [1, 20, -3])
def test_a_damaged_one_is_said_in_words(tmp_path: Path, end: int) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(os.urandom(2000))
    pack_file(file)
    packed = kept_file(file)
    packed.write_bytes(packed.read_bytes()[:end])
    with pytest.raises(OSError, match=r"run\.jsonl\.gz is damaged"):
        read_kept(file, 5000)
    with pytest.raises(FileNotFoundError):
        read_kept(tmp_path / "none", 10)
