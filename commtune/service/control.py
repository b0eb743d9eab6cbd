"""The only change that a service with ``--control`` can make: it ends a campaign.

This is a POST with a separate token. A program sends the token as a header. A browser has a cookie
for it, and the request must come from a page of this service.
"""

from __future__ import annotations

import logging
import re

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from commtune.service.api import PREFIX
from commtune.service.auth import Tokens
from commtune.service.replies import Refusal

#: The path, both below the API's prefix and for pages, where the response is a redirect.
CANCEL = "/campaigns/{campaign}/cancel"
_PATHS = re.compile(rf"({PREFIX})?/campaigns/[^/]+/cancel")
_LOG = logging.getLogger("commtune.service")


def is_control(path: str) -> bool:
    """Whether this path changes something."""
    return _PATHS.fullmatch(path) is not None


def refuse_control(tokens: Tokens, path: str, headers: Headers) -> None:
    """
    Raises:
        Refusal: a request must not change anything.
    """
    # The API accepts no cookies, so that forms on other sites can't use it (CSRF).
    is_api = path.startswith(PREFIX)
    cookies = {} if is_api else cookie_parser(headers.get("cookie", ""))
    bearer = headers.get("authorization", "")
    if not tokens.admits(bearer, cookies):
        raise Refusal(
            401, "the control token is needed", "commtune serve --control prints it at its start"
        )
    # SameSite ignores ports, so that a cookie doesn't prove that the page is of this service.
    origin = headers.get("origin")
    if origin is None and tokens.admits(bearer, {}):
        return
    if origin is None or origin.partition("://")[2] != headers.get("host"):
        raise Refusal(
            403,
            "this request is from a page of another service",
            "open this service's own page; a reverse proxy must pass Host as it is",
        )


def cancel_by_request(name: str, db: str) -> str:
    """Ends a campaign like ``commtune cancel``; returns what was ended, or raises its errors."""
    # Imported here, because a read-only service doesn't need the code that runs campaigns.
    from commtune.app.campaigns.cancelling import end_campaign

    said = end_campaign(name, db)
    _LOG.warning("ended over HTTP: campaign %r: %r", name, said)
    return said
