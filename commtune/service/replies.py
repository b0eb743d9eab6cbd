"""What goes out: JSON, errors in words, ETags, and the headers that every reply has."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from commtune.errors import CODES, CommtuneError
from commtune.formatting import without_infinities

#: Nothing but our own files, and no inline script or style: stored text can't run.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: The report carries its own style, and has no script.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox allow-same-origin"
)

_HEADERS = {
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
    414: "too-long", 431: "too-large", 500: "internal-error", 503: "busy",
}  # fmt: skip
#: What stands in the ``code`` of an error.
ERROR_CODES = sorted({*_STATUSES, *_CODES.values()})


@dataclass(frozen=True)
class Reply:
    """A whole reply; the same bytes have the same ETag."""

    body: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def all_headers(self) -> dict[str, str]:
        """Those of every reply among them."""
        own = {"content-type": self.kind, "content-length": str(len(self.body))}
        tag = {"etag": self.etag} if self.status == 200 else {}
        return {**_HEADERS, **own, **tag, **self.headers}

    def unless_known(self, if_none_match: str) -> Reply:
        """An empty 304 where the reader has these bytes already."""
        known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        if self.status != 200 or not known & {self.etag, "*"}:
            return self
        return Reply(b"", self.kind, 304, {"etag": self.etag, **self.headers})


def json_reply(data: Any, status: int = 200, **headers: str) -> Reply:
    """Data as JSON; ``null`` stands where JSON has no word for a number."""
    try:
        body = json.dumps(data, allow_nan=False, default=_plain)
    except ValueError:  # infinities are rare, and to look for them takes as long as all the rest
        body = json.dumps(without_infinities(data), allow_nan=False, default=_plain)
    return Reply(body.encode(), status=status, headers=headers)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


@dataclass(frozen=True)
class Problem:
    """What went wrong, for a program and for a person.

    Attributes:
        hint: what to do.
    """

    status: int
    code: str
    message: str
    hint: str = ""

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with it for programs."""
        return {
            401: {"www-authenticate": "Bearer"},
            405: {"allow": "GET, HEAD"},
            503: {"retry-after": "1"},
        }.get(self.status, {})

    def reply(self) -> Reply:
        """The problem as JSON."""
        said = {"code": self.code, "message": self.message, "hint": self.hint}
        return json_reply({"error": said}, self.status, **self.headers)


def problem_of(error: CommtuneError) -> Problem:
    """What an error of ours means over HTTP."""
    for code, kind in CODES.items():
        if isinstance(error, kind):
            return Problem(_STATUSES[code], code, error.message, error.hint)
    return Problem(500, _CODES[500], error.message, error.hint)


def make_problem(status: int, message: str, hint: str = "") -> Problem:
    """What a status alone says."""
    return Problem(status, _CODES.get(status, "bad-request"), message, hint)


def file_name(words: str, suffix: str) -> str:
    """A name for a download, of what any file system and header takes."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', words)[:100] or 'profile'}.{suffix}"
