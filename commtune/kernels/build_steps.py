"""Runs the commands of a build: tools, scratch folders in the cache, and logs."""

from __future__ import annotations

import hashlib
import importlib
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent, UserError
from commtune.paths import is_file
from commtune.private_files import make_private_folder, require_own
from commtune.progress import ON_STEP

#: Time limit, as GPU code for several architectures takes minutes on a busy machine.
_BUILD_LIMIT_S = 900.0
#: Prefix of scratch folders, and the age in seconds from which one is of a killed build.
_BUILDING = ".building-"
_LEFT_OVER_S = 24 * 3600.0
#: The definition in ``-DTOKEN=value``, or in ``-Wp,-DTOKEN=value``; empty if the next word is it.
_DEFINED = re.compile(r"""(?:^|,)["']*-D\s*(.*)""", re.DOTALL)
_QUOTES = "\\\"'"
_NINJA_STATUS = re.compile(r"^\[(\d+)/(\d+)\] ", re.MULTILINE)


class BuildLog:
    """A log of build output, in a file of the user's choice, and in one that the cache keeps."""

    def __init__(self, named: Path | None = None, *, kept: Path | None = None) -> None:
        self._named, self._kept = named, kept
        self.add("", "w")

    def add(self, text: str, mode: str = "a") -> None:
        for file in filter(None, (self._kept, self._named)):
            try:
                with file.open(mode, encoding="utf-8") as opened:
                    opened.write(text)
            except OSError as error:
                if file == self._kept:
                    raise
                raise UserError(
                    f"the log can't be written: {file}: {error.strerror}",
                    hint="name a file in a folder that is there and yours",
                ) from error


@dataclass(frozen=True)
class BuildSteps:
    """The commands of a build in a folder."""

    folder: Path
    environment: Mapping[str, str]
    log: BuildLog
    what: str  # what is built, for errors: "the benchmark"
    words: str  # the description for progress reports

    def configure(self, sources: Path, options: Sequence[str] = ()) -> None:
        """Runs CMake on a folder of sources; raises as ``run``, and MissingComponent."""
        cmake, ninja = _find_cmake(), _find_tool("ninja", "BIN_DIR")
        folders = ["-S", str(sources), "-B", str(self.folder)]
        self.run([cmake, *folders, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *options])

    def compile(self) -> None:
        """Compiles what was configured; raises as ``run``."""
        self.run([_find_cmake(), "--build", str(self.folder)])

    def run(self, step: Sequence[str]) -> None:
        """Raises: BuildFailed: it fails, or takes too long."""
        done = process.run_process(
            step,
            environment=self.environment,
            timeout_s=_BUILD_LIMIT_S,
            whole_output=True,
            watch=self._report,
        )
        output = _without_definitions(done.output, self.environment)
        self.log.add(f"$ {' '.join(step)}\n{output}")
        if done.ok:
            return
        why = f"took more than {_BUILD_LIMIT_S:.0f} s" if done.timed_out else "failed"
        raise BuildFailed(
            f"building {self.what}: {Path(step[0]).name} {why}:\n{last_lines(output)}",
            hint="check the compiler and the MPI with 'commtune doctor'; "
            "'commtune build --log FILE' keeps all that they say",
        )

    def _report(self, output: str) -> None:
        """Reports progress from Ninja's output: ``[12/87] Building CXX object ...``."""
        if found := _NINJA_STATUS.findall(output):
            done, total = found[-1]
            ON_STEP.get()(self.words, int(done), int(total))


def _without_definitions(output: str, environment: Mapping[str, str]) -> str:
    """Removes values of -D flags from output, as they may be secrets."""
    for flags in (value for name, value in environment.items() if name.endswith("FLAGS")):
        for value in _defined_values(flags):
            plain = [re.escape(character) for character in value if character not in _QUOTES]
            # A value as short as in -DNDEBUG=1 is no secret, and may occur anywhere.
            if len(plain) > 3:
                # However it is quoted there.
                output = re.sub(r"[\\\"']*".join(plain), "***", output)
    return output


def _defined_values(flags: str) -> Iterator[str]:
    """Yields the values that -D flags give to macros."""
    try:
        words = shlex.split(flags)
    except ValueError:  # a quote has no end: up to the next flag
        words = re.split(r"""\s+(?=["']*-)""", flags)
    for word, following in pairwise([*words, ""]):
        if found := _DEFINED.search(word):
            yield (found[1] or following).partition("=")[2]


def _find_cmake() -> str:
    return _find_tool("cmake", "CMAKE_BIN_DIR")


def _find_tool(name: str, folder_constant: str) -> str:
    """Returns the path of cmake or ninja, from its wheel or PATH; or raises MissingComponent."""
    try:
        folder = getattr(importlib.import_module(name), folder_constant)
    except (ImportError, AttributeError):
        folder = None
    for path in (folder, None):  # None: PATH
        if found := shutil.which(name, path=path):
            return found
    raise MissingComponent(f"there is no {name}", hint=f"python -m pip install {name}")


@contextmanager
def scratch_folder(cache: Path) -> Iterator[Path]:
    """Makes a scratch folder in the cache, so that a rename can move the result into place."""
    folder = ""
    try:
        make_private_folder(cache)
        _remove_left_over(cache)
        folder = tempfile.mkdtemp(prefix=_BUILDING, dir=cache)
        require_own(f"the cache {cache} is not used", Path(folder))
        yield Path(folder)
    except OSError as error:
        raise EnvironmentFault(
            f"can't build in {cache}: {error.strerror}",
            hint="check its permissions and free space, or set XDG_CACHE_HOME to another folder",
        ) from error
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over(cache: Path) -> None:
    """Removes scratch folders of killed builds, since homes have quotas."""
    for folder in cache.glob(f"{_BUILDING}*"):
        with suppress(OSError):  # another process has just removed it
            if time.time() - folder.stat().st_mtime > _LEFT_OVER_S:
                shutil.rmtree(folder, ignore_errors=True)


def last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-15:])


def digest_of(folder: Path, files: Iterable[Path]) -> str:
    """Returns a digest of the names and contents of files below a folder."""
    digest = hashlib.sha256()
    for path in files:
        if is_file(path):
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
