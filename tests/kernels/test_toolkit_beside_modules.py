"""A toolkit that is named is built with, whatever else modules have loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from components import require_component
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process

_CMAKE = Path(__file__).parents[2] / "commtune/kernels/cmake"
_KINDS = {
    "cuda": ("release 12.8, V12.8.93", "cuda_runtime_api.h", "libcudart.so", "90"),
    "hip": ("HIP version: 6.3.0", "hip/hip_runtime_api.h", "libamdhip64.so", "gfx90a"),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_header_and_runtime_are_those_of_the_toolkit_named(tmp_path: Path, kind: str) -> None:
    try:
        import cmake
    except ImportError:
        require_component("cmake's wheel", found=False)
    version, header, library, architecture = _KINDS[kind]
    for name in ("named", "loaded"):
        for file in (f"include/{header}", f"lib/{library}"):
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).touch()
    compiler, script = tmp_path / "compiler", tmp_path / "find.cmake"
    write_script(compiler, f"echo '{version}'")
    script.write_text(
        "set(CMAKE_FIND_LIBRARY_PREFIXES lib)\nset(CMAKE_FIND_LIBRARY_SUFFIXES .so)\n"
        f"set(CMAKE_{kind.upper()}_COMPILER {compiler})\n"
        f"set(COMMTUNE_GPU_ROOT {tmp_path}/named)\n"
        f"set(COMMTUNE_GPU_ARCHITECTURES {architecture})\n"
        f'include({_CMAKE}/{kind}.cmake)\nmessage("${{gpu_include}} ${{gpu_libraries}}")\n'
    )
    done = process.run_process(
        [Path(cmake.CMAKE_BIN_DIR) / "cmake", "-P", script],
        environment={"CMAKE_PREFIX_PATH": str(tmp_path / "loaded"), "PATH": "/usr/bin:/bin"},
        timeout_s=PATIENCE_S,
    )
    named = tmp_path / "named"
    assert done.output.split()[-2:] == [f"{named}/include", f"{named}/lib/{library}"], done.output
