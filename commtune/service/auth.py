"""Who may read: a token, which a browser trades for a cookie at its first visit."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from commtune.errors import UserError

_FEWEST_CHARACTERS = 16
_MOST_CHARACTERS = 4096


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


def read_token(file: Path) -> str:
    """The token that a file holds.

    Raises:
        UserError: it can't be read, others may read it, or it holds no good token.
    """
    try:
        mode = file.stat().st_mode
        with file.open(encoding="ascii") as opened:
            token = opened.read(_MOST_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not plain ASCII"
        raise UserError(f"the token file {file} can't be read: {why}", hint=_HOW) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UserError(f"the token file {file} is open to other users", hint=f"chmod 600 {file}")
    if len(token) < _FEWEST_CHARACTERS or not token.isprintable() or " " in token:
        raise UserError(
            f"the token file {file} must hold one word of at least {_FEWEST_CHARACTERS} "
            "characters",
            hint=_HOW,
        )
    return token


_HOW = "make one: (umask 077; head -c 24 /dev/urandom | base64 > FILE)"
