"""The build cache, and builds that can't work."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent, UserError
from commtune.kernels.build import backends_of, build_benchmark
from commtune.kernels.toolchains import find_toolchain
from commtune.model import Backend, GpuKind, MpiInstallation
from commtune.progress import ON_STEP

_ROOT = Path(__file__).parents[2]
_GPU, _KERNELS = _ROOT / ".gpu", _ROOT / "commtune/kernels"
_CUDA_CMAKE = _KERNELS / "cmake/cuda.cmake"
_SMALL = {
    "main.cpp": """\
#include <cstdio>
#include "build_info.h"
int main() { std::puts(commtune::build_info().build_id); }
""",
    "cli/part.cpp": "void part() {}\n",
    "gpu/kernels.cu": "__global__ void nothing() {}\n",
}


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of CMake's files over a tiny program: for tests of what is built when, and where."""
    folder = tmp_path_factory.mktemp("kernels")
    shutil.copytree(_KERNELS / "cmake", folder / "cmake")
    shutil.copy(_KERNELS / "CMakeLists.txt", folder)
    (folder / "src" / "gpu").mkdir(parents=True)
    for name in ("build_info.cpp.in", "build_info.h"):
        shutil.copy(_KERNELS / "src" / name, folder / "src")
    for name, text in _SMALL.items():
        (folder / "src" / name).parent.mkdir(exist_ok=True)
        (folder / "src" / name).write_text(text)
    monkeypatch.setattr("commtune.kernels.build._SOURCES", folder)


@pytest.mark.usefixtures("small")
def test_two_builds_at_once_end_in_one_executable_that_is_kept(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(build_benchmark, mpi, tmp_path) for _ in range(2)]
        first, second = (job.result().executable for job in jobs)
    assert first == second
    assert [path.name for path in tmp_path.iterdir()] == [first.parent.name]
    made_ns = first.stat().st_mtime_ns
    assert build_benchmark(mpi, tmp_path).executable == first
    assert first.stat().st_mtime_ns == made_ns


@pytest.mark.usefixtures("small", "no_umask")
def test_a_build_is_not_used_from_a_folder_that_another_user_made_meanwhile(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    key = build_benchmark(mpi, tmp_path / "first").executable.parent.name
    laid = tmp_path / "cache" / key / "commtune-bench"

    def lay(*_: object) -> None:
        laid.parent.mkdir(0o777, exist_ok=True)
        write_script(laid, "echo evil")

    token = ON_STEP.set(lay)
    try:
        with pytest.raises(EnvironmentFault, match="is not used: everybody can write its folder"):
            build_benchmark(mpi, tmp_path / "cache")
    finally:
        ON_STEP.reset(token)


@pytest.mark.usefixtures("small")
def test_a_build_says_how_far_it_is(mpi: MpiInstallation, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    token = ON_STEP.set(lambda _, done, total: steps.append((done, total)))
    try:
        build_benchmark(mpi, tmp_path)
        made = len(steps)
        build_benchmark(mpi, tmp_path)
    finally:
        ON_STEP.reset(token)
    assert steps[0] == (0, 0)
    assert any(0 < done <= total for done, total in steps[1:-1])
    assert steps[-1] == (1, 1)
    assert len(steps) == made  # found again, nothing is built


def test_the_executable_starts_without_library_path(executable: Path) -> None:
    done = process.run_process([executable, "--version"], environment={}, timeout_s=PATIENCE_S)
    assert done.ok, done.output
    assert executable.parent.name in done.output  # the build's key


def test_another_version_of_the_mpi_is_built_anew(
    mpi: MpiInstallation, executable: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    (cache / executable.parent.name).mkdir(parents=True)
    (cache / executable.parent.name / executable.name).touch()
    assert build_benchmark(mpi, cache).executable.parent.name == executable.parent.name
    compiler = write_script(tmp_path / "mpicxx", "echo x")
    failing = dataclasses.replace(mpi, version="0.0", compiler=compiler)
    with pytest.raises(BuildFailed):
        build_benchmark(failing, cache)


def test_a_compiler_that_fails_is_quoted(mpi: MpiInstallation, tmp_path: Path) -> None:
    compiler = write_script(
        tmp_path / "mpicxx",
        '[ "$1" = --version ] && echo 1 && exit\necho "mpi.h is on strike" >&2; exit 1',
    )
    broken = dataclasses.replace(mpi, compiler=compiler)
    log = tmp_path / "log"
    with pytest.raises(BuildFailed, match=r"building the benchmark: cmake failed") as caught:
        build_benchmark(broken, tmp_path / "cache", log=log)
    assert caught.value.hint
    assert "mpi.h is on strike" in log.read_text()
    assert list((tmp_path / "cache").iterdir()) == []


def test_no_compiler_says_the_command_that_mends_it(
    mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    compiler = write_script(tmp_path / "mpicxx", "echo no c++ >&2; exit 127")
    missing = dataclasses.replace(mpi, compiler=compiler)
    with pytest.raises(MissingComponent, match=r"no C\+\+ compiler") as caught:
        build_benchmark(missing, tmp_path / "cache")
    assert caught.value.hint == "sudo apt-get install g++"


def test_a_cache_that_cant_be_written_is_named(mpi: MpiInstallation, tmp_path: Path) -> None:
    cache = tmp_path / "file"
    cache.touch()
    with pytest.raises(EnvironmentFault, match=f"can't build in {cache}"):
        build_benchmark(mpi, cache)


def test_the_compilers_variables_belong_to_the_key(
    mpi: MpiInstallation, executable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-not-a-flag")
    with pytest.raises(BuildFailed):
        build_benchmark(mpi, executable.parent.parent)
    assert "CXXFLAGS" in os.environ
    assert list(tmp_path.iterdir()) == []


def test_a_build_without_gpus_says_why_it_lacks_their_backends(executable: Path) -> None:
    built = backends_of(executable)
    assert built["mpi-host"] == ""
    assert set(built) == {str(backend) for backend in Backend if backend.is_native}
    reasons = {built[backend] for backend in built if Backend(backend).uses_gpu}
    assert reasons == {"built without GPUs (COMMTUNE_GPU=none)"}
    # An executable of before there was such a file.
    assert backends_of(executable.parent / "elsewhere" / "bench") == {"mpi-host": ""}


def test_a_build_from_before_tells_what_was_said_then(
    mpi: MpiInstallation, executable: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    found = build_benchmark(mpi, executable.parent.parent, log=log)
    assert (found.executable, found.is_new) == (executable, False)
    assert found.log.parent == executable.parent
    assert log.read_text() == found.log.read_text()
    assert "commtune-bench --version" in log.read_text()
    with pytest.raises(UserError, match="the log can't be written"):
        build_benchmark(mpi, executable.parent.parent, log=tmp_path / "nowhere" / "log")


@pytest.mark.usefixtures("small")
def test_a_build_that_is_asked_for_again_takes_the_place_of_the_one_before(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    key = build_benchmark(mpi, tmp_path).executable.parent
    for name in ("commtune-bench", "backends.txt", "build.log"):
        (key / name).write_text("of old")
    again = build_benchmark(mpi, tmp_path, again=True)
    assert (again.is_new, again.executable.parent) == (True, key)
    assert process.run_process(
        [again.executable, "--version"], environment={}, timeout_s=PATIENCE_S
    ).ok
    assert backends_of(again.executable)["mpi-host"] == ""
    assert again.log.read_text().startswith("$ ")
    assert list(tmp_path.iterdir()) == [key]


def _packages() -> Path:
    """CUDA's compiler and NCCL as Python's packages."""
    found = next(_GPU.glob("cuda/lib/python3*/site-packages/nvidia"), None)
    require_component("CUDA in .gpu (make gpu-compile)", found=found is not None)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_cuda_and_nccl_of_python_packages(
    mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All of the benchmark is compiled with both, and without NCCL, by 'make gpu-compile'.
    packages = _packages()
    monkeypatch.setenv("CUDA_HOME", str(packages / "cu13"))
    monkeypatch.setenv("NCCL_HOME", str(packages / "nccl"))
    toolchain = find_toolchain(GpuKind.CUDA, os.environ, ["90"])
    without_gpu = build_benchmark(mpi, tmp_path).executable
    made = build_benchmark(mpi, tmp_path, toolchain=toolchain).executable
    assert made.parent != without_gpu.parent
    assert backends_of(made) == {str(one): "" for one in Backend if one.is_native}
    assert process.run_process([made, "--version"], environment={}, timeout_s=PATIENCE_S).ok
    assert build_benchmark(mpi, tmp_path, toolchain=toolchain).executable == made
    alone = dataclasses.replace(toolchain, xccl=None)
    without_nccl = build_benchmark(mpi, tmp_path, toolchain=alone).executable
    lacking = {name: why for name, why in backends_of(without_nccl).items() if why}
    assert lacking == {"xccl": "it was left out by COMMTUNE_XCCL=off"}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_nccl_that_compiles_by_now_is_built_with(
    mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = _packages()
    nccl = tmp_path / "nccl"
    shutil.copytree(packages / "nccl" / "include", nccl / "include")
    (nccl / "lib").symlink_to(packages / "nccl" / "lib")
    header, whole = nccl / "include" / "nccl.h", (nccl / "include" / "nccl.h").read_text()
    header.write_text(f"#include <nv/target/that/is/not/there>\n{whole}")
    monkeypatch.setenv("CUDA_HOME", str(packages / "cu13"))
    monkeypatch.setenv("NCCL_HOME", str(nccl))
    cache, log = tmp_path / "cache", tmp_path / "log"
    toolchain = find_toolchain(GpuKind.CUDA, os.environ, ["90"])
    first = build_benchmark(mpi, cache, toolchain=toolchain)
    why = backends_of(first.executable)["xccl"]
    assert re.search(r"doesn't compile and link: .*nccl\.h:1:\d+: .*error: nv/target/that", why), (
        why
    )
    assert f"'nvidia-cuda-cccl~={'.'.join(toolchain.version.split('.')[:2])}.0'" in why
    assert "nv/target/that" in first.log.read_text()

    second = build_benchmark(mpi, cache, toolchain=toolchain, log=log)
    assert (second.executable, second.is_new) == (first.executable, False)
    assert "nv/target/that" in log.read_text()

    header.write_text(whole)
    third = build_benchmark(mpi, cache, toolchain=toolchain)
    assert (third.executable, third.is_new) == (first.executable, True)
    assert not any(backends_of(third.executable).values())
    assert not build_benchmark(mpi, cache, toolchain=toolchain).is_new


@pytest.mark.parametrize(("version", "is_refused"), [("11.4.152", True), ("11.5.50", False)])
def test_a_cuda_without_what_graphs_need_is_refused_in_words(
    tmp_path: Path, version: str, *, is_refused: bool
) -> None:
    said = f"echo 'Cuda compilation tools, release {version[:4]}, V{version}'"
    nvcc = write_script(tmp_path / "nvcc", said)
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    require_component("cmake", cmake is not None)
    program = [str(cmake), f"-DCMAKE_CUDA_COMPILER={nvcc}", "-P", str(_CUDA_CMAKE)]
    done = process.run_process(program, environment={}, timeout_s=PATIENCE_S)
    words = " ".join(done.output.split())
    assert (f"is of CUDA {version}, and 11.5 is the oldest" in words) is is_refused, words
