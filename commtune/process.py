"""Starts and ends processes; no other module starts any.

A process gets a list of arguments without a shell, an explicit environment and a time limit. At
the end, however it comes, the whole process tree is ended. While a child runs the controller
sleeps in one system call, so that it takes no time on cores that measure.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import psutil

from commtune import process_trees
from commtune.errors import NO_ROOM, EnvironmentFault, MissingComponent, UserError
from commtune.interrupts import Interrupts

_TAIL_BYTES = 4000
#: The most bytes of output of a standing process that are searched for its sign.
_MOST_BYTES = 2**17
_GRACE_S = _WATCH_S = 0.5
#: Seconds that a standing process may take to end by itself.
_END_S = 5.0
#: The longest timeout of poll(), milliseconds (24 days).
_LONGEST_MS = 2**31 - 1


@dataclass(frozen=True)
class Completed:
    """The result of a process that has ended.

    Attributes:
        exit_code: exit status, 0 to 255; ``None`` when a signal ended it.
        signal: number of the signal that ended it, or ``None``.
        timed_out: whether the tree was ended because of the time limit.
        wall_s: from start to end, seconds.
        output: standard output and error together; the last 4,000 bytes only, unless all of it
            was requested.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    output: str

    @property
    def ok(self) -> bool:
        """Whether it exited with status 0 within its time."""
        return self.exit_code == 0 and not self.timed_out


def run_process(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    environment: Mapping[str, str],
    timeout_s: float,
    cwd: Path | None = None,
    marker: str = "",
    whole_output: bool = False,
    watch: Callable[[str], None] | None = None,
) -> Completed:
    """Runs a program until it ends, or ends its process tree at the time limit.

    Args:
        arguments: program and arguments, passed unchanged.
        environment: the whole environment of the program.
        timeout_s: time limit, seconds.
        marker: run identifier by which left-over processes are found.
        whole_output: whether to keep all output rather than its end.
        watch: called twice a second with the end of the output. Not for use while measuring.

    Raises:
        MissingComponent: the program can't be started.
        UserError: an argument or a variable can't be passed to a program.
        EnvironmentFault: there is no room for its output, or (transient) for another process.
        KeyboardInterrupt: on an interrupt, after the tree was ended.
    """
    process_trees.become_subreaper()
    others = set(process_trees.child_pids())
    full_environment = {**environment, **({process_trees.MARKER: marker} if marker else {})}
    with _output_file(in_memory=whole_output) as output, Interrupts() as interrupts:
        started, ended = time.monotonic(), False
        child = _start([os.fspath(a) for a in arguments], full_environment, cwd, output)
        try:
            with interrupts.let_through():
                ended = _wait_watching(child, timeout_s, output, watch)
        finally:
            process_trees.end_tree(child.pid, marker, 0.0 if ended else _GRACE_S, others)
            status = child.wait()
            process_trees.started_pids.discard(child.pid)
        return Completed(
            exit_code=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            timed_out=not ended,
            wall_s=time.monotonic() - started,
            output=_read(output, None if whole_output else _TAIL_BYTES),
        )


def ask_program(
    arguments: Sequence[str], *, environment: Mapping[str, str], timeout_s: float
) -> str:
    """Returns all output of a program; empty if it is missing, fails or takes too long."""
    try:
        done = run_process(
            arguments, environment=environment, timeout_s=timeout_s, whole_output=True
        )
    except MissingComponent:
        return ""
    return done.output if done.ok else ""


class StandingProcess:
    """A program that serves one request after the other, each a line of its standard input.

    It is started by the first request. Its process tree is ended by ``end``, or if ``ask`` raises.

    Args:
        arguments, environment, cwd, marker: as for ``run_process``.
        sign: the line that it prints when a request is done.
        grace_s: seconds that it gets after the time limit to end what it started.
        at_end: is called after its tree has ended.
    """

    def __init__(
        self,
        arguments: Sequence[str | os.PathLike[str]],
        *,
        environment: Mapping[str, str],
        sign: str,
        cwd: Path | None = None,
        marker: str = "",
        grace_s: float = 0.0,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._arguments = [os.fspath(argument) for argument in arguments]
        self._environment = {**environment, **({process_trees.MARKER: marker} if marker else {})}
        self._sign, self._cwd, self._marker = f"{sign}\n".encode(), cwd, marker
        self._grace_s, self._at_end = max(_GRACE_S, grace_s), at_end
        self._child: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._others: set[int] = set()

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and not _wait(self._child, 0.0)

    def used_s(self) -> float:
        """Returns CPU seconds of its processes, including ended ones that they waited for."""
        if self._child is None or not self.is_running:
            return 0.0
        total = 0.0
        for one in process_trees.with_descendants(process_trees.list_processes([self._child.pid])):
            with contextlib.suppress(psutil.Error):
                total += math.fsum(one.cpu_times()[:4])
        return total

    def ask(self, line: str, timeout_s: float) -> Completed:
        """Sends a request, and ends the program if that fails or takes too long.

        Args:
            line: the request, without line end.
            timeout_s: time limit in seconds, including the start of the program.

        Returns:
            Status 0 if the sign came, else how the program ended (1 if it exited with 0, as the
            request was not done), with the output since the request.

        Raises:
            As ``run_process``.
        """
        with Interrupts() as interrupts:
            began, said = time.monotonic(), bytearray()
            child, output = self._start_once()
            is_over = has_ended = False
            status = 0
            try:
                with interrupts.let_through():
                    self._write(child, f"{line}\n".encode())
                    is_over, has_ended = self._listen(child, output, said, began + timeout_s)
            finally:
                if self._sign not in said:
                    grace_s = self._grace_s if is_over else _GRACE_S
                    status = self._finish(0.0 if has_ended else grace_s) or 1
            return Completed(
                exit_code=status if status >= 0 else None,
                signal=-status if status < 0 else None,
                timed_out=is_over,
                wall_s=time.monotonic() - began,
                output=said.replace(self._sign, b"")[-_TAIL_BYTES:].decode(errors="replace"),
            )

    def end(self) -> None:
        """Asks the program to end by an empty line, then ends what is left of its tree."""
        with Interrupts():
            if self._child is not None:
                self._write(self._child, b"\n")
                _wait(self._child, _END_S)
                self._finish(_GRACE_S)

    def _start_once(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._child is None or self._output is None:
            process_trees.become_subreaper()
            self._others = set(process_trees.child_pids())
            reading, writing = os.pipe2(os.O_CLOEXEC)
            with os.fdopen(reading, "rb", buffering=0) as output, os.fdopen(writing, "wb") as into:
                os.set_blocking(reading, False)
                self._child = _start(
                    self._arguments, self._environment, self._cwd, into, stdin=subprocess.PIPE
                )
                self._output = os.fdopen(os.dup(output.fileno()), "rb", buffering=0)
        return self._child, self._output

    @staticmethod
    def _write(child: subprocess.Popen[bytes], line: bytes) -> None:
        assert child.stdin is not None
        # If the program has ended, the wait for it reports that.
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(line)
            child.stdin.flush()

    def _listen(
        self, child: subprocess.Popen[bytes], output: IO[bytes], said: bytearray, until: float
    ) -> tuple[bool, bool]:
        """Reads until the sign; returns whether time is over and whether the program ended."""
        with _ending_of(child) as ending:
            poller = select.poll()
            for file in (output, ending):
                if file is not None:
                    poller.register(file, select.POLLIN)
            while self._sign not in said:
                left_s = until - time.monotonic()
                wait_s = left_s if ending is not None else min(left_s, _WATCH_S)
                poller.poll(min(max(0.0, wait_s) * 1000, _LONGEST_MS))
                # The program may have ended while a child of it keeps the pipe open.
                has_ended = _wait(child, 0.0)
                piece = output.read(2**16)
                if piece == b"":  # a closed pipe gives no sign, and poll() on it returns at once
                    has_ended = _wait(child, until - time.monotonic())
                    return not has_ended, has_ended
                said += piece or b""
                del said[:-_MOST_BYTES]
                if piece is None and (has_ended or left_s <= 0):
                    return not has_ended, has_ended
        return False, False

    def _finish(self, grace_s: float) -> int:
        """Ends the tree; returns the program's exit status."""
        child, output = self._child, self._output
        self._child = self._output = None
        assert child is not None
        process_trees.end_tree(child.pid, self._marker, grace_s, self._others)
        status = child.wait()
        process_trees.started_pids.discard(child.pid)
        for file in (child.stdin, output):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()
        self._at_end()
        return status


def replace_process(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replaces this process by a program (exec), so its signals and exit code are the caller's.

    Raises:
        MissingComponent: the program can't be started.
    """
    # Python ignores these signals, and the program would inherit that: 'yes | head' would fail
    # with a message.
    ours = {n: signal.signal(n, signal.SIG_DFL) for n in (signal.SIGPIPE, signal.SIGXFSZ)}
    try:
        os.execvpe(arguments[0], list(arguments), dict(environment))
    except OSError as error:
        raise MissingComponent(
            f"can't start {arguments[0]}: {error.strerror}",
            hint="check the command's name and that it is on PATH",
        ) from error
    finally:  # only reached if exec failed
        for number, handler in ours.items():
            signal.signal(number, handler)


def _output_file(*, in_memory: bool) -> IO[bytes]:
    try:
        # A full disk would truncate the output: of a list of jobs, some would seem to have ended.
        if in_memory and hasattr(os, "memfd_create"):  # Linux
            return os.fdopen(os.memfd_create("commtune-output"), "w+b")
        return tempfile.TemporaryFile()
    except OSError as error:
        raise EnvironmentFault(
            f"no space for a program's output: {error.strerror}",
            hint="set TMPDIR to a folder that you can write to",
            transient=error.errno in NO_ROOM,
        ) from error


def _start(
    arguments: list[str],
    environment: dict[str, str],
    cwd: Path | None,
    output: IO[bytes],
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    try:
        with process_trees.start_lock:
            child = subprocess.Popen(
                arguments,
                env=environment,
                cwd=cwd,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C must reach only the controller, which ends the tree in order.
                start_new_session=True,
            )
            process_trees.started_pids.add(child.pid)
            return child
    except OSError as error:
        where = f" in {cwd}" if cwd and str(error.filename) == str(cwd) else ""
        what = f"can't start {arguments[0]}{where}: {error.strerror}"
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            hint = "see what else runs here, and 'ulimit -u'"
            raise EnvironmentFault(what, hint=hint, transient=True) from error
        hint = "run 'commtune doctor' to see what this machine has"
        raise MissingComponent(what, hint=hint) from error
    except ValueError as error:
        raise UserError(
            f"can't start {arguments[0]}: {error} in its arguments or environment",
            hint="take such characters out of the values of the space",
        ) from error


def _wait_watching(
    child: subprocess.Popen[bytes],
    timeout_s: float,
    output: IO[bytes],
    watch: Callable[[str], None] | None,
) -> bool:
    """Does the same as ``_wait``, and passes the child's output to ``watch`` meanwhile."""
    if watch is None:
        return _wait(child, timeout_s)
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        ended = _wait(child, min(left_s, _WATCH_S))
        # pread, since a seek would move the file position, which the child shares.
        begin = max(0, os.fstat(output.fileno()).st_size - _TAIL_BYTES)
        watch(os.pread(output.fileno(), _TAIL_BYTES, begin).decode(errors="replace"))
        if ended:
            return True
    return False


def _wait(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Sleeps until the child ends or the time is over; returns whether it ended."""
    with _ending_of(child) as ending:
        if ending is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout_s)
            return child.poll() is not None
        poller = select.poll()
        poller.register(ending, select.POLLIN)
        return bool(poller.poll(min(max(0.0, timeout_s) * 1000, _LONGEST_MS)))


@contextlib.contextmanager
def _ending_of(child: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """Yields a file descriptor that is readable once a child has ended; ``None`` without pidfd."""
    try:
        handle = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # not Linux, or a kernel before 5.3
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _read(output: IO[bytes], limit: int | None) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0 if limit is None else max(0, size - limit))
    return output.read().decode(errors="replace")
