"""Commands in processes of their own, forked from one that has imported what they need.

A start from nothing is a second of imports, of which whole campaigns need hundreds.
"""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

from commtune.cli import main

#: What campaigns import, at once or later.
_IMPORTED = (
    "commtune.cli",
    "commtune.commands.campaigns.tune",
    "commtune.commands.campaigns.tuning",
    "commtune.commands.campaigns.status",
    "commtune.commands.profiles.best",
    "commtune.commands.profiles.use",
    "commtune.commands.profiles.verify",
    "commtune.db.views",
    "commtune.spaces.catalogue.schema",
    "alembic.command",
    "sqlalchemy.dialects.postgresql.psycopg",
    "psycopg",
    "scipy.special",
)


@cache
def fork_server() -> ForkServerContext:
    """Starts processes from one that has imported what campaigns need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED])
    return context


class ForkedCommand:
    """``commtune`` under way; it answers as ``subprocess.Popen`` does."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        begin: Callable[[], None] = main,
    ) -> None:
        """Starts it in a session of its own.

        Args:
            folder: the working directory.
            environment: all variables.
            begin: in the place of the command line.
        """
        (out, to_out), (err, to_err) = (fork_server().Pipe(duplex=False) for _ in range(2))
        self._process = fork_server().Process(
            target=_run_command,
            args=(begin, arguments, folder, dict(environment), to_out, to_err),
        )
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid
        for end in (to_out, to_err):
            end.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno())) for end in (out, err))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.poll()) is None:
            raise TimeoutError(f"process {self.pid} ran for {timeout:g} s")
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        with self.stdout, self.stderr, ThreadPoolExecutor() as readers:
            out, err = (readers.submit(file.read) for file in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            finally:
                self.kill()
            return out.result(), err.result()


#: Flags of unshare(2) and mount(2).
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_SLAVE = 0x20000, 0x1000, 0x4000, 0x80000


def _hide_load() -> None:
    """Freezes /proc/stat for this process, as some containers do. Only root can.

    Otherwise campaigns repeat a third of their runs, because other tests load the machine.
    """
    libc = ctypes.CDLL(None)
    if os.geteuid() or libc.unshare(_CLONE_NEWNS):
        return
    libc.mount(None, b"/", None, _MS_REC | _MS_SLAVE, None)
    # With dir, or tempfile would remember its default before the command's TMPDIR is set.
    with NamedTemporaryFile(dir="/tmp") as frozen:
        frozen.write(Path("/proc/stat").read_bytes())
        frozen.flush()
        libc.mount(frozen.name.encode(), b"/proc/stat", None, _MS_BIND, None)


def _run_command(
    begin: Callable[[], None],
    arguments: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    *written: Connection,
) -> None:
    os.setsid()
    _hide_load()
    os.chdir(folder)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    for descriptor, end in enumerate(written, 1):
        os.dup2(end.fileno(), descriptor)
        end.close()
    # Those of the server know no pipes.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["commtune", *arguments]
    try:
        begin()
    finally:
        atexit._run_exitfuncs()
