"""Builds shared libraries with a cache: NCCL's tuner plugin, and the counter of messages."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import commtune
from commtune import process
from commtune.errors import UserError
from commtune.kernels.build_steps import BuildLog, BuildSteps, digest_of, scratch_folder
from commtune.model import MpiInstallation, content_key
from commtune.paths import is_file
from commtune.private_files import make_private_folder, require_own
from commtune.progress import ON_STEP

#: The environment variable that selects NCCL's plugin.
PLUGIN_VARIABLE = "NCCL_TUNER_PLUGIN"
#: The name that our plugin reports.
OWN_PLUGIN = "commtune"
#: The environment variable with the folder to which each process writes its counts.
COUNTS_FOLDER = "COMMTUNE_MESSAGES"
_TUNER_LIBRARY = "libnccl-tuner-commtune.so"
_COUNTER_LIBRARY = "libcommtune-messages.so"
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
_TUNER_SOURCES = Path(__file__).parent / "tuner"
_COUNTER_SOURCES = Path(__file__).parent / "message_counts"
#: Variables by which users select compiler and flags for CMake.
_VARIABLES = ("CXX", "CXXFLAGS", "LDFLAGS")


def build_tuner(cache: Path, *, log: Path | None = None, again: bool = False) -> Path:
    """Returns the plugin's library, which needs no MPI, GPU or NCCL; builds it if necessary.

    Args:
        cache: folder for libraries, made if necessary.
        log: file for the output of CMake and the compiler.
        again: whether to build even if the cache has it.

    Raises:
        MissingComponent: there is no CMake or Ninja.
        BuildFailed: there is no compiler, or it fails; with the end of its output.
        EnvironmentFault: the cache can't be written, or is full, or others can write it.
        UserError: the log can't be written.
    """
    files = [path for path in sorted(_TUNER_SOURCES.rglob("*")) if path.parent.name != "tests"]
    key = content_key(
        {
            "sources": digest_of(_TUNER_SOURCES, files),
            "version": commtune.__version__,
            "machine": _machine(),
            "variables": {name: os.environ.get(name) for name in _VARIABLES},
        }
    )

    def compile_plugin(steps: BuildSteps) -> None:
        steps.configure(_TUNER_SOURCES)
        steps.compile()

    library = cache / f"tuner-{key}" / _TUNER_LIBRARY
    _build(library, "the tuner plugin", compile_plugin, os.environ, log=log, again=again)
    return library


def build_message_counter(mpi: MpiInstallation, cache: Path) -> Path:
    """Returns the library that counts a program's messages with an MPI; builds it if necessary.

    Raises:
        BuildFailed: it doesn't compile; with the end of the compiler's output.
        EnvironmentFault: the cache can't be written, or is full, or others can write it.
    """
    sources = sorted(_COUNTER_SOURCES.glob("*.cpp"))
    built_of = [digest_of(_COUNTER_SOURCES, sources), str(mpi.compiler), mpi.version, *_machine()]

    def compile_counter(steps: BuildSteps) -> None:
        options = ["-std=c++17", "-O2", "-fPIC", "-shared", *map(str, sources)]
        # By its rpath, the library finds MPI for programs that load MPI later, such as Python.
        rpath = f"-Wl,-rpath,{mpi.prefix / 'lib'}"
        made = str(steps.folder / _COUNTER_LIBRARY)
        steps.run([str(mpi.compiler), *options, "-o", made, rpath])

    library = cache / f"messages-{content_key({'built of': built_of})}" / _COUNTER_LIBRARY
    environment = {**os.environ, **mpi.environment}
    _build(library, "the counter of messages", compile_counter, environment)
    return library


def _machine() -> list[str]:
    """Returns what a build depends on where machines of several kinds share a home."""
    return [platform.machine(), *platform.libc_ver()]


def _build(
    library: Path,
    what: str,
    make: Callable[[BuildSteps], None],
    environment: Mapping[str, str],
    *,
    log: Path | None = None,
    again: bool = False,
) -> None:
    """Builds a library in the cache, unless it is there and ``again`` is false."""
    refusal = f"{what} {library} is not used"
    require_own(refusal, library)
    if is_file(library) and not again:
        return
    words = f"building {what}"
    # Several processes may build at once, each in its own folder; the last build is kept.
    with scratch_folder(library.parent.parent) as scratch:
        ON_STEP.get()(words, 0, 0)
        make(BuildSteps(scratch, environment, BuildLog(log), what=what, words=words))
        make_private_folder(library.parent)
        (scratch / library.name).replace(library)
    require_own(refusal, library)  # the folder may have been there, and another's
    ON_STEP.get()(words, 1, 1)


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
