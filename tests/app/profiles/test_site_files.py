"""Files installed in a folder of a site: ours alone, whole, readable, and removed again."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commtune.app.profiles.site_files import install_files, remove_files
from commtune.errors import CampaignLocked, EnvironmentFault, UserError

_FILES = {"modulefiles/commtune-a/p.lua": b"-- p\n", "rules/a/rules.txt": b"1\n"}
_MANIFEST = "commtune-manifest.json"


def _found(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != _MANIFEST)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that a site has."""
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def test_all_can_read_what_is_installed_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        install_files(tmp_path / "site", "a", _FILES)
    finally:
        os.umask(before)
    assert _found(tmp_path / "site") == _FILES
    for path in [tmp_path / "site", *(tmp_path / "site").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_all_that_was_installed_is_removed_and_nothing_else(site: Path) -> None:
    (site / "modulefiles").mkdir()
    (site / "rules" / "a").mkdir(parents=True)
    (site / "rules" / "a" / "notes").write_text("mine")
    install_files(site, "a", _FILES)
    install_files(site, "b", {"rules/b/rules.txt": b"2\n"})
    assert remove_files(site, "b") == [site / "rules/b/rules.txt"]
    assert not (site / "rules" / "b").exists()
    remove_files(site)
    assert _found(site) == {"rules/a/notes": b"mine"}
    # The folder that was there before us stays, the one inside it that we made doesn't.
    assert sorted(path.name for path in site.iterdir()) == ["modulefiles", "rules"]
    assert list((site / "modulefiles").iterdir()) == []


def test_a_file_of_somebody_else_is_not_replaced(site: Path) -> None:
    (site / "rules" / "a").mkdir(parents=True)
    (site / "rules" / "a" / "rules.txt").write_text("mine")
    with pytest.raises(UserError, match="is there, and commtune did not install it"):
        install_files(site, "a", _FILES)
    assert _found(site) == {"rules/a/rules.txt": b"mine"}
    assert not (site / _MANIFEST).exists()


def test_a_refused_installation_leaves_no_folders(site: Path) -> None:
    (site / "rules").write_text("mine")
    with pytest.raises(UserError, match="rules is no folder"):
        install_files(site, "a", _FILES)
    assert [path.name for path in site.iterdir()] == ["rules"]


def test_an_installation_that_failed_leaves_no_unknown_folders(site: Path) -> None:
    with _room_for(10_000), pytest.raises(EnvironmentFault, match="File too large"):
        install_files(site, "a", {"modulefiles/commtune-a/p": b"x" * 20_000})
    remove_files(site)
    assert list(site.iterdir()) == []
    with _room_for(10), pytest.raises(EnvironmentFault, match="File too large"):
        install_files(site, "a", _FILES)
    assert list(site.iterdir()) == []


@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_was_changed_is_neither_replaced_nor_taken_away(
    site: Path, link: bool
) -> None:
    install_files(site, "a", _FILES)
    changed = site / "rules/a/rules.txt"
    if link:
        changed.rename(site / "elsewhere")
        changed.symlink_to(site / "elsewhere")
    else:
        changed.write_text("1\n# for our nodes\n")
    said = r"rules.txt (was changed|is no regular file)"
    with pytest.raises(UserError, match=said):
        remove_files(site)
    with pytest.raises(UserError, match=said):
        install_files(site, "a", _FILES)
    assert set(_found(site)) >= set(_FILES)
    changed.unlink()
    remove_files(site)
    assert not (site / "modulefiles").exists()


def test_what_a_campaign_has_no_more_is_taken_away(site: Path) -> None:
    install_files(site, "a", {**_FILES, "modulefiles/commtune-a/q": b"q"})
    (site / "rules/a/rules.txt").unlink()  # by hand: missing is no change to be kept
    gone = install_files(site, "a", {**_FILES, "rules/a/rules.txt": b"3\n"})
    assert gone == [site / "modulefiles/commtune-a/q"]
    assert _found(site) == {**_FILES, "rules/a/rules.txt": b"3\n"}
    before = (site / _MANIFEST).read_text()
    assert install_files(site, "a", {**_FILES, "rules/a/rules.txt": b"3\n"}) == []
    assert (site / _MANIFEST).read_text() == before


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    """No file may become larger: a full disk, for this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_after_an_interruption_all_is_known(site: Path) -> None:
    """Of two files one is replaced when the disk is full; each of them is whole."""
    install_files(site, "a", _FILES)
    large = {"modulefiles/commtune-a/p.lua": b"x" * 20_000, "rules/a/rules.txt": b"2\n"}
    with _room_for(10_000), pytest.raises(EnvironmentFault, match="File too large"):
        install_files(site, "a", large)
    assert _found(site) == {**_FILES, "rules/a/rules.txt": b"2\n"}
    install_files(site, "a", large)
    assert _found(site) == large
    with _room_for(10_000), pytest.raises(EnvironmentFault):
        install_files(site, "b", {"modulefiles/commtune-b/p": b"x" * 20_000, "rules/b/r": b"2\n"})
    remove_files(site)
    assert _found(site) == {}


def test_one_process_at_a_time(site: Path) -> None:
    install_files(site, "a", _FILES)
    handle = os.open(site, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        with pytest.raises(CampaignLocked, match="another process installs in"):
            remove_files(site)
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: None, "is damaged"),
        (lambda data: {**data, "files": {"../../etc/passwd": {}}}, "is damaged"),
        (
            lambda data: {**data, "files": {"/etc/x": {"campaign": "a", "digests": []}}},
            "is damaged",
        ),
        (lambda data: {**data, "folders": ["a/../.."]}, "is damaged"),
        (lambda data: {**data, "schema": "commtune-install/9"}, "another version of commtune"),
    ],
)
def test_a_manifest_that_is_not_ours_removes_nothing(
    site: Path, change: Callable[[dict[str, object]], object], said: str
) -> None:
    install_files(site, "a", _FILES)
    manifest = site / _MANIFEST
    manifest.write_text(json.dumps(change(json.loads(manifest.read_text()))))
    with pytest.raises(UserError, match=said):
        remove_files(site)
    assert _found(site) == _FILES


def test_nothing_is_there_to_take_away(site: Path) -> None:
    with pytest.raises(UserError, match="nothing was installed in"):
        remove_files(site)
    install_files(site, "a", _FILES)
    with pytest.raises(UserError, match="nothing of campaign b") as refused:
        remove_files(site, "b")
    assert refused.value.hint == "installed: a"
