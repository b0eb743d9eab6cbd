"""What others can have laid into the cache of builds, and what builds tell of the environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from made_files import give_away

from commtune.errors import BuildFailed, EnvironmentFault
from commtune.kernels.library_builds import build_message_counter, build_tuner
from commtune.model import MpiInstallation
from commtune.progress import ON_STEP

pytestmark = pytest.mark.usefixtures("no_umask")


def _check_library(build: Callable[[Path], Path], cache: Path) -> None:
    library = build(cache)
    assert {one.stat().st_mode & 0o777 for one in (cache, library.parent)} == {0o700}
    assert build(cache) == library
    for folder in (cache, library.parent):
        folder.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="is not used: everybody can write it") as fault:
        build(cache)
    assert str(library) in fault.value.hint


@pytest.mark.slow
def test_a_plugin_that_others_can_write_is_not_loaded(tmp_path: Path) -> None:
    _check_library(build_tuner, tmp_path / "cache")


def test_a_counter_that_others_can_write_is_not_preloaded(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    _check_library(partial(build_message_counter, mpi), tmp_path / "cache")


@pytest.mark.slow
def test_a_library_is_not_put_beside_what_others_wrote(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cache = tmp_path / "cache"
    key = build_tuner(tmp_path / "first").parent.name
    # As another user's process would do meanwhile, in a sticky folder.
    token = ON_STEP.set(lambda *_: (cache / key).mkdir(0o777, exist_ok=True))
    request.addfinalizer(lambda: ON_STEP.reset(token))
    with pytest.raises(EnvironmentFault, match="is not used: everybody can write it"):
        build_tuner(cache)


@pytest.mark.slow
@pytest.mark.root
def test_nothing_is_built_in_a_cache_of_another(
    open_folder: Path, request: pytest.FixtureRequest
) -> None:
    folder = build_tuner(open_folder).parent
    folder.rename(open_folder / "kept")
    folder.mkdir()
    give_away(folder)
    token = ON_STEP.set(lambda *_: pytest.fail("something is built"))
    request.addfinalizer(lambda: ON_STEP.reset(token))
    with pytest.raises(EnvironmentFault, match="is not used: its folder belongs to nobody"):
        build_tuner(open_folder)
    folder.rmdir()
    give_away(open_folder)
    with pytest.raises(
        EnvironmentFault, match=f"cache {open_folder} is not used: its folder belongs"
    ):
        build_tuner(open_folder)


@pytest.mark.parametrize(
    "defined",
    [
        "-DTOKEN=s3cretword",
        r"-DTOKEN=\"s3cretword\"",
        "-DTOKEN='\"s3cretword two\"'",
        '"-DTOKEN=one s3cretword"',
        r"-DTOKEN=\"one\ s3cretword\"",
        r"-DTOKEN=one\(s3cretword\)",
        "'-DTOKEN(x)=s3cretword'",
        "-D TOKEN=s3cretword",
        "-Wp,-DTOKEN=s3cretword",
        "\"-DTOKEN=one s3cretword -I'",
    ],
)
def test_what_flags_define_is_neither_printed_nor_kept(
    defined: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", f"-O1 {defined} -DSIZE=1 -include /missing.h")
    log = tmp_path / "log"
    with pytest.raises(BuildFailed) as fault:
        build_tuner(tmp_path / "cache", log=log)
    said = fault.value.message + log.read_text()
    assert "s3cretword" not in said
    assert "TOKEN" in said and "***" in said and "-DSIZE=1 -include /missing.h" in said
