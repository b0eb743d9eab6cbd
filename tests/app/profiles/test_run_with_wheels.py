"""``commtune run`` finds the launcher of the MPI that a profile was measured with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import database_values as given
import pytest
from stores import opened_store

from commtune.app.profiles.use import apply_profile
from commtune.model import Configuration, MpiFlavour, MpiInstallation
from commtune.wiring import benchmark_setup


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MpiInstallation:
    """An MPI in a prefix that is on nobody's PATH."""
    folder = tmp_path / "mpich" / "bin"
    folder.mkdir(parents=True)
    for name in ("mpicxx", "mpiexec"):
        (folder / name).touch(mode=0o755)
    mpi = MpiInstallation(
        MpiFlavour.MPICH, "5.0.2", folder.parent, folder / "mpicxx", folder / "mpiexec",
        environment={"NEEDED": "1"}, origin="wheel:mpich",
    )  # fmt: skip
    monkeypatch.setattr(benchmark_setup, "find_named_mpi", lambda _: mpi)
    return mpi


def applied(
    tmp_path: Path, program: str, version: str = "5.0.2", path: str = "/nowhere"
) -> tuple[dict[str, str], list[str]]:
    """What a command gets under a profile that was measured with an MPICH."""
    url = f"sqlite:///{tmp_path}/commtune.db"
    record = given.campaign()
    mpi = {"flavour": "mpich", "version": version}
    record = replace(record, what={**record.what, "mpi": mpi})
    with opened_store(url) as store:
        tuned = given.profile(configuration=Configuration({"A": "1"}))
        store.save_profiles(store.open_campaign(record).id, [tuned])
    reference = f"{record.name}/{tuned.name}"
    return apply_profile(reference, program, {"PATH": path}, url)


def test_a_launcher_that_path_lacks_is_that_of_the_profiles_mpi(
    tmp_path: Path, installed: MpiInstallation
) -> None:
    environment, remarks = applied(tmp_path, "mpiexec")
    assert environment["PATH"] == f"/nowhere:{installed.launcher.parent}"
    assert (environment["A"], environment["NEEDED"]) == ("1", "1")
    assert remarks[-1] == (
        "mpiexec is not on PATH; using that of mpich 5.0.2, which the profile was measured with: "
        f"{installed.launcher.parent}"
    )


@pytest.mark.parametrize(
    ("program", "version"), [("mpiexec", "4.3.0"), ("./mpiexec", "5.0.2"), ("nothing", "5.0.2")]
)
@pytest.mark.usefixtures("installed")
def test_other_versions_paths_and_programs_are_left_alone(
    tmp_path: Path, program: str, version: str
) -> None:
    environment, remarks = applied(tmp_path, program, version)
    assert environment["PATH"] == "/nowhere"
    assert not [remark for remark in remarks if "not on PATH" in remark]


def test_a_launcher_of_another_mpi_on_path_is_used_and_said(
    tmp_path: Path, installed: MpiInstallation
) -> None:
    other = tmp_path / "other" / "mpiexec"
    other.parent.mkdir()
    other.touch(mode=0o755)
    environment, remarks = applied(tmp_path, "mpiexec", path=str(other.parent))
    assert environment["PATH"] == str(other.parent)
    own = installed.launcher.parent
    assert remarks[-1] == (
        f"using {other}, and not that of mpich 5.0.2, which the profile was measured with; "
        f"for that one: export PATH={own}:$PATH"
    )


def test_the_profiles_own_launcher_on_path_needs_no_word(
    tmp_path: Path, installed: MpiInstallation
) -> None:
    _, remarks = applied(tmp_path, "mpiexec", path=str(installed.launcher.parent))
    assert not [remark for remark in remarks if "mpiexec" in remark]
