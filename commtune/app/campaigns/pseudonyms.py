"""Replaces names of hosts, domains, clusters and users in rows of campaigns by pseudonyms."""

from __future__ import annotations

import getpass
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from commtune.db.bundle.rows import TABLES, Row, stored_type
from commtune.model import (
    Backend,
    JobScheduler,
    MpiFlavour,
    Operation,
    Outcome,
    Phase,
    Verdict,
    content_key,
)

#: Home folders, anywhere in a path.
_HOME = re.compile(r"/(?:home|homes|users|Users|u)/([^/\s:;,'\"]+)")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
#: Columns with output of libraries, where addresses are replaced. Elsewhere, four numbers with
#: dots between may be a version.
_LOGS = ("detail", "said", "why", "note", "reason")
#: Words of commtune, which are kept: they don't identify a host of such a name, and replacing them
#: would change data.
_OURS = {
    part
    for words in (Backend, Operation, Phase, Outcome, Verdict, MpiFlavour)
    for word in words
    for part in (word, *word.split("-"))
}
_NOT_NAMES = {"", "localhost", "root", "node", "nodes", *_OURS}
_HOST_KEYS = ("host", "hostname")


@dataclass
class Pseudonyms:
    """A mapping of names to pseudonyms, which is the same in all campaigns of a bundle."""

    known: dict[str, str] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> Pseudonyms:
        """Returns pseudonyms for this machine and user, and for all names in rows."""
        found = cls()
        found._note_host(socket.gethostname())
        found._note_host(socket.getfqdn())
        with suppress(KeyError, OSError):  # the user ID may have no name
            found._note("user", getpass.getuser())
        found._note("user", Path.home().name)
        for table, values in rows:
            found._note_row(table, values)
        return found

    def _note_row(self, table: str, values: Mapping[str, Any]) -> None:
        if table == "runs":
            for name in (values["nodes"] or "").split(","):
                self._note_host(name)
        for column, value in values.items():
            for key, text in _texts(value, column):
                for name in _HOME.findall(text):
                    self._note("user", name)
                if key in _HOST_KEYS:
                    self._note_host(text)
                if key == "cluster":
                    self._note("cluster", text)

    def _note_host(self, name: str) -> None:
        short, _, domain = name.partition(".")
        self._note("host", short)
        self._note("domain", domain)
        if short.lower() in self.known and domain:
            self.known[name.lower()] = self.known[short.lower()]

    def _note(self, kind: str, name: str) -> None:
        name = name.strip().lower()
        if name not in _NOT_NAMES and not name.isdigit() and name not in self.known:
            self._counts[kind] += 1
            self.known[name] = f"{kind}-{self._counts[kind]}"

    def replace_in(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields rows with pseudonyms, and without outputs, commands and scheduler settings."""
        words = re.compile(
            rf"(?<![A-Za-z0-9])(?:{'|'.join(self._patterns())})(?![A-Za-z0-9])", re.IGNORECASE
        )
        for table, values in rows:
            _drop_private(table, values)
            for column in TABLES[table].columns:
                if isinstance(stored_type(column), sa.Text | sa.JSON) or column.name == "name":
                    is_log = column.name in _LOGS
                    values[column.name] = self._replaced(values[column.name], words, is_log)
            if table in ("systems", "stacks"):
                # A hash that includes a name would confirm a guess of the name.
                values["fingerprint"] = content_key(values["description"])
            yield table, values

    def _patterns(self) -> list[str]:
        stems = {
            stem
            for name, stands in self.known.items()
            if stands.startswith("host-") and len(stem := re.sub(r"\d+$", "", name)) > 1
            if stem != name
        }
        # Other nodes of the same cluster, and Slurm's lists of nodes.
        further = [rf"{re.escape(stem)}(?:\d+|\[[\d,-]+\])" for stem in sorted(stems)]
        return [*map(re.escape, sorted(self.known, key=len, reverse=True)), *further]

    def _replaced(self, value: Any, words: re.Pattern[str], is_log: bool) -> Any:
        if isinstance(value, str):
            found = words.sub(lambda match: self._stand_in(match[0]), value)
            return _ADDRESS.sub("(address)", found) if is_log else found
        if isinstance(value, Mapping):
            return {name: self._replaced(one, words, is_log) for name, one in value.items()}
        if isinstance(value, list):
            return [self._replaced(one, words, is_log) for one in value]
        return value

    def _stand_in(self, name: str) -> str:
        self._note("host", name)
        return self.known[name.lower()]


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yields all texts in a value, each with its key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _texts(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, key)


def _drop_private(table: str, values: dict[str, Any]) -> None:
    if table == "campaigns":
        values["what"] = _without(values["what"], *JobScheduler)
        values["settings"] = _without(values["settings"], *JobScheduler)
    if table == "runs":
        values["output_tail"] = ""
        values["header"] = _without(values["header"], "argv")


def _without(value: Mapping[str, Any] | None, *names: str) -> dict[str, Any] | None:
    return None if value is None else {n: v for n, v in value.items() if n not in names}
