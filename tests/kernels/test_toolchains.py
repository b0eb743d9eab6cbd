"""Finding CUDA, ROCm, NCCL and RCCL: small folders with programs that say a version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_files import write_script

from commtune.errors import MissingComponent, UserError
from commtune.kernels.toolchains import (
    _CUDA_PACKAGES,
    _NCCL_PACKAGE,
    Toolchain,
    _parse_agents,
    _parse_compute_capabilities,
    _parse_version,
    _parse_xccl_version,
    find_toolchain,
    why_no_xccl,
)
from commtune.model import GpuKind

#: As nvcc of CUDA 13.0 and hipcc of Debian 12 say it.
NVCC = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:58:59_PM_PDT_2025
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0"""
HIPCC = """HIP version: 5.2.21153-0
Debian clang version 14.0.6"""
#: As in nccl.h of 2.28.9.
HEADER = """#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
"""


def program(path: Path, says: str) -> Path:
    return write_script(path, f"cat <<'END'\n{says}\nEND")


def library(root: Path, name: str = "nccl", header: str = "nccl.h", number: str = ".2") -> None:
    (root / "include" / header).parent.mkdir(parents=True, exist_ok=True)
    (root / "include" / header).write_text(HEADER)
    (root / "lib").mkdir(exist_ok=True)
    (root / "lib" / f"lib{name}.so{number}").write_bytes(b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH of its own, with what scripts need and nothing else."""
    folder = tmp_path / "path"
    folder.mkdir()
    for name in ("sh", "cat"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def test_a_module_that_sets_cuda_home_wins(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    program(path / "nvcc", NVCC.replace("V13.0.88", "V12.1.1"))
    environment = {"PATH": str(path), "CUDA_HOME": str(tmp_path / "cuda")}
    found = find_toolchain(GpuKind.CUDA, environment, ["90"])
    assert found.compiler == tmp_path / "cuda" / "bin" / "nvcc"
    assert (found.root, found.version) == (tmp_path / "cuda", "13.0.88")
    assert found.architectures == ("90",)


def test_a_compiler_on_the_path_is_followed_to_its_toolkit(tmp_path: Path, path: Path) -> None:
    real = program(tmp_path / "cuda-12.4" / "bin" / "nvcc", NVCC)
    (path / "nvcc").symlink_to(real)
    library(tmp_path / "cuda-12.4")
    found = find_toolchain(GpuKind.CUDA, {"PATH": str(path)}, ["80", "90"])
    assert found.root == tmp_path / "cuda-12.4"
    assert found.xccl is not None
    assert found.xccl.root == tmp_path / "cuda-12.4"
    assert found.architectures == ("80", "90")


def test_nccl_by_name_wins_over_the_toolkits_own(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    library(tmp_path / "cuda")
    library(tmp_path / "mine", number="")
    environment = {
        "PATH": str(path),
        "CUDA_HOME": str(tmp_path / "cuda"),
        "NCCL_HOME": str(tmp_path / "mine"),
    }
    found = find_toolchain(GpuKind.CUDA, environment, ["90"]).xccl
    assert found is not None
    assert (found.name, found.version, found.root) == ("NCCL", "2.28.9", tmp_path / "mine")
    assert found.library == tmp_path / "mine" / "lib" / "libnccl.so"


def test_a_header_without_its_library_is_not_taken(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    library(tmp_path / "cuda")
    library(tmp_path / "half")
    (tmp_path / "half" / "lib" / "libnccl.so.2").unlink()
    environment = {
        "PATH": str(path),
        "CUDA_HOME": str(tmp_path / "cuda"),
        "NCCL_HOME": str(tmp_path / "half"),
    }
    found = find_toolchain(GpuKind.CUDA, environment, ["90"]).xccl
    assert found is not None
    assert found.root == tmp_path / "cuda"


def test_packages_of_the_python_on_the_path_are_found(tmp_path: Path, path: Path) -> None:
    packages = tmp_path / "lib" / "python3.12" / "dist-packages"
    program(packages / "nvidia" / "cu13" / "bin" / "nvcc", NVCC)
    library(packages / "nvidia" / "nccl")
    program(path / "python3", str(packages))
    found = find_toolchain(GpuKind.CUDA, {"PATH": str(path)}, ["90"])
    if not str(found.root).startswith(("/usr/local/cuda", "/opt/cuda")):
        assert found.root == packages / "nvidia" / "cu13"
    assert found.xccl is not None


def test_rocm_and_rccl(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "rocm" / "bin" / "hipcc", HIPCC)
    program(tmp_path / "rocm" / "bin" / "rocm_agent_enumerator", "gfx000\ngfx90a\ngfx90a")
    library(tmp_path / "rocm", "rccl", "rccl/rccl.h", ".1")
    environment = {"PATH": str(path), "ROCM_PATH": str(tmp_path / "rocm")}
    found = find_toolchain(GpuKind.HIP, environment)
    assert (found.version, found.architectures) == ("5.2.21153-0", ("gfx90a",))
    assert found.xccl is not None
    assert (found.xccl.name, found.xccl.version) == ("RCCL", "2.28.9")


def test_the_gpus_that_are_there_say_what_to_build_for(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    program(path / "nvidia-smi", "9.0\n9.0\n8.0")
    environment = {"PATH": str(path), "CUDA_HOME": str(tmp_path / "cuda")}
    assert find_toolchain(GpuKind.CUDA, environment).architectures == ("80", "90")


def test_without_a_gpu_the_error_says_how_to_name_one(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    environment = {"PATH": str(path), "CUDA_HOME": str(tmp_path / "cuda")}
    with pytest.raises(MissingComponent) as caught:
        find_toolchain(GpuKind.CUDA, environment)
    assert "--arch" in caught.value.hint
    assert "COMMTUNE_GPU_ARCHITECTURES" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "written", "understood"),
    [
        (GpuKind.CUDA, "sm_90", "90"),
        (GpuKind.CUDA, "9.0", "90"),
        (GpuKind.CUDA, "90a", "90a"),
        (GpuKind.HIP, "gfx90a", "gfx90a"),
    ],
)
def test_architectures_as_people_write_them(
    tmp_path: Path, path: Path, kind: GpuKind, written: str, understood: str
) -> None:
    program(tmp_path / "bin" / "nvcc", NVCC)
    program(tmp_path / "bin" / "hipcc", HIPCC)
    root = str(tmp_path)
    environment = {"PATH": str(path), "CUDA_HOME": root, "ROCM_PATH": root}
    assert find_toolchain(kind, environment, [written]).architectures == (understood,)


@pytest.mark.parametrize(
    ("kind", "written"), [(GpuKind.CUDA, "gfx90a"), (GpuKind.HIP, "90"), (GpuKind.CUDA, "H100")]
)
def test_no_architecture_of_that_kind(
    tmp_path: Path, path: Path, kind: GpuKind, written: str
) -> None:
    program(tmp_path / "bin" / "nvcc", NVCC)
    program(tmp_path / "bin" / "hipcc", HIPCC)
    root = str(tmp_path)
    environment = {"PATH": str(path), "CUDA_HOME": root, "ROCM_PATH": root}
    with pytest.raises(UserError) as caught:
        find_toolchain(kind, environment, [written])
    assert written in caught.value.message


def test_what_tells_toolchains_apart(tmp_path: Path, path: Path) -> None:
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC)
    library(tmp_path / "cuda")
    environment = {"PATH": str(path), "CUDA_HOME": str(tmp_path / "cuda")}
    before = find_toolchain(GpuKind.CUDA, environment, ["90"]).plain()
    assert find_toolchain(GpuKind.CUDA, environment, ["90"]).plain() == before
    assert find_toolchain(GpuKind.CUDA, environment, ["80"]).plain() != before
    header = tmp_path / "cuda" / "include" / "nccl.h"
    header.write_text(HEADER.replace("PATCH 9", "PATCH 10"))
    newer = find_toolchain(GpuKind.CUDA, environment, ["90"]).plain()
    assert newer != before
    program(tmp_path / "cuda" / "bin" / "nvcc", NVCC.replace("V13.0.88", "V13.1.2"))
    assert find_toolchain(GpuKind.CUDA, environment, ["90"]).plain() != newer


def test_what_tools_print() -> None:
    assert _parse_compute_capabilities("9.0\n10.0\n9.0\n") == ["90", "100"]
    assert _parse_compute_capabilities("NVIDIA-SMI has failed because ...\n") == []
    assert _parse_agents("gfx000\ngfx942\ngfx942\n") == ["gfx942"]
    assert _parse_version(GpuKind.CUDA, "no such thing") == "unknown"
    assert _parse_xccl_version("#define NCCL_MAJOR 2\n") == "unknown"


def toolchain(kind: GpuKind, version: str) -> Toolchain:
    return Toolchain(kind, Path("/x"), Path("/x/bin/nvcc"), version, ("90",))


def test_where_nccl_is_missing_the_package_of_that_cuda_is_named() -> None:
    why = why_no_xccl(toolchain(GpuKind.CUDA, "13.0.88"))
    assert "module load nccl" in why
    assert f"python -m pip install {_NCCL_PACKAGE}" in why
    # That package is of another CUDA, or of another maker.
    assert "pip" not in why_no_xccl(toolchain(GpuKind.CUDA, "12.4.99"))
    assert "RCCL_HOME" in why_no_xccl(toolchain(GpuKind.HIP, "6.3.0"))


def test_the_packages_that_errors_name_are_those_that_are_tested(path: Path) -> None:
    file = Path(__file__).parents[2] / "requirements" / "cuda.txt"
    lines = file.read_text().splitlines()
    pinned = {line for line in lines if line and not line.startswith("#")}
    assert {*_CUDA_PACKAGES, _NCCL_PACKAGE} == pinned
    try:
        find_toolchain(GpuKind.CUDA, {"PATH": str(path)}, ["90"])
    except MissingComponent as missing:
        assert all(package in missing.hint for package in pinned)
