"""Opens the socket of the service, and runs the server on it."""

from __future__ import annotations

import os
import re
import resource
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from commtune.db.connection.service import is_loopback
from commtune.errors import EnvironmentFault, UserError, explain_os_error, os_reason
from commtune.service.app import Service
from commtune.service.auth import Tokens

#: The most connections that wait to be accepted: many jobs may start at once.
_BACKLOG = 4096
#: The desired limit of open files, and those of them for the database and the program itself.
_MOST_FILES, _OWN_FILES = 65536, 100
#: The seconds that running requests have when the service stops.
_ENDS_S = 2
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_HOW = "write unix:PATH, 127.0.0.1:8765 or localhost:0 (any free port)"


@dataclass(frozen=True)
class Place:
    """An address to listen at: the path of a Unix socket, or a host and a port."""

    path: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0

    @property
    def is_local(self) -> bool:
        """Whether it can be reached from this machine only."""
        return self.path is not None or is_loopback(self.host)


def read_place(written: str, *, allow_remote: bool) -> Place:
    """Parses ``unix:PATH`` or ``HOST:PORT``, with IPv6 addresses in brackets.

    Raises:
        UserError: it is neither, or not local although ``allow_remote`` is false.
    """
    if written.startswith("unix:"):
        path = written.removeprefix("unix:")
        if not path:
            raise UserError("--bind unix: names no socket", hint=_HOW)
        return Place(Path(path).absolute())
    host, colon, port = written.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UserError(f"--bind {written} is no address", hint=_HOW)
    place = Place(None, host.removeprefix("[").removesuffix("]"), int(port))
    if not place.is_local and not allow_remote:
        raise UserError(
            f"--bind {written} would let other machines in, over HTTP without encryption: whoever "
            "listens on the network reads the token",
            hint="from elsewhere: ssh -L 8765:localhost:8765 THIS-MACHINE, or a reverse "
            "proxy with TLS before it\nif this network is trusted: --allow-remote",
        )
    return place


def read_prefix(written: str) -> str:
    """Parses a path prefix, without a slash at its end; a ``UserError`` if it is no valid path."""
    prefix = written.rstrip("/")
    if not _PREFIX.fullmatch(prefix) or "/." in prefix:
        raise UserError(f"--prefix {written} is no path", hint="write it as /commtune")
    return prefix


@contextmanager
def _listen_at(place: Place) -> Iterator[socket.socket]:
    """Yields a socket that listens at an address; a Unix socket's file is removed at the end.

    Raises:
        UserError: the path is another file, or the socket of a running service.
        EnvironmentFault: the system refuses to open the socket.
    """
    if place.path is not None:
        with _unix_socket(place.path) as opened:
            yield opened
        return
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    with ExitStack() as opening:
        try:
            opened = opening.enter_context(socket.socket(family, socket.SOCK_STREAM))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((place.host, place.port))
            opened.listen(_BACKLOG)
        except OSError as error:
            raise EnvironmentFault(
                f"can't listen on {place.host}:{place.port}: {os_reason(error)}",
                hint="another port, or 0 for any free one: --bind 127.0.0.1:0",
            ) from error
        yield opened


@contextmanager
def _unix_socket(path: Path) -> Iterator[socket.socket]:
    _clear(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        # By umask, because with a later chmod other users could connect meanwhile.
        before = os.umask(0o177)
        try:
            opened.bind(str(path))
        except OSError as error:
            raise explain_os_error(OSError(error.errno, os_reason(error), str(path))) from error
        finally:
            os.umask(before)
        try:
            opened.listen(_BACKLOG)
            yield opened
        finally:
            path.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Removes the socket of a service that was killed; refuses any other file."""
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise explain_os_error(error) from error
    if not is_socket:
        raise UserError(f"{path} is there already, and no socket", hint="name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise explain_os_error(error) from error
    raise UserError(f"another service listens on {path}", hint="stop it, or name another path")


class _Server(uvicorn.Server):
    """A server that ends event streams on shutdown, for which it would wait otherwise."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.viewers.end()
        await super().shutdown(sockets)


def _allow_files() -> int:
    """Raises the limit of open files as far as possible, and returns it.

    Each connection is a file, and thousands of jobs may connect at once. More get a 503.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(most, soft)


def serve_database(
    db: str | None,
    place: Place,
    token: str,
    *,
    prefix: str = "",
    control: str | None = None,
    say: Callable[[str], object],
    stopping: Callable[[Callable[[], None]], object] | None = None,
) -> None:
    """Serves a database until a signal ends it.

    Args:
        db: the database, as for ``--db``.
        token: the token for reading.
        control: the token for ending campaigns; ``None`` for a read-only service.
        say: called once with the URL, when connections are accepted.
        stopping: called once with a function that ends the service from another thread.
    """
    with ExitStack() as opening:
        opened = opening.enter_context(_listen_at(place))
        port = opened.getsockname()[1] if place.path is None else 0
        controls = None if control is None else Tokens(control, f"commtune-control-{port}")
        service = Service(db, Tokens(token, f"commtune-{port}"), prefix, controls)
        opening.callback(service.close)
        config = uvicorn.Config(
            service.application(),
            # An access log would contain the token in the URL of a first visit.
            access_log=False,
            log_level="warning",
            server_header=False,
            lifespan="off",
            ws="none",
            backlog=_BACKLOG,
            limit_concurrency=_allow_files() - _OWN_FILES,
            timeout_graceful_shutdown=_ENDS_S,
        )
        host = f"[{place.host}]" if ":" in place.host else place.host
        where = f"http://{host}:{port}" if place.path is None else "http://localhost"
        server = _Server(config, service)
        if stopping is not None:
            stopping(lambda: setattr(server, "should_exit", True))
        say(f"{where}{prefix}/?token={token}")
        server.run(sockets=[opened])
