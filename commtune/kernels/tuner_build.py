"""Building the tuner plugin for NCCL, once: a shared library in the cache.

It takes a C++ compiler; neither an MPI nor a GPU nor NCCL.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import commtune
from commtune.kernels.build_steps import (
    BuildLog,
    BuildSteps,
    digest_of,
    find_tool,
    scratch_folder,
)
from commtune.model import content_key
from commtune.progress import ON_STEP

#: By which NCCL is told of a plugin.
PLUGIN_VARIABLE = "NCCL_TUNER_PLUGIN"
TUNER_LIBRARY = "libnccl-tuner-commtune.so"
_SOURCES = Path(__file__).parent / "tuner"
_LOG = "build.log"
_WORDS = "building the tuner plugin"
#: By which a user says what CMake compiles with.
_VARIABLES = ("CXX", "CXXFLAGS", "LDFLAGS")


def build_tuner(cache: Path, *, log: Path | None = None, again: bool = False) -> Path:
    """The plugin's library, built if the cache doesn't have it.

    Args:
        cache: folder for libraries, made if need be.
        log: file for the output of CMake and the compiler.
        again: build it whether the cache has it or not.

    Raises:
        MissingComponent: there is no CMake or Ninja.
        BuildFailed: there is no compiler, or it fails; the message ends in its last words.
        EnvironmentFault: the cache can't be written, or is full.
        UserError: the log can't be written.
    """
    library = cache / f"tuner-{_key()}" / TUNER_LIBRARY
    if library.is_file() and not again:
        return library
    # Several processes may build at once, each in a folder of its own: the last one stays.
    with scratch_folder(cache) as scratch:
        ON_STEP.get()(_WORDS, 0, 0)
        said = BuildLog(log, kept=scratch / _LOG)
        made = scratch / "build"
        steps = BuildSteps(made, os.environ, said, what="the tuner plugin", words=_WORDS)
        cmake, ninja = find_tool("cmake", "CMAKE_BIN_DIR"), find_tool("ninja", "BIN_DIR")
        configuring = [cmake, "-S", str(_SOURCES), "-B", str(made), "-G", "Ninja"]
        steps.run([*configuring, f"-DCMAKE_MAKE_PROGRAM={ninja}"])
        steps.run([cmake, "--build", str(made)])
        library.parent.mkdir(exist_ok=True)
        (made / TUNER_LIBRARY).replace(library)
    ON_STEP.get()(_WORDS, 1, 1)
    return library


def _key() -> str:
    files = [path for path in sorted(_SOURCES.rglob("*")) if path.parent.name != "tests"]
    return content_key(
        {
            "sources": digest_of(_SOURCES, files),
            "version": commtune.__version__,
            # A home may be shared by machines of several kinds.
            "machine": [platform.machine(), *platform.libc_ver()],
            "variables": {name: os.environ.get(name) for name in _VARIABLES},
        }
    )
