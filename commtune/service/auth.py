"""Access tokens, which a browser exchanges for a cookie at its first visit."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping


class Tokens:
    """A token and its cookie, which are compared in constant time.

    Args:
        token: the token that a request must have.
        cookie: the cookie's name. All ports of a host share cookies, so that two services on one
            host need two names.
    """

    def __init__(self, token: str, cookie: str) -> None:
        self.token, self.cookie = token, cookie
        # A hash, so that the token can't be read from a browser's cookies.
        self.cookie_value = hmac.new(
            token.encode(), b"commtune serve: cookie", hashlib.sha256
        ).hexdigest()

    def is_token(self, given: str | None) -> bool:
        """Whether this is the token."""
        return _same(given, self.token)

    def admits(self, authorization: str, cookies: Mapping[str, str]) -> bool:
        """Whether a request with this Authorization header and these cookies is allowed."""
        scheme, _, given = authorization.partition(" ")
        bears = scheme.lower() == "bearer" and self.is_token(given.strip())
        return bears or _same(cookies.get(self.cookie), self.cookie_value)


def _same(given: str | None, wanted: str) -> bool:
    # As bytes, because compare_digest refuses text that is not ASCII.
    return hmac.compare_digest((given or "").encode("utf-8", "surrogatepass"), wanted.encode())


def new_token() -> str:
    """Returns a random token of 192 bits."""
    return secrets.token_urlsafe(24)
