"""Versions that the header tells of libraries below MPI, against what these say elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_runs import RunBench
from components import require_component
from waiting import PATIENCE_S

from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
from commtune.kernels.programs import libmpi_of
from commtune.kernels.python_bench.libraries import library_versions
from commtune.model import MpiInstallation

#: Loads a library by its path in a process of its own, and prints what it says.
_ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
if sys.argv[2] == "libfabric":
    library.fi_version.restype = ctypes.c_uint32
    print(library.fi_version() >> 16, library.fi_version() & 0xffff, sep=".")
else:
    numbers = [ctypes.c_uint() for _ in range(3)]
    name = {"ucx": "ucp_get_version", "ucc": "ucc_get_version"}[sys.argv[2]]
    getattr(library, name)(*map(ctypes.byref, numbers))
    print(*(number.value for number in numbers), sep=".")
"""
_FILES = {"libfabric.so": "libfabric", "libucp.so": "ucx", "libucc.so": "ucc"}


def header_of(records: Path) -> dict[str, Any]:
    found = json.loads(records.read_text().splitlines()[0])
    assert isinstance(found, dict)
    return found


def asked_apart(path: str, name: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", _ASK, path, name], capture_output=True, text=True, check=True
    ).stdout.strip()


def loaded(header: dict[str, Any]) -> dict[str, str]:
    """Paths of the loaded libraries that tell a version, by the library's name."""
    return {
        name: path
        for path in header["libraries"]
        for file, name in _FILES.items()
        if path.rpartition("/")[2].startswith(file)
    }


def run_on(mpi: MpiInstallation, records: Path, **variables: str) -> dict[str, Any]:
    """The header of a run of the benchmark in Python, which needs no building."""
    pytest.importorskip("mpi4py")
    pytest.importorskip("numpy")
    program = [
        sys.executable, "-P", "-m", "commtune.kernels.python_bench", "--op=allreduce", "--sizes=8",
        "--warmup=1", "--min-samples=2", "--max-samples=2",
        f"--records={records}", f"--libmpi={libmpi_of(mpi)}",
    ]  # fmt: skip
    libmpi = {"MPI4PY_LIBMPI": libmpi_of(mpi)}
    done = subprocess.run(
        local_launcher(mpi).command(2, program, 0.0),
        env={**base_environment(os.environ, mpi), **libmpi, **variables},
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return header_of(records)


def of_system(compiler: str) -> MpiInstallation:
    """An MPI of the system's packages."""
    try:
        return find_mpi(f"/usr/bin/{compiler}")
    except CommtuneError:
        require_component(f"the system's {compiler}", found=False)
        raise


def system_ucx() -> str:
    """What the system's UCX says of itself on the command line."""
    require_component("ucx_info (apt-get install ucx-utils)", shutil.which("ucx_info") is not None)
    said = subprocess.run(["ucx_info", "-v"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"Version (\S+)", said)
    assert match is not None, said
    return match[1]


def test_loaded_libraries_say_their_versions(
    run_bench: RunBench, mpi: MpiInstallation, tmp_path: Path
) -> None:
    run = run_bench("--op=allreduce", "--sizes=8")
    native = header_of(run.records)
    assert native["versions"] == {n: asked_apart(p, n) for n, p in loaded(native).items()}
    in_python = run_on(mpi, tmp_path / "python.jsonl")
    assert in_python["versions"] == native["versions"]
    if mpi.origin == "wheel:mpich":
        assert set(native["versions"]) == {"libfabric", "ucx"}


def test_the_version_is_that_of_the_copy_that_is_loaded(
    run_bench: RunBench, tmp_path: Path
) -> None:
    # The wheels bring a newer UCX along, of which this takes the place.
    own = header_of(run_bench("--op=allreduce", "--sizes=8").records)["versions"]
    version = system_ucx()
    found = shutil.which("ucx_info")
    assert found is not None
    said = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"(libuc\S+) => (\S+)", said):
        (tmp_path / name).symlink_to(path)
    run = run_bench("--op=allreduce", "--sizes=8", environment={"LD_LIBRARY_PATH": str(tmp_path)})
    assert header_of(run.records)["versions"] == {**own, "ucx": version}
    assert version != own["ucx"]


def test_what_a_library_unloads_again_is_not_told(tmp_path: Path) -> None:
    # Open MPI's component that uses UCX is closed where it isn't chosen.
    openmpi = of_system("mpicxx.openmpi")
    anywhere = {
        f"OMPI_MCA_{part}_{what}": "any"
        for part in ("opal_common_ucx", "pml_ucx")
        for what in ("tls", "devices")
    }
    found = run_on(openmpi, tmp_path / "ucx.jsonl", OMPI_MCA_pml="ucx", **anywhere)
    assert found["versions"] == {"ucx": system_ucx()}
    assert "ucx" not in run_on(openmpi, tmp_path / "ob1.jsonl", OMPI_MCA_pml="ob1")["versions"]


def test_nothing_is_loaded_for_the_question() -> None:
    # In a process of its own: this one may have loaded libraries in other tests.
    program = (
        "from commtune.kernels.python_bench.libraries import *\n"
        "before = communication_libraries()\n"
        "print(library_versions(['libucp.so.0', 'libfabric.so.1', '/nowhere/libucc.so.1']),"
        " communication_libraries() == before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{} True\n"
    assert library_versions(["/opt/ucc/lib/ucc/libucc_tl_ucp.so", "libucpx.so"]) == {}


def preloading(folder: Path, name: str, function: str, version: str) -> dict[str, str]:
    """The environment in which a library is loaded first that has this name and says this."""
    compiler = shutil.which("cc")
    require_component("a C compiler", compiler is not None)
    source = f'const char *{function}(void) {{ return "{version}"; }}'
    subprocess.run(
        [str(compiler), "-shared", "-fPIC", "-x", "c", "-o", str(folder / name), "-"],
        input=source, text=True, check=True,
    )  # fmt: skip
    return {"LD_PRELOAD": str(folder / name)}


def test_ucc_is_asked(run_bench: RunBench, mpi: MpiInstallation, tmp_path: Path) -> None:
    # No MPI of the tests uses UCC: this has its name and its function.
    ours = preloading(tmp_path, "libucc.so.1", "ucc_get_version_string", "1.3.0")
    run = run_bench("--op=allreduce", "--sizes=8", environment=ours)
    assert header_of(run.records)["versions"]["ucc"] == "1.3.0"
    assert run_on(mpi, tmp_path / "python.jsonl", **ours)["versions"]["ucc"] == "1.3.0"


@pytest.mark.slow
def test_a_library_that_is_loaded_in_two_versions_is_left_out(
    run_bench: RunBench, mpi: MpiInstallation, tmp_path: Path
) -> None:
    alone = header_of(run_bench("--op=allreduce", "--sizes=8").records)["versions"]
    require_component("an MPI over UCX", "ucx" in alone)
    for version in (alone["ucx"], "1.0.0"):
        ours = preloading(tmp_path, "libucp-ours.so.0", "ucp_get_version_string", version)
        run = run_bench("--op=allreduce", "--sizes=8", environment=ours)
        expected = {n: v for n, v in alone.items() if n != "ucx" or v == version}
        assert header_of(run.records)["versions"] == expected
        assert run_on(mpi, tmp_path / "python.jsonl", **ours)["versions"] == expected
