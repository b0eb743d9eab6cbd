"""Building the native benchmark for an MPI, once: a cache by content.

The executable is made again when something of its key (``build_key``) changes, else found again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import commtune
from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent
from commtune.kernels.build_key import build_key, named_headers_first
from commtune.kernels.build_steps import (
    BuildLog,
    BuildSteps,
    digest_of,
    find_tool,
    last_lines,
    require_private,
    scratch_folder,
)
from commtune.kernels.toolchains import Toolchain
from commtune.model import Backend, MpiInstallation
from commtune.paths import is_file, is_folder
from commtune.progress import ON_STEP

#: The folder with the benchmark's CMakeLists.txt.
_SOURCES = Path(__file__).parent
_EXECUTABLE = "commtune-bench"
#: Beside it, lines of "NAME yes DETAIL" and "NAME no: REASON".
_BACKENDS = "backends.txt"
_LOG = "build.log"
_PROBE_LIMIT_S = 30.0
_BUILDING_WORDS = "building the benchmark (once for this MPI and version; a minute or two)"


@dataclass(frozen=True)
class BuiltBenchmark:
    """A benchmark that can be started, compiled now (``is_new``) or found from before."""

    executable: Path
    is_new: bool

    @property
    def log(self) -> Path:
        """What CMake and the compilers said when it was made; builds of old have none."""
        return self.executable.parent / _LOG


def build_benchmark(
    mpi: MpiInstallation,
    cache: Path,
    *,
    toolchain: Toolchain | None = None,
    log: Path | None = None,
    again: bool = False,
) -> BuiltBenchmark:
    """The benchmark for an MPI, built if the cache doesn't have it.

    Args:
        cache: folder for executables, made if need be.
        toolchain: for the backends on GPUs; without it there are none.
        log: file to keep the output of CMake and the compiler in, or to copy it to that was kept.
        again: build it whether the cache has it or not.

    Raises:
        MissingComponent: there is no compiler, CMake or Ninja.
        BuildFailed: it doesn't compile, link or start; the message ends in the tool's last words.
        EnvironmentFault: the cache can't be written, or is full.
        UserError: the log can't be written.
    """
    environment = {**os.environ, **mpi.environment}
    version = _compiler_version(mpi, environment)
    key = build_key(mpi, toolchain, version, environment, digest_of_sources())
    kept = BuiltBenchmark(cache / key / _EXECUTABLE, is_new=False)
    has_kept = is_file(kept.executable) and not again
    if has_kept:
        require_private(kept.executable, "the benchmark")
    # One that lacks a backend for which there is all, but which couldn't be compiled, is asked for
    # it each time, by CMake alone, and built again once that succeeds: what was missing may be
    # there by now, and is no part of the key.
    if has_kept and not _lacks_something(kept, toolchain):
        return _as_it_is(kept, log)
    # Several processes may build at once, each in a folder of its own: the first to finish wins.
    try:
        with scratch_folder(cache) as scratch:
            ON_STEP.get()(_BUILDING_WORDS, 0, 0)
            said = BuildLog(log, kept=scratch / _LOG)
            steps = BuildSteps(
                scratch / "build",
                named_headers_first(environment),
                said,
                what="the benchmark",
                words=_BUILDING_WORDS,
            )
            if has_kept and not _is_mended(steps, kept, mpi, toolchain, key):
                return kept
            if not has_kept:
                steps.run(_configuring(mpi, toolchain, key, steps.folder))
            _compile(steps)
            _put_in_place(steps.folder, kept.executable.parent, over=again or has_kept)
    except EnvironmentFault as fault:
        if not has_kept or isinstance(fault, BuildFailed):
            raise
        return _as_it_is(kept, log)  # a cache that is full, or not ours to write
    finally:
        ON_STEP.get()(_BUILDING_WORDS, 1, 1)
    return replace(kept, is_new=True)


def _as_it_is(kept: BuiltBenchmark, log: Path | None) -> BuiltBenchmark:
    said = ""
    with suppress(OSError):
        said = kept.log.read_text(encoding="utf-8")  # first: it may be the same file
    BuildLog(log).add(said or "It was already built, and the output was not kept.\n")
    return kept


def _lacks_something(kept: BuiltBenchmark, toolchain: Toolchain | None) -> bool:
    """Whether a build has no NCCL or RCCL though one was found to build it with."""
    has_xccl = toolchain is not None and toolchain.xccl is not None
    return has_xccl and bool(backends_of(kept.executable).get(Backend.XCCL))


def _is_mended(
    steps: BuildSteps,
    kept: BuiltBenchmark,
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    key: str,
) -> bool:
    """Configures; and whether a build would now have a backend that the one that is kept lacks."""
    try:
        steps.run(_configuring(mpi, toolchain, key, steps.folder))
    except (BuildFailed, MissingComponent):
        return False  # there is one that works
    found = backends_of(steps.folder / _EXECUTABLE)
    return any(
        why and not found.get(name, why) for name, why in backends_of(kept.executable).items()
    )


def backends_of(executable: Path) -> dict[str, str]:
    """All backends by name: empty for one that a build has, else the reason why it lacks it."""
    try:
        lines = (executable.parent / _BACKENDS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {"mpi-host": ""}
    parsed = (line.partition(" ") for line in lines)
    return {name: rest.partition("no: ")[2] for name, _, rest in parsed}


def digest_of_sources() -> str:
    """A key of all sources of the native benchmark."""
    folders = (_SOURCES / name for name in ("cmake", "src"))
    files = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return digest_of(_SOURCES, [_SOURCES / "CMakeLists.txt", *files])


def _compiler_version(mpi: MpiInstallation, environment: Mapping[str, str]) -> str:
    """What the compiler behind the wrapper says of itself."""
    done = process.run_process(
        [str(mpi.compiler), "--version"], environment=environment, timeout_s=_PROBE_LIMIT_S
    )
    if done.ok:
        return done.output
    if not any(shutil.which(name, path=environment.get("PATH")) for name in ("c++", "g++")):
        raise MissingComponent("there is no C++ compiler", hint="sudo apt-get install g++")
    raise BuildFailed(
        f"{mpi.compiler} --version fails:\n{last_lines(done.output)}",
        hint="name another MPI, or mend this one's compiler wrapper",
    )


def _configuring(
    mpi: MpiInstallation, toolchain: Toolchain | None, key: str, folder: Path
) -> list[str]:
    """CMake's command that says what will be built."""
    return [
        find_tool("cmake", "CMAKE_BIN_DIR"),
        "-S", str(_SOURCES), "-B", str(folder), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja', 'BIN_DIR')}",
        f"-DCMAKE_CXX_COMPILER={mpi.compiler}",
        f"-DCMAKE_BUILD_RPATH={';'.join(library_folders(mpi.prefix))}",
        f"-DCOMMTUNE_VERSION={commtune.__version__}",
        f"-DCOMMTUNE_BUILD_ID={key}",
        *_gpu_options(toolchain),
    ]  # fmt: skip


def _compile(steps: BuildSteps) -> None:
    """Compiles what was configured, and makes sure that the result starts."""
    steps.run([find_tool("cmake", "CMAKE_BIN_DIR"), "--build", str(steps.folder)])
    # A library that only the linker finds shows here, and not as a crash of the first run.
    steps.run([str(steps.folder / _EXECUTABLE), "--version"])


def _gpu_options(toolchain: Toolchain | None) -> list[str]:
    if toolchain is None:
        return ["-DCOMMTUNE_GPU=none"]
    xccl, kind = toolchain.xccl, str(toolchain.kind)
    return [
        f"-DCOMMTUNE_GPU={kind}",
        f"-DCMAKE_{kind.upper()}_COMPILER={toolchain.compiler}",
        f"-DCOMMTUNE_GPU_ROOT={toolchain.root}",
        f"-DCOMMTUNE_GPU_ARCHITECTURES={';'.join(toolchain.architectures)}",
        f"-DCOMMTUNE_XCCL_ROOT={xccl.root}" if xccl else "-DCOMMTUNE_XCCL=off",
    ]


def library_folders(prefix: Path) -> list[str]:
    """Where an MPI's libraries are; none for the system's, which are found without being named."""
    if prefix in (Path("/"), Path("/usr")):
        return []
    folders = [prefix / "lib", prefix / "lib64", prefix / "lib" / "release"]
    return [str(folder) for folder in folders if any(folder.glob("libmpi*.so*"))]


def _put_in_place(made: Path, kept: Path, *, over: bool) -> None:
    """Moves a build to the cache; ``over`` one that is there, file by file: it may be running."""
    result = made.parent / "result"
    result.mkdir(0o700)
    for file in (made / _EXECUTABLE, made / _BACKENDS, made.parent / _LOG):
        file.rename(result / file.name)
    try:
        result.rename(kept)
    except OSError:
        if not is_folder(kept):
            raise
        # Else another process was faster, as good as ours; or a part of one was left.
        if over or not is_file(kept / _EXECUTABLE):
            # Whoever ends us in between leaves an executable that has more than its list says, and
            # is asked for that again: none that lacks what is said.
            for name in (_EXECUTABLE, _BACKENDS, _LOG):
                (result / name).replace(kept / name)
