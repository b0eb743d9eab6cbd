"""What a service with ``--control`` may change: it ends a campaign, and nothing else.

It has a token of its own, and only POST needs it. A program sends the token as a header. A
browser has a cookie for it, and must come from a page of this service.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from commtune.service.api import PREFIX
from commtune.service.auth import Tokens
from commtune.service.replies import Problem, make_problem

#: Of the API, and of the pages, whose answer leads back to the campaign.
CANCEL = "/campaigns/{campaign}/cancel"
_PATHS = re.compile(rf"(?P<api>{PREFIX})?/campaigns/[^/]+/cancel")
_LOG = logging.getLogger("commtune.service")

#: For the OpenAPI document.
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "required": ["campaign", "message"],
    "properties": {
        "campaign": {"type": "string"},
        "message": {"type": "string", "description": "what was ended"},
    },
}


def is_control(path: str) -> bool:
    """Whether this path changes something."""
    return _PATHS.fullmatch(path) is not None


def refuse_control(tokens: Tokens, path: str, headers: Headers) -> Problem | None:
    """Why a request must not change anything; ``None`` if it may."""
    # The API takes no cookies: no form of another page reaches it.
    is_api = path.startswith(PREFIX)
    cookies = {} if is_api else cookie_parser(headers.get("cookie", ""))
    bearer = headers.get("authorization", "")
    if not tokens.admits(bearer, cookies):
        return make_problem(
            401, "the control token is needed", "commtune serve --control prints it at its start"
        )
    # SameSite doesn't tell ports apart, so that a cookie alone proves nothing about the page.
    origin = headers.get("origin")
    if origin is None and tokens.admits(bearer, {}):
        return None
    if origin is None or urlsplit(origin).netloc != headers.get("host"):
        return make_problem(
            403,
            "this request is from a page of another service",
            "open this service's own page; a reverse proxy must pass Host as it is",
        )
    return None


def cancel(name: str, db: str) -> str:
    """Ends a campaign as ``commtune cancel`` does; returns what was ended, in words.

    Raises:
        CommtuneError: as ``end_campaign``.
    """
    # Here: who only reads doesn't wait for all that runs campaigns.
    from commtune.app.campaigns.cancelling import end_campaign

    said = end_campaign(name, db)
    _LOG.warning("ended over HTTP: campaign %r: %r", name, said)
    return said
