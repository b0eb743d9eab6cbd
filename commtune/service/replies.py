"""HTTP replies: JSON, errors, ETags, and the headers of every reply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from starlette.responses import Response

from commtune.errors import CODES, CommtuneError
from commtune.formatting import without_infinities

#: Allows only files of this service, and no inline script or style: stored text can't be executed.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

#: The headers of every reply.
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-cache",
}

_STATUSES = {
    "unknown-name": 404, "no-answer": 404, "export-refused": 409, "not-cancellable": 409,
    "bad-request": 400, "database-fault": 503, "environment-fault": 503,
}  # fmt: skip
_CODES = {
    401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    414: "too-long", 500: "internal-error", 503: "busy",
}  # fmt: skip
#: The values of ``code`` in errors.
ERROR_CODES = sorted({*_STATUSES, *_CODES.values()})


@dataclass(frozen=True)
class Reply:
    """A complete reply, whose ETag is a hash of its body."""

    body: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def response(self) -> Response:
        """Returns the reply in Starlette's terms, with all its headers."""
        # A length in a 304 would be that of the body that the client has.
        size = {} if self.status == 304 else {"content-length": str(len(self.body))}
        tag = {"etag": self.etag} if self.status == 200 else {}
        headers = {**HEADERS, "content-type": self.kind, **size, **tag, **self.headers}
        return Response(self.body, self.status, headers)

    def unless_known(self, if_none_match: str) -> Reply:
        """Returns this reply, or an empty 304 if the client has this body already."""
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        if self.status != 200 or not known & {self.etag, "*"}:
            return self
        return Reply(b"", self.kind, 304, {"etag": self.etag, **self.headers})


def json_reply(data: Any, status: int = 200, **headers: str) -> Reply:
    """Returns data as a JSON reply, with null for infinities and NaN."""
    try:
        body = json.dumps(data, allow_nan=False, default=_plain)
    except ValueError:  # infinities are rare, and a search for them would double the time
        body = json.dumps(without_infinities(data), allow_nan=False, default=_plain)
    return Reply(body.encode(), status=status, headers=headers)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


@dataclass(frozen=True)
class Problem:
    """An error of a request."""

    status: int  # the HTTP status
    code: str  # its name for programs, one of ``ERROR_CODES``
    message: str
    hint: str = ""  # what the user can do
    allow: str = "GET, HEAD"  # the methods that the path has

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that its status requires."""
        return {
            401: {"www-authenticate": "Bearer"},
            405: {"allow": self.allow},
            503: {"retry-after": "1"},
        }.get(self.status, {})

    def reply(self) -> Reply:
        """Returns the problem as JSON."""
        said = {"code": self.code, "message": self.message, "hint": self.hint}
        return json_reply({"error": said}, self.status, **self.headers)


class Refusal(Exception):
    """A request is refused, with a code that follows from the HTTP status."""

    def __init__(self, status: int, message: str, hint: str = "", **more: str) -> None:
        super().__init__(message)
        code = _CODES.get(status, "bad-request")
        self.problem = Problem(status, code, message, hint, **more)


def problem_of(error: CommtuneError | Refusal) -> Problem:
    """Returns the HTTP status and code for an error."""
    if isinstance(error, Refusal):
        return error.problem
    for code, kind in CODES.items():
        if isinstance(error, kind):
            return Problem(_STATUSES[code], code, error.message, error.hint)
    return Problem(500, _CODES[500], error.message, error.hint)
