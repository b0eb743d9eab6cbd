"""The build cache where it can't be written, and where a part of a build is there."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from pathlib import Path

import pytest
from components import require_component
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import EnvironmentFault
from commtune.kernels.build import (
    _build_key,
    _put_in_place,
    build_benchmark,
    digest_of_sources,
)
from commtune.kernels.build_steps import scratch_folder
from commtune.kernels.toolchains import Toolchain, Xccl
from commtune.model import GpuKind, MpiInstallation

_ROOT = Path(__file__).parents[2]
_PARTS = ("commtune-bench", "backends.txt", "build.log")


def _kept(mpi: MpiInstallation, cache: Path, toolchain: Toolchain) -> Path:
    """A build without NCCL, of a toolchain that has one."""
    environment = {**os.environ, **mpi.environment}
    said = process.run_process(
        [mpi.compiler, "--version"], environment=environment, timeout_s=PATIENCE_S
    )
    folder = cache / _build_key(mpi, toolchain, said.output, environment, digest_of_sources())
    folder.mkdir(parents=True)
    said_then = ("x", "mpi-host yes\nxccl no: it fails\n", "it failed\n")
    for name, text in zip(_PARTS, said_then, strict=True):
        (folder / name).write_text(text)
    return folder


def test_a_build_that_lacks_something_will_do_where_none_can_be_made(
    mpi: MpiInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, cache, log = tmp_path / "nowhere", tmp_path / "cache", tmp_path / "log"
    xccl = Xccl("NCCL", "2.28.9", at, at / "nccl.h", at / "libnccl.so.2")
    toolchain = Toolchain(GpuKind.CUDA, at, at / "nvcc", "13.0.88", ("90",), xccl)
    folder = _kept(mpi, cache, toolchain)

    def refuse(**_: object) -> str:  # root may write everywhere but to what is mounted read-only
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    found = build_benchmark(mpi, cache, toolchain=toolchain, log=log)
    assert (found.executable.parent, found.is_new) == (folder, False)
    assert log.read_text() == "it failed\n"
    with pytest.raises(EnvironmentFault, match=f"can't build in {cache}: Read-only file system"):
        build_benchmark(mpi, cache, toolchain=toolchain, again=True)


def test_a_benchmark_that_others_can_write_is_not_started(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    at = tmp_path / "nowhere"
    toolchain = Toolchain(GpuKind.CUDA, at, at / "nvcc", "13.0.88", ("90",), None)
    folder = _kept(mpi, cache, toolchain)
    folder.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="is not used: everybody can write its folder"):
        build_benchmark(mpi, cache, toolchain=toolchain)
    folder.chmod(0o755)
    assert build_benchmark(mpi, cache, toolchain=toolchain).executable.parent == folder


@pytest.mark.parametrize(
    ("left", "over", "taken"),
    [
        ((), False, True),
        (_PARTS, False, False),  # another process was faster
        (_PARTS, True, True),
        (("build.log",), False, True),  # a site's cleaning took the others
        (("backends.txt", "build.log"), True, True),
    ],
)
def test_what_was_left_of_a_build_is_replaced(
    tmp_path: Path, left: tuple[str, ...], *, over: bool, taken: bool
) -> None:
    kept, made = tmp_path / "key", tmp_path / "scratch" / "build"
    kept.mkdir()
    made.mkdir(parents=True)
    for name in left:
        (kept / name).write_text("old")
    for name in _PARTS:
        (made.parent / name if name == "build.log" else made / name).write_text("new")
    _put_in_place(made, kept, over=over)
    assert {name: (kept / name).read_text() for name in _PARTS} == dict.fromkeys(
        _PARTS, "new" if taken else "old"
    )


@pytest.mark.parametrize(
    ("include", "version", "advice"),
    [
        ("site-packages/nvidia/cu13", "13.0.88", "pip install 'nvidia-cuda-cccl~=13.0.0'"),
        # There is no 13.5 of it: its numbers are others by then.
        ("site-packages/nvidia/cu13", "13.5.37", "pip install 'nvidia-cuda-cccl~=13.3'"),
        # Python's package of CUDA 12 has another name, and a folder that nvcc does not look in.
        ("/opt/cuda-12.8/include", "12.8.93", "not in /opt/cuda-12.8/include: load a whole"),
        ("/opt/cuda-13.0/include", "13.0.88", "not in /opt/cuda-13.0/include: load a whole"),
    ],
)
def test_a_part_of_cuda_that_lacks_is_named_as_it_can_be_had(
    tmp_path: Path, include: str, version: str, advice: str
) -> None:
    try:
        import cmake
    except ImportError:
        require_component("cmake's wheel", found=False)
    script = tmp_path / "say.cmake"
    script.write_text(
        f"set(COMMTUNE_GPU cuda)\nset(COMMTUNE_XCCL off)\n"
        f"include({_ROOT}/commtune/kernels/cmake/xccl.cmake)\n"
        f"set(gpu_include {include})\nset(gpu_version {version})\n"
        'why_xccl_fails(why "x\\nnccl.h:1:2: fatal error: nv/target: No such file\\ny")\n'
        'message("${why}")\n'
    )
    program = Path(cmake.CMAKE_BIN_DIR) / "cmake"
    done = process.run_process([program, "-P", script], environment={}, timeout_s=PATIENCE_S)
    assert done.output.startswith(": nccl.h:1:2: fatal error: nv/target: No such file; "), done
    assert advice in done.output


def test_machines_of_two_kinds_that_share_a_home_have_builds_of_their_own(
    mpi: MpiInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for processor in ("x86_64", "aarch64", "aarch64"):
        monkeypatch.setattr(platform, "machine", lambda processor=processor: processor)
        keys.add(_build_key(mpi, None, "g++ (GCC) 11.4.1", {}, "sources"))
    assert len(keys) == 2


def test_what_killed_builds_left_is_removed_a_day_later(tmp_path: Path) -> None:
    old, new, other = tmp_path / ".building-old", tmp_path / ".building-new", tmp_path / "key"
    two_days_ago = time.time() - 2 * 24 * 3600
    for folder in (old, new, other):
        (folder / "build").mkdir(parents=True)
    for folder in (old, other):
        os.utime(folder, (two_days_ago, two_days_ago))
    with scratch_folder(tmp_path) as scratch:
        assert {*tmp_path.iterdir()} == {new, other, scratch}
    assert {*tmp_path.iterdir()} == {new, other}
