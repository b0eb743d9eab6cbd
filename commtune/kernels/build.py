"""Builds the native benchmark for an MPI, with a cache by content.

A new build is made when the key changes, which is computed from all that a build depends on.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import commtune
from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent
from commtune.kernels.build_steps import (
    BuildLog,
    BuildSteps,
    digest_of,
    last_lines,
    scratch_folder,
)
from commtune.kernels.toolchains import Toolchain
from commtune.model import Backend, GpuKind, MpiInstallation, content_key
from commtune.paths import is_file, is_folder
from commtune.private_files import require_own
from commtune.progress import ON_STEP

#: The folder with the benchmark's CMakeLists.txt.
_SOURCES = Path(__file__).parent
_EXECUTABLE = "commtune-bench"
#: A file beside the executable, with lines "NAME yes DETAIL" and "NAME no: REASON".
_BACKENDS = "backends.txt"
_LOG = "build.log"
_PROBE_LIMIT_S = 30.0
_BUILDING_WORDS = "building the benchmark (once for this MPI and version; a minute or two)"

#: Variables by which users or environment modules affect a compiler or its wrapper. If one is
#: missing, a stale build is used when it changes. The list comes from the wrappers themselves, and
#: from HPE's and AMD's manuals.
_COMPILER_VARIABLES = (
    "CMAKE_BUILD_TYPE", "CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
    "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
    "LD_RUN_PATH",
    "MPICH_CXX", "MPICXX_PROFILE",
    "OMPI_CXX", "OMPI_MPICXX", "OMPI_CPPFLAGS", "OMPI_CXXFLAGS", "OMPI_LDFLAGS", "OMPI_LIBS",
    "OPAL_PREFIX", "OPAL_INCLUDEDIR", "OPAL_LIBDIR", "OPAL_DATADIR", "OPAL_PKGDATADIR",
    "I_MPI_CXX", "I_MPI_CXXFLAGS", "I_MPI_LDFLAGS", "I_MPI_CXX_PROFILE", "I_MPI_LINK",
    "I_MPI_ROOT", "I_MPI_COMPILER_CONFIG_DIR", "I_MPI_DEBUG_INFO_STRIP",
    "I_MPI_FORT_BIND",
)  # fmt: skip
_GPU_VARIABLES = {
    GpuKind.CUDA: ("CUDAFLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS"),
    GpuKind.HIP: (
        "HIPFLAGS", "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND",
        "ROCM_PATH", "HIP_PATH", "HIP_CLANG_PATH", "HIP_PLATFORM", "HIP_COMPILER", "HIP_RUNTIME",
        "HIP_ROCCLR_HOME", "HIP_LIB_PATH", "HIP_DEVICE_LIB_PATH", "DEVICE_LIB_PATH",
    ),
}  # fmt: skip
#: Set if HPE's programming environment is loaded. Its compiler driver CC reads variables of the
#: modules, such as ``CRAY_ACCEL_TARGET`` and ``PE_MPICH_GTL_DIR_amd_gfx90a`` for GPUs. Elsewhere,
#: ``PE_`` may belong to other software: Grid Engine has one that changes with every job.
_HPE = "PE_ENV"
_HPE_PREFIXES = ("CRAY_", "CRAYPE_", "PE_")
_HPE_VARIABLES = ("PKG_CONFIG_PATH",)


@dataclass(frozen=True)
class BuiltBenchmark:
    """An executable benchmark, which was just compiled (``is_new``) or found in the cache."""

    executable: Path
    is_new: bool

    @property
    def log(self) -> Path:
        """The output of CMake and compilers in this build; old builds have none."""
        return self.executable.parent / _LOG


def build_benchmark(
    mpi: MpiInstallation,
    cache: Path,
    *,
    toolchain: Toolchain | None = None,
    log: Path | None = None,
    again: bool = False,
) -> BuiltBenchmark:
    """Returns the benchmark for an MPI; builds it if the cache doesn't have it.

    Args:
        cache: folder for executables, made if necessary.
        toolchain: for the GPU backends; ``None`` builds without these.
        log: file for the output of CMake and the compiler, also that of a cached build.
        again: whether to build even if the cache has it.

    Raises:
        MissingComponent: there is no compiler, CMake or Ninja.
        BuildFailed: it doesn't compile, link or start; with the end of the tool's output.
        EnvironmentFault: the cache can't be written, or is full, or others can write it.
        UserError: the log can't be written.
    """
    environment = {**os.environ, **mpi.environment}
    version = _compiler_version(mpi, environment)
    key = _build_key(mpi, toolchain, version, environment, digest_of_sources())
    kept = BuiltBenchmark(cache / key / _EXECUTABLE, is_new=False)
    refusal = f"the benchmark {kept.executable} is not used"
    require_own(refusal, kept.executable)
    has_kept = is_file(kept.executable) and not again
    # A cached build may lack a backend that didn't compile although its library was found. CMake
    # then checks each time whether it would compile now, and if so the benchmark is built again:
    # what was missing is not part of the key.
    if has_kept and not _lacks_something(kept, toolchain):
        return _as_it_is(kept, log)
    # Several processes may build at once, each in its own folder; the first to finish is kept.
    try:
        with scratch_folder(cache) as scratch:
            ON_STEP.get()(_BUILDING_WORDS, 0, 0)
            said = BuildLog(log, kept=scratch / _LOG)
            steps = BuildSteps(
                scratch / "build",
                _named_headers_first(environment),
                said,
                what="the benchmark",
                words=_BUILDING_WORDS,
            )
            if has_kept and not _is_mended(steps, kept, mpi, toolchain, key):
                return kept
            if not has_kept:
                _configure(steps, mpi, toolchain, key)
            steps.compile()
            # A library that only the linker finds is detected here, and not by a crashing run.
            steps.run([str(steps.folder / _EXECUTABLE), "--version"])
            _put_in_place(steps.folder, kept.executable.parent, over=again or has_kept)
    except EnvironmentFault as fault:
        if not has_kept or isinstance(fault, BuildFailed):
            raise
        return _as_it_is(kept, log)  # the cache is full or not writable
    finally:
        ON_STEP.get()(_BUILDING_WORDS, 1, 1)
    require_own(refusal, kept.executable)  # another build may have been there first
    return replace(kept, is_new=True)


def _as_it_is(kept: BuiltBenchmark, log: Path | None) -> BuiltBenchmark:
    said = ""
    with suppress(OSError):
        said = kept.log.read_text(encoding="utf-8")  # read first: log may be the same file
    BuildLog(log).add(said or "It was already built, and the output was not kept.\n")
    return kept


def _lacks_something(kept: BuiltBenchmark, toolchain: Toolchain | None) -> bool:
    """Whether a build lacks NCCL or RCCL although the toolchain has it."""
    has_xccl = toolchain is not None and toolchain.xccl is not None
    return has_xccl and bool(backends_of(kept.executable).get(Backend.XCCL))


def _is_mended(
    steps: BuildSteps,
    kept: BuiltBenchmark,
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    key: str,
) -> bool:
    """Configures; returns whether a new build would have a backend that the cached one lacks."""
    try:
        _configure(steps, mpi, toolchain, key)
    except (BuildFailed, MissingComponent):
        return False  # the cached build works
    found = backends_of(steps.folder / _EXECUTABLE)
    return any(
        why and not found.get(name, why) for name, why in backends_of(kept.executable).items()
    )


def backends_of(executable: Path) -> dict[str, str]:
    """Returns all backends by name, with the reason why a build lacks it; empty if it doesn't."""
    try:
        lines = (executable.parent / _BACKENDS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {"mpi-host": ""}
    parsed = (line.partition(" ") for line in lines)
    return {name: rest.partition("no: ")[2] for name, _, rest in parsed}


def digest_of_sources() -> str:
    """Returns a digest of all sources of the native benchmark."""
    folders = (_SOURCES / name for name in ("cmake", "src"))
    files = [path for folder in folders for path in sorted(folder.rglob("*"))]
    return digest_of(_SOURCES, [_SOURCES / "CMakeLists.txt", *files])


def _compiler_version(mpi: MpiInstallation, environment: Mapping[str, str]) -> str:
    """Returns the version output of the compiler behind the MPI wrapper."""
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


def _configure(
    steps: BuildSteps, mpi: MpiInstallation, toolchain: Toolchain | None, key: str
) -> None:
    options = [
        f"-DCMAKE_CXX_COMPILER={mpi.compiler}",
        f"-DCMAKE_BUILD_RPATH={';'.join(library_folders(mpi.prefix))}",
        f"-DCOMMTUNE_VERSION={commtune.__version__}",
        f"-DCOMMTUNE_BUILD_ID={key}",
        *_gpu_options(toolchain),
    ]
    steps.configure(_SOURCES, options)


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
    """Returns the folders of an MPI's libraries; none for the system's, on the default path."""
    if prefix in (Path("/"), Path("/usr")):
        return []
    folders = [prefix / "lib", prefix / "lib64", prefix / "lib" / "release"]
    return [str(folder) for folder in folders if any(folder.glob("libmpi*.so*"))]


def _put_in_place(made: Path, kept: Path, *, over: bool) -> None:
    """Moves a build to the cache; ``over`` replaces one, by file as it may be running."""
    result = made.parent / "result"
    result.mkdir(0o700)
    for file in (made / _EXECUTABLE, made / _BACKENDS, made.parent / _LOG):
        file.rename(result / file.name)
    try:
        result.rename(kept)
    except OSError:
        if not is_folder(kept):
            raise
        # Otherwise another process has put an equivalent build there, or an incomplete one.
        if over or not is_file(kept / _EXECUTABLE):
            # In this order, an interruption leaves an executable with more backends than listed,
            # which is then built again, rather than fewer.
            for name in (_EXECUTABLE, _BACKENDS, _LOG):
                (result / name).replace(kept / name)


def _build_key(
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    compiler_version: str,
    environment: Mapping[str, str],
    sources: str,
) -> str:
    """Returns the key of a build, which changes with anything that it depends on.

    Args:
        sources: digest of the benchmark's sources.
    """
    return content_key(
        {
            "sources": sources,
            "version": commtune.__version__,
            # Machines of several kinds may share a home, with equal paths and versions.
            "processor": platform.machine(),
            "compiler": [str(mpi.compiler), compiler_version],
            "mpi": [str(mpi.flavour), mpi.version, str(mpi.prefix)],
            "variables": {name: environment[name] for name in _names(toolchain, environment)},
            "gpu": toolchain.plain() if toolchain else None,
        }
    )


def _names(toolchain: Toolchain | None, environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the environment's variables that can affect a build."""
    named = {*_COMPILER_VARIABLES, *(_GPU_VARIABLES[toolchain.kind] if toolchain else ())}
    is_hpe = _HPE in environment
    for name in environment:
        of_hpe = name in _HPE_VARIABLES or name.startswith(_HPE_PREFIXES)
        if name in named or (is_hpe and of_hpe):
            yield name


def _named_headers_first(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with CPATH moved behind the header folders that we pass."""
    # Environment modules set CPATH, which compilers search like -I and so before -isystem: the
    # nccl.h of another module would be used with our library. CPLUS_INCLUDE_PATH is after both.
    folders = environment.get("CPATH", "").split(":")
    if not any(folders):
        return dict(environment)
    last = [*environment.get("CPLUS_INCLUDE_PATH", "").split(":"), *folders]
    moved = {**environment, "CPLUS_INCLUDE_PATH": ":".join(filter(None, last))}
    return {name: value for name, value in moved.items() if name != "CPATH"}
