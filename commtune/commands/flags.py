"""Flags that several commands have, checked in the same words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from commtune.db.connection.location import shown_url
from commtune.documents.nearest import quote_value, suggest
from commtune.errors import UserError
from commtune.model import Backend


def database_flag(db: str | None) -> str:
    """What a command that we suggest needs to find the database that this one was given.

    Without its password, which is for the one who types it.
    """
    return f" --db {shlex.quote(shown_url(db))}" if db else ""


def one_of(flag: str, word: str, known: Sequence[str]) -> str:
    """The word, if it is known.

    Raises:
        UserError: with the nearest known ones.
    """
    if word in known:
        return word
    raise UserError(f"{flag}: {quote_value(word)} is not known here", hint=suggest(word, known))


def emulated_nodes(nodes: int, ranks: int, backend: Backend) -> int:
    """The number of nodes that one machine is to be; 0 for none.

    Raises:
        UserError: the backend can't, or ranks can't be shared evenly.
    """
    if nodes and backend is not Backend.XCCL:
        raise UserError("--emulate-nodes is for --backend xccl only", hint="leave it out")
    if nodes and (nodes < 2 or ranks % nodes):
        raise UserError(
            f"--emulate-nodes: {ranks} ranks can't be shared evenly by {nodes} nodes",
            hint="give each of two nodes or more as many ranks as the others",
        )
    return nodes
