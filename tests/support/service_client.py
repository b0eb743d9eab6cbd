"""Asks a service: in process as a server would, or over a connection."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from anyio.from_thread import start_blocking_portal
from waiting import PATIENCE_S

from commtune.service.app import Service
from commtune.service.auth import Tokens
from commtune.service.server import Place, serve_database

TOKEN = "a-token-of-the-tests"
CONTROL = "a-control-token-of-the-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True)
class Got:
    """A reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self) -> Any:
        return json.loads(self.body)


def _scope(
    target: str | bytes, headers: Mapping[str, str] = BEARER, method: str = "GET"
) -> dict[str, Any]:
    """A request as servers hand it over."""
    raw = target.encode() if isinstance(target, str) else target
    before, _, query = raw.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(before.decode("latin-1")),
        "raw_path": before,
        "query_string": query,
        "headers": [(k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()],
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
        "root_path": "",
    }


class Client:
    """Asks an application in process, as a server would."""

    def __init__(
        self, db: str, prefix: str = "", *, has_control: bool = False, token: str = TOKEN
    ) -> None:
        # One event loop for all requests, as in a server. One for each would start threads anew.
        self._loop = ExitStack()
        self._portal = self._loop.enter_context(start_blocking_portal())
        control = Tokens(CONTROL, "commtune-control-1") if has_control else None
        self._service = Service(db, Tokens(token, "commtune-1"), prefix, control)
        self._application = self._service.application()
        #: Of all routes.
        self.paths = [one.path for one in self._service.routes()]

    def get(
        self,
        target: str | bytes,
        headers: Mapping[str, str] = BEARER,
        method: str = "GET",
    ) -> Got:
        """The reply to a request."""
        got: Got = self._portal.call(self._ask, _scope(target, headers, method))
        return got

    def get_at_once(self, targets: Sequence[str]) -> list[Got]:
        """The replies to requests that all come at the same moment."""

        async def ask_all() -> list[Got]:
            return await asyncio.gather(*(self._ask(_scope(one)) for one in targets))

        return self._portal.call(ask_all)

    async def _ask(self, scope: dict[str, Any]) -> Got:
        status, headers, body = 0, {}, b""

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, headers, body
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = {k.decode(): v.decode() for k, v in message["headers"]}
            body += message.get("body", b"")

        await self._application(scope, receive, send)
        return Got(status, headers, body)

    def close(self) -> None:
        self._service.close()
        self._loop.close()


def connect(address: str) -> http.client.HTTPConnection:
    """A connection to a server."""
    parts = urlsplit(address)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_S)


@contextmanager
def served_at(
    db: str, prefix: str = "", place: Place | None = None, control: str | None = None
) -> Iterator[str]:
    """A real server of a database; its address, with the token."""
    said: list[str] = []
    ready = threading.Event()

    def say(address: str) -> None:
        said.append(address)
        ready.set()

    stop: list[Callable[[], None]] = []
    thread = threading.Thread(
        target=serve_database,
        args=(db, place or Place(), TOKEN),
        kwargs={"prefix": prefix, "say": say, "stopping": stop.append, "control": control},
        daemon=True,
    )
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield said[0]
    stop[0]()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
