"""Commands that make a build: where, with what tools, and what is kept of their words."""

from __future__ import annotations

import hashlib
import importlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from commtune import process
from commtune.errors import BuildFailed, EnvironmentFault, MissingComponent, UserError
from commtune.paths import is_file
from commtune.private_files import how_to_trust, make_private_folder, who_else_wrote
from commtune.progress import ON_STEP

#: GPU code for several architectures on a busy machine takes minutes.
_BUILD_LIMIT_S = 900.0
#: Folders of builds begin so; one that is as old as this was left by a build that was killed.
_BUILDING = ".building-"
_LEFT_OVER_S = 24 * 3600.0
#: The value in ``-DTOKEN=value``, of a variable such as CXXFLAGS.
_DEFINED = re.compile(r"""-D\s*\w+=('[^']*'|"[^"]*"|\S+)""")
_NINJA_STATUS = re.compile(r"^\[(\d+)/(\d+)\] ", re.MULTILINE)


class BuildLog:
    """Output that is written as it comes: to a file that a user named, and to one that is kept."""

    def __init__(self, named: Path | None, kept: Path | None = None) -> None:
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
    """Commands that make a build in a folder.

    Attributes:
        what: is built, in words: the benchmark.
        words: which tell of the progress.
    """

    folder: Path
    environment: Mapping[str, str]
    log: BuildLog
    what: str
    words: str

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
        """Tells how far Ninja is: ``[12/87] Building CXX object ...``."""
        if found := _NINJA_STATUS.findall(output):
            done, total = found[-1]
            ON_STEP.get()(self.words, int(done), int(total))


def _without_definitions(output: str, environment: Mapping[str, str]) -> str:
    """What tools said, without what compiler flags define: that may be a password."""
    for flags in (value for name, value in environment.items() if name.endswith("FLAGS")):
        for value in (found.strip("\\\"' ") for found in _DEFINED.findall(flags)):
            # As short as -DNDEBUG=1, it is no password, and may stand anywhere.
            output = output.replace(value, "***") if len(value) > 3 else output
    return output


def require_private(file: Path, what: str) -> None:
    """Refuses what others may have laid into the cache.

    Raises:
        EnvironmentFault: it is another user's, or others can write it.
    """
    if why := who_else_wrote(file):
        raise EnvironmentFault(f"{what} {file} is not used: {why}", hint=how_to_trust(file, why))


def find_tool(name: str, folder_constant: str) -> str:
    """The path of cmake or ninja: from its wheel, else from PATH.

    Raises:
        MissingComponent: there is none.
    """
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
    """A folder on the cache's file system, so that a rename puts the result in place."""
    folder = ""
    try:
        make_private_folder(cache)
        _remove_left_over(cache)
        folder = tempfile.mkdtemp(prefix=_BUILDING, dir=cache)
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
    """Removes what builds that were killed have left: homes have quotas."""
    for folder in cache.glob(f"{_BUILDING}*"):
        with suppress(OSError):  # another process removed it just now
            if time.time() - folder.stat().st_mtime > _LEFT_OVER_S:
                shutil.rmtree(folder, ignore_errors=True)


def last_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-15:])


def digest_of(folder: Path, files: Iterable[Path]) -> str:
    """A key of the names and texts of files below a folder."""
    digest = hashlib.sha256()
    for path in files:
        if is_file(path):
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()
