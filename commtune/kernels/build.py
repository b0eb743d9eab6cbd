"""Building the native benchmark for an MPI, once: a cache by content.

The key covers sources, compiler, its flags, the MPI, and for GPUs the toolkit, NCCL or RCCL and
the architectures, so that the executable is made again when one of them changes, and found again
when nothing did.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import commtune
from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent
from commtune.kernels.toolchains import Toolchain
from commtune.model import MpiInstallation, content_key

_EXECUTABLE = "commtune-bench"
#: Beside it, lines of "NAME yes DETAIL" and "NAME no: REASON".
_BACKENDS = "backends.txt"
#: GPU code for several architectures on a busy machine takes minutes.
_BUILD_LIMIT_S = 900.0
_PROBE_LIMIT_S = 30.0

#: Variables by which a user or a module system changes what a compiler wrapper does.
_COMPILER_VARIABLES = (
    "CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",
    "MPICH_CXX", "OMPI_CXX", "OMPI_CXXFLAGS", "I_MPI_CXX", "I_MPI_ROOT", "PE_ENV",
)  # fmt: skip
_GPU_VARIABLES = (
    "CUDAFLAGS", "HIPFLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS",
)  # fmt: skip


def build(
    mpi: MpiInstallation,
    cache: Path,
    *,
    toolchain: Toolchain | None = None,
    log: Path | None = None,
) -> Path:
    """Returns the benchmark's executable for an MPI, building it if the cache doesn't have it.

    Several processes may build at once: each builds in a folder of its own, and the first to
    finish is the one whose executable stays.

    Args:
        cache: folder for executables, made if need be.
        toolchain: for the backends on GPUs; without it there are none.
        log: file to keep the output of CMake and the compiler in.

    Raises:
        MissingComponent: there is no compiler, CMake or Ninja.
        BuildFailed: it doesn't compile, link or start; the message ends in the tool's last words.
        EnvironmentFault: the cache can't be written.
    """
    environment = {**os.environ, **mpi.environment}
    key = _key(mpi, toolchain, _compiler_version(mpi, environment), environment)
    executable = cache / key / _EXECUTABLE
    if executable.is_file():
        return executable
    with _scratch(cache) as scratch:
        made = _compile(mpi, toolchain, key, scratch, environment, log)
        _put_in_place(made, executable)
    return executable


def backends_of(executable: Path) -> dict[str, str]:
    """The backends that a built benchmark has, and for the others why it lacks them.

    Returns:
        By name: empty for a backend that is there, else the reason.
    """
    try:
        lines = (executable.parent / _BACKENDS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {"mpi-host": ""}
    parsed = (line.partition(" ") for line in lines)
    return {name: rest.partition("no: ")[2] for name, _, rest in parsed}


def sources() -> Path:
    """The folder with the benchmark's CMakeLists.txt."""
    return Path(__file__).parent


def _key(
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    compiler_version: str,
    environment: Mapping[str, str],
) -> str:
    names = (*_COMPILER_VARIABLES, *(_GPU_VARIABLES if toolchain else ()))
    return content_key(
        {
            "sources": digest_of_sources(),
            "version": commtune.__version__,
            "compiler": [str(mpi.compiler), compiler_version],
            "mpi": [str(mpi.flavour), mpi.version, str(mpi.prefix)],
            "variables": {n: environment[n] for n in names if n in environment},
            "gpu": toolchain.plain() if toolchain else None,
        }
    )


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    folders = (sources() / name for name in ("cmake", "src"))
    files = [path for folder in folders for path in sorted(folder.rglob("*"))]
    for path in [sources() / "CMakeLists.txt", *files]:
        if path.is_file():
            digest.update(f"{path.relative_to(sources())}\0".encode())
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _compiler_version(mpi: MpiInstallation, environment: Mapping[str, str]) -> str:
    """What the compiler behind the wrapper says of itself.

    Raises:
        MissingComponent: there is no wrapper, or none behind it.
        BuildFailed: the wrapper fails for another reason.
    """
    done = process.run(
        [str(mpi.compiler), "--version"], environment=environment, timeout_s=_PROBE_LIMIT_S
    )
    if done.ok:
        return done.output
    if not any(shutil.which(name, path=environment.get("PATH")) for name in ("c++", "g++")):
        raise MissingComponent("there is no C++ compiler", hint="sudo apt-get install g++")
    raise BuildFailed(
        f"{mpi.compiler} --version fails:\n{_tail(done.output)}",
        hint="name another MPI, or mend this one's compiler wrapper",
    )


def _compile(
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    key: str,
    scratch: Path,
    environment: Mapping[str, str],
    log: Path | None,
) -> Path:
    """Configures, compiles, and makes sure that the result starts."""
    folder = scratch / "build"
    cmake = _tool("cmake", "CMAKE_BIN_DIR")
    configure = [
        cmake, "-S", str(sources()), "-B", str(folder), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={_tool('ninja', 'BIN_DIR')}",
        f"-DCMAKE_CXX_COMPILER={mpi.compiler}",
        f"-DCMAKE_BUILD_RPATH={';'.join(_library_folders(mpi.prefix))}",
        f"-DCOMMTUNE_VERSION={commtune.__version__}",
        f"-DCOMMTUNE_BUILD_ID={key}",
        *_gpu_options(toolchain),
    ]  # fmt: skip
    executable = folder / _EXECUTABLE
    for step in (configure, [cmake, "--build", str(folder)], [str(executable), "--version"]):
        _run(step, environment, log)
    return executable


def _gpu_options(toolchain: Toolchain | None) -> list[str]:
    if toolchain is None:
        return ["-DCOMMTUNE_GPU=none"]
    xccl, kind = toolchain.xccl, str(toolchain.kind)
    return [
        f"-DCOMMTUNE_GPU={kind}",
        f"-DCMAKE_{kind.upper()}_COMPILER={toolchain.compiler}",
        f"-DCOMMTUNE_GPU_ROOT={toolchain.root}",
        f"-DCOMMTUNE_GPU_ARCHITECTURES={';'.join(toolchain.architectures)}",
        *(["-DCOMMTUNE_XCCL=off"] if xccl is None else []),
        *([f"-DCOMMTUNE_XCCL_ROOT={xccl.root}"] if xccl else []),
    ]


def _run(step: Sequence[str], environment: Mapping[str, str], log: Path | None) -> None:
    done = process.run(
        step, environment=environment, timeout_s=_BUILD_LIMIT_S, whole_output=log is not None
    )
    if log is not None:
        with log.open("a") as file:
            file.write(f"$ {' '.join(step)}\n{done.output}")
    if done.ok:
        return
    why = f"took more than {_BUILD_LIMIT_S:.0f} s" if done.timed_out else "failed"
    raise BuildFailed(
        f"building the benchmark: {Path(step[0]).name} {why}:\n{_tail(done.output)}",
        hint="check the compiler and the MPI with 'commtune doctor'",
    )


def _tool(name: str, folder_constant: str) -> str:
    """The path of cmake or ninja: from its wheel, else from PATH."""
    try:
        folder = getattr(importlib.import_module(name), folder_constant)
    except (ImportError, AttributeError):
        folder = None
    for path in (folder, None):  # None: PATH
        if found := shutil.which(name, path=path):
            return found
    raise MissingComponent(f"there is no {name}", hint=f"python -m pip install {name}")


def _library_folders(prefix: Path) -> list[str]:
    """Where an MPI's libraries are, for wrappers that don't say so to the linker.

    The system's own folders are searched anyway.
    """
    if prefix in (Path("/"), Path("/usr")):
        return []
    folders = [prefix / "lib", prefix / "lib64", prefix / "lib" / "release"]
    return [str(folder) for folder in folders if any(folder.glob("libmpi*.so*"))]


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    """A folder on the cache's file system, so that a rename puts the result in place."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=".building-", dir=cache)
    except OSError as error:
        raise EnvironmentFault(
            f"can't build in {cache}: {error.strerror}", hint="name another cache folder"
        ) from error
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(made: Path, executable: Path) -> None:
    folder = made.parent.parent / "result"
    folder.mkdir()
    made.rename(folder / _EXECUTABLE)
    made.with_name(_BACKENDS).rename(folder / _BACKENDS)
    try:
        folder.rename(executable.parent)
    except OSError:
        if not executable.is_file():  # else another process was faster: as good as ours
            raise


def _tail(text: str, lines: int = 15) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
