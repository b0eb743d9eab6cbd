"""``commtune serve``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from commtune.commands.options import DbOption
from commtune.errors import MissingComponent, UserError, install_command
from commtune.private_files import read_token


def serve_command(
    bind: Annotated[
        str, typer.Option(help="unix:PATH, or HOST:PORT; port 0 takes any free one")
    ] = "127.0.0.1:8765",
    prefix: Annotated[
        str, typer.Option(help="path behind a reverse proxy, such as /commtune")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option(help="a file that holds the token [a new one at each start]")
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="listen where other machines can connect")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="let who has a second token end campaigns")
    ] = False,
    db: DbOption = None,
) -> None:
    """Serve campaigns, profiles and answers as web pages and as an HTTP API."""
    try:
        from commtune.service import auth, server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingComponent(
            f"commtune serve needs the Python package {error.name}",
            hint=install_command(".[serve]"),
        ) from error
    place = server.read_place(bind, allow_remote=allow_remote)
    if control and not place.is_local:
        raise UserError(
            "--control is for this machine: over HTTP without encryption, whoever listens on the "
            "network could end campaigns",
            hint="bind it to 127.0.0.1, behind ssh -L or a reverse proxy with TLS",
        )
    token = auth.new_token() if token_file is None else read_token(token_file)
    second = auth.new_token() if control else None

    def say(address: str) -> None:
        # A token that a file holds is known to whoever may read it, and stays out of logs.
        shown = address if token_file is None else address.partition("?")[0]
        over = "" if place.path is None else f" over {place.path}"
        print(f"serving at {shown}{over}", flush=True)
        if second is not None:
            print(
                f"to end campaigns, open then: {address.partition('?')[0]}?control={second}",
                flush=True,
            )
        able = "read-only" if second is None else "read-only but for the second address"
        if token_file is not None:
            how = f"in a browser, append '?token=' and the contents of {token_file}"
            print(how, file=sys.stderr, flush=True)
        print(f"{able}; Ctrl-C ends it", file=sys.stderr, flush=True)

    server.serve_database(
        db, place, token, prefix=server.read_prefix(prefix), control=second, say=say
    )
