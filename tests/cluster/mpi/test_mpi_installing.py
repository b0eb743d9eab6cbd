"""Installing an MPI: real pip, real venv, but a wheel of a few bytes, and no network."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from components import require_component
from mpi_texts import MPICH_WHEEL
from small_disks import SMALL, fill, small_disk

from commtune.cluster.mpi.discovery import find_mpi, install_wheel
from commtune.cluster.mpi.wheels import WHEELS
from commtune.errors import EnvironmentFault, UnknownName


def make_wheel(folder: Path, name: str, version: str) -> Path:
    info = f"{name}-{version}.dist-info"
    scripts = f"{name}-{version}.data/scripts"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
        f"{scripts}/mpicxx": "#!/bin/sh\necho c++ -lmpi\n",
        f"{scripts}/mpiexec": f"#!/bin/sh\ncat <<'.'\n{MPICH_WHEEL}.\n",
    }
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)
    return file


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a pip without a network finds its wheels; the tiny MPICH is there."""
    require_component("pip", importlib.util.find_spec("pip") is not None)
    folder = tmp_path / "links"
    folder.mkdir()
    make_wheel(folder, "mpich", WHEELS["mpich"].version)
    monkeypatch.delenv("COMMTUNE_MPI_PATH", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def offline(links: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root for prefixes; the tiny wheel's hash is the one that is asked for."""
    (wheel,) = links.iterdir()
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pinned = tmp_path / "mpich.txt"
    pinned.write_text(f"--require-hashes\n{WHEELS['mpich'].pins[0]} --hash=sha256:{digest}\n")
    monkeypatch.setitem(WHEELS, "mpich", replace(WHEELS["mpich"], requirements=pinned))
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(tmp_path / "root"))
    return tmp_path / "root"


def test_a_wheel_is_installed_once_and_whole(offline: Path) -> None:
    made = install_wheel("mpich", offline)
    assert made.origin == "wheel:mpich"
    assert [path.name for path in offline.iterdir()] == [f"mpich-{WHEELS['mpich'].version}"]
    (made.prefix / "mine").touch()
    assert install_wheel("mpich", offline) == made == find_mpi("wheel:mpich")
    assert (made.prefix / "mine").exists()  # nothing was made again


def test_what_is_there_already_is_not_started_if_others_can_write_it(offline: Path) -> None:
    made = install_wheel("mpich", offline)
    for folder in (made.prefix, made.compiler.parent):
        folder.chmod(0o755)
    made.compiler.chmod(0o777)
    said = f"the MPI in {made.prefix} is not used: everybody can write {made.compiler}"
    with pytest.raises(EnvironmentFault, match=said):
        install_wheel("mpich", offline)


def test_under_any_umask_nobody_else_can_write_what_is_installed(
    offline: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    offline.mkdir(0o755)
    before = os.umask(0)
    try:
        made = install_wheel("mpich", offline)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert find_mpi("wheel:mpich") == made


@pytest.mark.usefixtures("links")
def test_a_wheel_with_another_hash_is_refused(tmp_path: Path) -> None:
    # The released one's, which the tiny wheel does not have.
    with pytest.raises(EnvironmentFault, match="not what was released") as error:
        install_wheel("mpich", tmp_path / "root")
    assert not error.value.transient
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize("name", WHEELS)
def test_each_pin_has_hashes_and_one_version(name: str) -> None:
    _comment, mode, *lines = WHEELS[name].requirements.read_text().splitlines()
    assert mode == "--require-hashes"
    assert {pin.partition("==")[2] for pin in WHEELS[name].pins} == {WHEELS[name].version}
    assert all(line.endswith("\\") for line in lines if not line.startswith(" "))


def test_what_an_interrupted_installation_left_is_replaced(offline: Path) -> None:
    (offline / f"mpich-{WHEELS['mpich'].version}" / "bin").mkdir(parents=True)
    assert install_wheel("mpich", offline).compiler.is_file()


def test_a_prefix_that_another_process_changes_meanwhile_is_replaced(offline: Path) -> None:
    folder = offline / f"mpich-{WHEELS['mpich'].version}" / "bin"
    folder.mkdir(parents=True)
    changing = """
import os, sys
os.chdir(sys.argv[1])
while True:
    for number in range(2000):
        open(str(number), "w").close()
    print("begun", flush=True)
"""
    arguments = [sys.executable, "-c", changing, str(folder)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout and child.stdout.readline()
        try:
            assert install_wheel("mpich", offline).compiler.is_file()
        finally:
            child.kill()


def test_a_failing_pip_leaves_nothing_and_says_why(
    offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(EnvironmentFault, match="mpich==") as error:
        install_wheel("mpich", offline)
    assert error.value.transient
    assert str(offline) in error.value.hint
    assert list(offline.iterdir()) == []


def test_a_full_disk_is_not_taken_for_the_network(offline: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path):
        disk = tmp_path / SMALL
        require_component("rights to mount", disk.is_mount())
        fill(disk)
        with pytest.raises(EnvironmentFault, match="No space left on device") as error:
            install_wheel("mpich", disk / offline.name)
    assert error.value.hint.startswith("when there is room: ")


def test_a_root_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="can't write"):
        install_wheel("mpich", tmp_path / "file" / "root")


def test_an_unknown_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'bob'"):
        install_wheel("bob", tmp_path)
