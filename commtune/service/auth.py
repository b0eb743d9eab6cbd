"""Who may read: a token, which a browser trades for a cookie at its first visit."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping


class Tokens:
    """Compares tokens and cookies in constant time.

    Args:
        token: what a request must have.
        cookie: the cookie's name: cookies are shared by all ports of a host, so that two
            services on one host need two names.
    """

    def __init__(self, token: str, cookie: str) -> None:
        self.token, self.cookie = token, cookie
        # Derived: who reads a browser's cookies doesn't have the token.
        self.cookie_value = hmac.new(
            token.encode(), b"commtune serve: cookie", hashlib.sha256
        ).hexdigest()

    def is_token(self, given: str | None) -> bool:
        """Whether this is the token."""
        return _same(given, self.token)

    def admits(self, authorization: str, cookies: Mapping[str, str]) -> bool:
        """Whether a request with this header and these cookies may read."""
        scheme, _, given = authorization.partition(" ")
        bears = scheme.lower() == "bearer" and self.is_token(given.strip())
        return bears or _same(cookies.get(self.cookie), self.cookie_value)


def _same(given: str | None, wanted: str) -> bool:
    # As bytes: compare_digest refuses text beyond ASCII.
    return hmac.compare_digest((given or "").encode("utf-8", "surrogatepass"), wanted.encode())


def new_token() -> str:
    """A random token of 192 bits."""
    return secrets.token_urlsafe(24)
