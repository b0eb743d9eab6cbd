"""Installing an MPI: real pip, real venv, but a wheel of a few bytes, and no network."""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from pathlib import Path

import pytest
from components import require_component
from mpi_texts import MPICH_WHEEL

from commtune.cluster.mpi import wheels
from commtune.cluster.mpi.discovery import find_mpi, install_wheel
from commtune.cluster.mpi.wheels import WHEELS, requirements_of
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
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root for prefixes, and a pip that has the tiny MPICH wheel and no network.

    The wheel's hash is the expected one.
    """
    require_component("pip", importlib.util.find_spec("pip") is not None)
    (tmp_path / "links").mkdir()
    wheel = make_wheel(tmp_path / "links", "mpich", WHEELS["mpich"].version)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    pinned = tmp_path / "mpich.txt"
    pinned.write_text(f"--require-hashes\n{WHEELS['mpich'].pins[0]} --hash=sha256:{digest}\n")
    monkeypatch.setattr(wheels, "requirements_of", lambda _: pinned)
    monkeypatch.delenv("COMMTUNE_MPI_PATH", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    return tmp_path / "root"


def test_a_wheel_is_installed_once_and_whole(offline: Path) -> None:
    made = install_wheel("mpich", offline)
    assert made.origin == "wheel:mpich"
    assert [path.name for path in offline.iterdir()] == [f"mpich-{WHEELS['mpich'].version}"]
    (made.prefix / "mine").touch()
    assert (
        install_wheel("mpich", offline) == made == find_mpi("wheel:mpich", project_mpi=[offline])
    )
    assert (made.prefix / "mine").exists()  # nothing was made again


def test_a_wheel_with_another_hash_is_refused(
    offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The released one's, which the tiny wheel does not have.
    monkeypatch.setattr(wheels, "requirements_of", requirements_of)
    with pytest.raises(EnvironmentFault, match="not what was released") as error:
        install_wheel("mpich", offline)
    assert not error.value.transient
    assert list(offline.iterdir()) == []


@pytest.mark.parametrize("name", WHEELS)
def test_each_pin_has_hashes(name: str) -> None:
    _comment, mode, *lines = requirements_of(name).read_text().splitlines()
    assert mode == "--require-hashes"
    pins = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert sorted(pins) == sorted(WHEELS[name].pins)
    assert all(line.endswith("\\") for line in lines if not line.startswith(" "))


def test_what_an_interrupted_installation_left_is_replaced(offline: Path) -> None:
    (offline / f"mpich-{WHEELS['mpich'].version}" / "bin").mkdir(parents=True)
    assert install_wheel("mpich", offline).compiler.is_file()


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


def test_a_root_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="can't write"):
        install_wheel("mpich", tmp_path / "file" / "root")


def test_an_unknown_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'bob'"):
        install_wheel("bob", tmp_path)
