"""A client of the HTTP API of ``commtune serve``.

Imports only the standard library, because the start of ``commtune best`` waits for it.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from commtune import __version__
from commtune.errors import CODES, DatabaseFault, UserError, os_reason
from commtune.private_files import read_token

_API = "/api/v1"
#: The time limit of a request by method, seconds, and the largest answer, bytes. A POST cancels a
#: campaign, whose jobs clean up before they end.
_PATIENCE_S = {"GET": 60.0, "POST": 180.0}
_LARGEST = 256 << 20
#: The environment variables with the token, or with the file that holds it.
_TOKEN, _TOKEN_FILE = "COMMTUNE_TOKEN", "COMMTUNE_TOKEN_FILE"
_GIVE_TOKEN = f"name the file that holds it: export {_TOKEN_FILE}=FILE"
_ADDRESS = "write it as commtune serve prints it, without the token: http://127.0.0.1:8765"
_PLAIN_TOKEN = re.compile(r"[!-~]+")


def with_token(url: str, token: str) -> str:
    """Returns the URL of a service with its token as the password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://:{quote(token, safe='')}@{rest}"


def ask_service(url: str, path: str, **query: str | int | None) -> Any:
    """Returns the answer of a service, as plain data.

    Args:
        path: below the API's prefix, with quoted parts.
        query: query parameters; those that are ``None`` are left out.

    Raises:
        UserError: the address or the token is wrong.
        DatabaseFault: it can't be reached, is no service, or has another version.
        CommtuneError: the error of the service, as the same class.
    """
    service = _Service.at(url)
    given = urlencode({name: value for name, value in query.items() if value is not None})
    return service.ask(f"{path}?{given}" if given else path)


def ask_to_cancel(url: str, campaign: str, control_token: str) -> str:
    """Asks a service to end a campaign; returns its message about what was ended.

    Raises:
        CommtuneError: as for ``ask_service``, or the service refuses.
    """
    service = replace(_Service.at(url), token=control_token)
    return str(service.ask(f"/campaigns/{quote_part(campaign)}/cancel", method="POST")["message"])


def quote_part(name: str | int) -> str:
    """Returns a name quoted as a single part of a URL's path."""
    return quote(str(name), safe="", errors="replace")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirects, so that only the named host gets the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _OverSocket(urllib.request.HTTPHandler):
    """A handler for HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **given: Any) -> http.client.HTTPConnection:
        made = http.client.HTTPConnection(host, **given)
        made.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.sock.settimeout(made.timeout)
        try:
            made.sock.connect(self._path)
        except OSError:
            made.close()
            raise
        return made


@dataclass(frozen=True)
class _Service:
    """The address of a service, and its token.

    Attributes:
        is_local: whether it is on this machine, and proxies are not used.
        socket: the path of a Unix socket; empty if the address has a host.
    """

    address: str
    token: str
    is_local: bool
    socket: str = ""

    @classmethod
    def at(cls, url: str) -> _Service:
        try:
            parts = urlsplit(url)
        except ValueError as error:  # of brackets without an IPv6 address
            raise UserError(f"the service's address is wrong: {error}", hint=_ADDRESS) from error
        if parts.query or parts.fragment:
            told = " with a token, which other users of this machine see" if parts.query else ""
            raise UserError(f"the service's address goes on behind its path{told}", hint=_ADDRESS)
        user, _, place = parts.netloc.rpartition("@")
        path = unquote(parts.path) if parts.scheme == "unix" else ""
        if not (parts.hostname or path) or user.partition(":")[0]:
            raise UserError("the service's address has a user, or no host", hint=_ADDRESS)
        token = unquote(user.removeprefix(":")) or _token_of_environment()
        if token and not _PLAIN_TOKEN.fullmatch(token):
            raise UserError("the service's token is not one word of ASCII", hint=_GIVE_TOKEN)
        if path:
            return cls(f"unix:{path}", token, True, path)
        address = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
        return cls(address, token, is_loopback(parts.hostname or ""))

    def ask(self, target: str, *, method: str = "GET", again: bool = True) -> Any:
        """Returns the answer; after a 503 with ``Retry-After`` it waits, and asks once more."""
        base = "http://localhost" if self.socket else self.address
        request = urllib.request.Request(f"{base}{_API}{target}", method=method)
        request.add_header("Accept", "application/json")
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        # A proxy can't connect to the loopback interface of this machine.
        proxies = [urllib.request.ProxyHandler({})] if self.is_local else []
        over = [_OverSocket(self.socket)] if self.socket else []
        opener = urllib.request.build_opener(_NoRedirect, *proxies, *over)
        try:
            with opener.open(request, timeout=_PATIENCE_S[method]) as reply:
                return self._read(reply)
        except urllib.error.HTTPError as refused:
            with refused:
                wait_s = refused.headers.get("retry-after", "")
                if not (again and refused.code == 503 and wait_s.isdecimal()):
                    raise self._explain_refusal(refused) from refused
                time.sleep(min(int(wait_s), _PATIENCE_S[method]))
        except ssl.SSLError as error:
            raise self._explain_tls(error) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLError):
                raise self._explain_tls(error.reason) from error
            raise self._explain_silence(error.reason) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._explain_silence(error) from error
        return self.ask(target, method=method, again=False)

    def _read(self, reply: Any) -> Any:
        kind = reply.headers.get_content_type()
        if kind != "application/json":
            raise self._is_no_service(f"it answers with {kind[:60]}")
        body = reply.read(_LARGEST + 1)
        if len(body) > _LARGEST:
            raise DatabaseFault(f"{self.address} answers with more than {_LARGEST >> 20} MiB")
        if reply.length:
            raise http.client.IncompleteRead(body, reply.length)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._is_no_service("its answer is no JSON") from error

    def _explain_refusal(self, refused: urllib.error.HTTPError) -> Exception:
        if place := refused.headers.get("location", ""):
            return self._is_no_service(f"it sends on to {place[:100]!r}")
        with suppress(Exception):
            told = self._read(refused)["error"]
            code, message, hint = (str(told[name]) for name in ("code", "message", "hint"))
            return self._error_of(code, message, hint)
        if refused.code in (401, 403):
            return self._wants_token()
        return self._is_no_service(f"it answers with status {refused.code}")

    def _error_of(self, code: str, message: str, hint: str) -> Exception:
        if code == "unauthorized":
            return self._wants_token()
        if code == "not-found":
            return self.explain_other_version(message)
        if (kind := CODES.get(code)) is not None:
            return kind(message, hint=hint)
        return DatabaseFault(f"{self.address}: {message}", hint=hint)

    def _wants_token(self) -> UserError:
        if self.token:
            said = "doesn't know the token that it was given: each start may make a new one"
        else:
            said = "wants a token"
        return UserError(f"{self.address} {said}", hint=_GIVE_TOKEN)

    def _is_no_service(self, why: str) -> DatabaseFault:
        return DatabaseFault(
            f"{self.address} is no commtune service: {why}",
            hint="check the address and the path in it (commtune serve --prefix); a page "
            "that asks for a login is no service for programs",
        )

    def explain_other_version(self, why: str) -> DatabaseFault:
        """Returns the fault for an answer that this version can't read."""
        theirs = "unknown"
        with suppress(Exception):
            theirs = str(self.ask("/health")["version"])[:40]
        return DatabaseFault(
            f"{self.address} is another version of commtune, {theirs} (this is {__version__}): "
            f"{why[:200]}",
            hint="update the older one: pip install --upgrade commtune",
        )

    def _explain_tls(self, error: ssl.SSLError) -> DatabaseFault:
        if isinstance(error, ssl.SSLCertVerificationError):
            return DatabaseFault(
                f"{self.address} has a certificate that is not to be trusted: "
                f"{error.verify_message}",
                hint="if your site signs its own: export SSL_CERT_FILE=FILE, with its certificate",
            )
        return DatabaseFault(
            f"{self.address} and this program find no TLS in common: {error.reason}",
            hint="a service without TLS has an address with http://",
        )

    def _explain_silence(self, error: object) -> DatabaseFault:
        why = os_reason(error) if isinstance(error, OSError) else str(error)
        return DatabaseFault(
            f"{self.address} can't be reached: {why[:200]}",
            hint="check the address, and that commtune serve runs there; to a login node: "
            "ssh -L 8765:localhost:8765 LOGIN, and then http://localhost:8765",
            transient=True,
        )


def explain_other_version(url: str, why: str) -> DatabaseFault:
    """Returns the fault for a service's answer that this version can't read."""
    return _Service.at(url).explain_other_version(why)


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is that of this machine for itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token_of_environment() -> str:
    if file := os.environ.get(_TOKEN_FILE):
        return read_token(Path(file))
    return os.environ.get(_TOKEN, "").strip()
