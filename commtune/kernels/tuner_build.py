"""Builds the tuner plugin for NCCL, a shared library, with a cache.

It needs a C++ compiler, but no MPI, GPU or NCCL.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import commtune
from commtune import process
from commtune.errors import UserError
from commtune.kernels.build_steps import (
    BuildLog,
    BuildSteps,
    digest_of,
    require_private,
    scratch_folder,
)
from commtune.model import content_key
from commtune.paths import is_file
from commtune.private_files import make_private_folder
from commtune.progress import ON_STEP

#: The environment variable that selects NCCL's plugin.
PLUGIN_VARIABLE = "NCCL_TUNER_PLUGIN"
#: The name that our plugin reports.
OWN_PLUGIN = "commtune"
_TUNER_LIBRARY = "libnccl-tuner-commtune.so"
#: A program that prints a plugin's name, which is the first member of its function tables. NCCL
#: uses the newest table that it knows.
_ASKING = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for version in (6, 5, 4, 3, 2):
    try:
        name = ctypes.c_char_p.in_dll(library, f"ncclTunerPlugin_v{version}").value
    except ValueError:
        continue
    print("found", name.decode(errors="replace"))
    break
"""
_ASKING_LIMIT_S = 30.0
_SOURCES = Path(__file__).parent / "tuner"
_WORDS = "building the tuner plugin"
#: Variables by which users select compiler and flags for CMake.
_VARIABLES = ("CXX", "CXXFLAGS", "LDFLAGS")


def build_tuner(cache: Path, *, log: Path | None = None, again: bool = False) -> Path:
    """Returns the plugin's library; builds it if the cache doesn't have it.

    Args:
        cache: folder for libraries, made if necessary.
        log: file for the output of CMake and the compiler.
        again: whether to build even if the cache has it.

    Raises:
        MissingComponent: there is no CMake or Ninja.
        BuildFailed: there is no compiler, or it fails; with the end of its output.
        EnvironmentFault: the cache can't be written, or is full.
        UserError: the log can't be written.
    """
    library = cache / f"tuner-{_key()}" / _TUNER_LIBRARY
    if is_file(library) and not again:
        require_private(library, "the tuner plugin")
        return library
    # Several processes may build at once, each in its own folder; the last build is kept.
    with scratch_folder(cache) as scratch:
        ON_STEP.get()(_WORDS, 0, 0)
        steps = BuildSteps(
            scratch, os.environ, BuildLog(log), what="the tuner plugin", words=_WORDS
        )
        steps.configure(_SOURCES)
        steps.compile()
        make_private_folder(library.parent)
        (scratch / _TUNER_LIBRARY).replace(library)
    ON_STEP.get()(_WORDS, 1, 1)
    return library


def find_plugin_name(written: str, environment: Mapping[str, str]) -> str:
    """Returns the name that a plugin for NCCL reports; ``commtune`` for ours.

    Args:
        written: the value of NCCL_TUNER_PLUGIN: a path, a library's name, or its suffix.

    Raises:
        UserError: there is no such plugin; with the loader's message.
    """
    tried = (written,) if "/" in written else (written, f"libnccl-tuner-{written}.so")
    for name in tried:
        # A separate process, since a loaded library may do anything.
        asked = process.run_process(
            [sys.executable, "-I", "-c", _ASKING, name],
            environment=environment,
            timeout_s=_ASKING_LIMIT_S,
        )
        lines = asked.output.strip().splitlines() or [""]
        if asked.ok and lines[-1].startswith("found "):
            return lines[-1].removeprefix("found ")
        said = "it has no table of a tuner plugin" if asked.ok else lines[-1]
    raise UserError(f"NCCL loads no tuner plugin by {PLUGIN_VARIABLE}={written}: {said}")


def _key() -> str:
    files = [path for path in sorted(_SOURCES.rglob("*")) if path.parent.name != "tests"]
    return content_key(
        {
            "sources": digest_of(_SOURCES, files),
            "version": commtune.__version__,
            # Machines of several kinds may share a home.
            "machine": [platform.machine(), *platform.libc_ver()],
            "variables": {name: os.environ.get(name) for name in _VARIABLES},
        }
    )
