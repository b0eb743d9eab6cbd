"""Headers and libraries where modules have put folders into variables that compilers read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process
from commtune.kernels.build import _named_headers_first
from commtune.kernels.toolchains import find_toolchain
from commtune.model import GpuKind


def _nccl(root: Path, minor: int) -> Path:
    (root / "include").mkdir(parents=True)
    (root / "lib").mkdir()
    text = f"#define NCCL_MAJOR 2\n#define NCCL_MINOR {minor}\n#define NCCL_PATCH 1\n"
    (root / "include" / "nccl.h").write_text(text)
    (root / "lib" / "libnccl.so.2").write_bytes(b"")
    return root


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_the_header_of_another_module_is_not_taken(tmp_path: Path, variable: str) -> None:
    compiler = shutil.which("g++")
    require_component("g++", compiler is not None)
    named, other = _nccl(tmp_path / "named", 28), _nccl(tmp_path / "other", 18)
    (other / "include" / "only_there.h").touch()
    source = tmp_path / "source.cpp"
    source.write_text("#include <nccl.h>\n#include <only_there.h>\nint is = NCCL_MINOR;\n")
    environment = _named_headers_first({**os.environ, variable: f":{other}/include"})
    done = process.run_process(
        [str(compiler), "-E", "-P", "-isystem", named / "include", source],
        environment=environment,
        timeout_s=PATIENCE_S,
    )
    assert done.ok, done.output
    assert done.output.split() == ["int", "is", "=", "28;"]


def test_an_environment_without_cpath_stays_as_it_is() -> None:
    for environment in ({"A": "1"}, {"CPATH": ""}, {"CPLUS_INCLUDE_PATH": "/x"}):
        assert _named_headers_first(environment) == environment


def test_a_library_that_a_module_brings_is_found(tmp_path: Path) -> None:
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    write_script(nvcc, "echo 'release 12.8, V12.8.93'")
    _nccl(tmp_path / "cuda", 18)
    module, named = _nccl(tmp_path / "module", 28), _nccl(tmp_path / "named", 29)
    closed = "x" * 5000  # a name that the system refuses to look at, as it does closed folders
    environment = {
        "PATH": "/usr/bin:/bin",
        "CUDA_HOME": str(tmp_path / "cuda"),
        "CMAKE_PREFIX_PATH": f"/nowhere:/{closed}::{module}",
    }
    for further, version in (({}, "2.28.1"), ({"NCCL_HOME": str(named)}, "2.29.1")):
        found = find_toolchain(GpuKind.CUDA, {**environment, **further}, ["90"])
        assert found.xccl is not None and found.xccl.version == version
