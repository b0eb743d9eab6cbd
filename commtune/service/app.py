"""The ASGI application: its routes, and the checks of tokens and requests before them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import parse_qsl, quote, urlencode

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commtune.db.connection.location import database_url
from commtune.db.connection.reader import Changes, OpenConnections
from commtune.errors import CommtuneError, UserError
from commtune.service import api, control, live, metrics, pages
from commtune.service.auth import Tokens
from commtune.service.cache import Cache
from commtune.service.metrics import Metrics
from commtune.service.openapi import openapi_document
from commtune.service.parameters import read_parameters
from commtune.service.rendering import show_problem
from commtune.service.replies import Problem, Refusal, Reply, json_reply, problem_of

#: The longest path with its query, bytes, and the most parameters in it.
_LONGEST = 4096
_MOST_PARAMETERS = 32

_LOG = logging.getLogger("commtune.service")
_Make = Callable[[Request], Reply]


class Service:
    """A service of a database over HTTP.

    Args:
        db: the database, as for ``--db``.
        tokens: the token for reading.
        prefix: prefix of all paths, such as ``/commtune``, or empty.
        control: the token for ending campaigns; ``None`` for a read-only service.
    """

    def __init__(
        self, db: str | None, tokens: Tokens, prefix: str = "", control: Tokens | None = None
    ) -> None:
        self.db, self.tokens, self.prefix = database_url(db), tokens, prefix
        self.control, self._cancelling = control, CapacityLimiter(1)
        self.cache, self.reports = Cache(), Cache(threads=1, most=8)
        self.changes, self._connections = Changes(self.db), OpenConnections(self.db)
        self.viewers, self.metrics = live.Viewers(), Metrics()

    def application(self) -> ASGIApp:
        """Returns the ASGI application."""
        return _Gate(Router(self.routes(), redirect_slashes=False, default=_find_nothing), self)

    def close(self) -> None:
        """Closes the connections to the database."""
        self.changes.close()
        self._connections.close()

    def routes(self) -> list[Route]:
        """Returns all routes."""
        document = json_reply(openapi_document(self.prefix, has_control=self.control is not None))
        controls = [control.CANCEL, f"{api.PREFIX}{control.CANCEL}"] if self.control else []
        return [
            Route(f"{api.PREFIX}/openapi.json", _fixed(document)),
            *(
                Route(
                    f"{api.PREFIX}{one.path}",
                    self._answering(partial(self._ask, one), one.is_stored),
                )
                for one in api.QUESTIONS
            ),
            *(Route(f"/static/{name}", _fixed(file)) for name, file in pages.STATIC.items()),
            Route("/campaigns/{campaign}/events", self._events),
            Route("/metrics", self._tell_metrics),
            *(Route(path, self._cancel, methods=["POST"]) for path in controls),
            *(
                Route(
                    one.path,
                    self._answering(partial(self._show, one), one.is_stored, is_slow=one.is_slow),
                )
                for one in pages.PAGES
            ),
        ]

    def _ask(self, question: api.Question, request: Request) -> Reply:
        query = _read_query(request.scope)
        return api.answer_request(question, self.db, request.path_params, query)

    def _show(self, page: pages.Page, request: Request) -> Reply:
        query = _read_query(request.scope)
        more = {"may_cancel": self._may_control(request)} if page.has_control else {}
        return page.show(self.db, self.prefix, request.path_params, query, **more)

    def _answering(
        self, make: _Make, is_stored: bool, *, is_slow: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        cache = self.reports if is_slow else self.cache
        version = self.changes.version if is_stored else lambda: None

        def make_or_explain(request: Request) -> Reply:
            try:
                with self._connections.borrow():
                    return make(request)
            except CommtuneError as error:
                return _tell_problem(request.scope, problem_of(error))

        async def answer(request: Request) -> Response:
            scope = request.scope
            key = (scope["path"], scope["query_string"], self._may_control(request))
            reply = await cache.get(key, partial(make_or_explain, request), version)
            return reply.unless_known(request.headers.get("if-none-match", "")).response()

        return answer

    def _may_control(self, request: Request) -> bool:
        """Whether a page for this browser may have a button that ends campaigns."""
        return self.control is not None and self.control.admits("", request.cookies)

    async def _cancel(self, request: Request) -> Response:
        scope, name = request.scope, request.path_params["campaign"]
        read_parameters((), _read_query(request.scope))
        said = await to_thread.run_sync(
            control.cancel_by_request, name, self.db, limiter=self._cancelling
        )
        if scope["path"].startswith(api.PREFIX):
            return json_reply({"campaign": name, "message": said}).response()
        place = f"{self.prefix}/campaigns/{quote(name, safe='')}"
        return Reply(b"", "text/plain", 303, {"location": place}).response()

    async def _events(self, request: Request) -> Response:
        name = request.path_params["campaign"]
        read_parameters((), _read_query(request.scope))
        read = partial(live.read_live, name, self.db, self._connections)

        async def look() -> Reply:
            try:
                return await self.cache.get(("live", name), read)
            except Refusal:
                return live.tell_fault("too many ask at once", 503)

        return await self.viewers.follow(request, look)

    async def _tell_metrics(self, request: Request) -> Response:
        read_parameters((), _read_query(request.scope))
        reply = await self.cache.get("metrics", self._count_states)
        if reply.status == 200:
            told = self.metrics.describe(json.loads(reply.body), self.viewers.count)
            reply = Reply(told.encode(), metrics.KIND)
        return reply.response()

    def _count_states(self) -> Reply:
        try:
            with self._connections.borrow():
                return json_reply(metrics.count_states(self.db))
        except CommtuneError as error:
            return problem_of(error).reply()


def _read_query(scope: Scope) -> list[tuple[str, str]]:
    """Returns the query parameters; a ``UserError`` for a malformed query, or too many of them."""
    try:
        return parse_qsl(
            scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError as error:
        raise UserError(
            "the query can't be read",
            hint=f"at most {_MOST_PARAMETERS} parameters: ?name=value&name=value",
        ) from error


def _fixed(reply: Reply) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        read_parameters((), _read_query(request.scope))
        return reply.unless_known(request.headers.get("if-none-match", "")).response()

    return answer


async def _find_nothing(scope: Scope, _receive: Receive, _send: Send) -> None:
    prefix = scope["commtune.prefix"]
    hint = f"pages begin at {prefix}/; {prefix}{api.PREFIX}/openapi.json describes the API"
    raise Refusal(404, f"there is nothing at {scope['path'][:200]}", hint)


def _tell_problem(scope: Scope, found: Problem) -> Reply:
    """Returns a problem as JSON for paths of the API, and as a page for others."""
    if scope["path"].startswith("/api/"):
        return found.reply()
    return show_problem(found, scope["commtune.prefix"])


class _Gate:
    """Middleware that refuses invalid requests, checks tokens, and handles unexpected errors."""

    def __init__(self, inner: ASGIApp, service: Service) -> None:
        self._inner, self._service = inner, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started, began = False, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._service.metrics.count_request(message["status"], time.perf_counter() - began)
            await send(message)

        path, prefix = scope["path"], self._service.prefix
        scope = {**scope, "path": path.removeprefix(prefix) or "/", "raw_path": None}
        scope["commtune.prefix"] = prefix
        try:
            if len(path) + len(scope["query_string"]) > _LONGEST:
                raise Refusal(414, f"more than {_LONGEST} bytes were asked")
            if path != prefix and not path.startswith(f"{prefix}/"):
                raise Refusal(404, f"all paths begin with {prefix}/")
            await (self._admit(scope) or self._inner)(scope, receive, sending)
        except (Refusal, CommtuneError) as error:
            await _tell_problem(scope, problem_of(error)).response()(scope, receive, sending)
        except Exception:
            # Its text could contain secrets, so it is logged, but not sent.
            _LOG.exception("a request failed")
            if started:
                raise
            failed = Refusal(500, "commtune serve failed at this", "its log says why").problem
            await _tell_problem(scope, failed).response()(scope, receive, sending)

    def _admit(self, scope: Scope) -> Response | None:
        """Checks method and tokens of a request.

        Returns:
            A redirect, if the token is in the URL; otherwise ``None``.

        Raises:
            Refusal: the request is not allowed.
        """
        headers = Headers(scope=scope)
        tokens, control_tokens = self._service.tokens, self._service.control
        path, query = scope["path"], b"&" + scope["query_string"]
        if control_tokens is not None and control.is_control(path):
            if scope["method"] != "POST":
                raise Refusal(405, "this ends a campaign", "use POST", allow="POST")
            control.refuse_control(control_tokens, path, headers)
            return None
        if scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "this address answers GET only", "use GET")
        if path == f"{api.PREFIX}/health" or path.startswith("/static/"):
            return None
        if not path.startswith("/api/"):
            if b"&token=" in query:
                return self._trade(scope, "token", tokens)
            if control_tokens is not None and b"&control=" in query:
                return self._trade(scope, "control", control_tokens)
        if tokens.admits(
            headers.get("authorization", ""), cookie_parser(headers.get("cookie", ""))
        ):
            return None
        raise Refusal(
            401,
            "a token is needed",
            "open the address that commtune serve printed, with '?token=' and the token (with "
            "--token-file, the contents of that file) at its end; programs send the header "
            "'Authorization: Bearer TOKEN'",
        )

    def _trade(self, scope: Scope, word: str, tokens: Tokens) -> Response:
        """Redirects to the same page without the token in its URL, and sets a cookie instead."""
        asked = _read_query(scope)
        # A token is one word, so a space in it was a '+' that nobody encoded, as of base64.
        given = [value.replace(" ", "+") for name, value in asked if name == word]
        if not any(map(tokens.is_token, given)):
            raise Refusal(401, "this token is not valid", _NEW_TOKEN)
        rest = urlencode([(name, value) for name, value in asked if name != word])
        prefix = self._service.prefix
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = (
            f"{tokens.cookie}={tokens.cookie_value}; Path={prefix or '/'}; HttpOnly; "
            f"SameSite=Strict{secure}"
        )
        place = _local(f"{prefix}{scope['path']}") + (f"?{rest}" if rest else "")
        headers = {"location": place, "set-cookie": cookie}
        return Reply(b"", "text/plain", 303, headers).response()


_NEW_TOKEN = "commtune serve prints a new one at each start, or reads it from its --token-file"


def _local(path: str) -> str:
    """Returns a path on this host: with two leading slashes it would be another host."""
    return "/" + quote(path.lstrip("/\\"), safe="/", errors="replace")
