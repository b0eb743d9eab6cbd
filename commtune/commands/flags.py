"""Flags that several commands have, checked in the same words."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from commtune.db.connection.location import shown_url
from commtune.documents.habits import read_operation, read_sizes
from commtune.documents.nearest import quote_value, suggest
from commtune.documents.quantities import QuantityError, parse_bytes, parse_seconds
from commtune.errors import InvalidKey, UserError
from commtune.formatting import without_infinities
from commtune.model import Configuration, Operation


def database_flag(db: str | None) -> str:
    """What a command that we suggest needs to find the database that this one was given.

    Without its password, which is for the one who types it.
    """
    return f" --db {shlex.quote(shown_url(db))}" if db else ""


#: Keys of a campaign file by the flags that are called otherwise.
_FLAGS = {
    "operation": "op",
    "ablation": "ablate",
    "confirmation": "confirm",
    "guard_operations": "guard",
}


def flag_of(key: str) -> str:
    """How a key of a campaign file is written on the command line: ``--minimum-gain``."""
    return f"--{_FLAGS.get(key, key).replace('_', '-')}"


@contextmanager
def keys_are_flags() -> Iterator[None]:
    """What is wrong with a key is said of its flag.

    Raises:
        UserError: in the place of ``InvalidKey``.
    """
    try:
        yield
    except InvalidKey as refused:
        hint = refused.hint_in(lambda key, value: f"{flag_of(key)} {value}")
        raise UserError(f"{flag_of(refused.key)}: {refused.problem}", hint=hint) from refused


def word_flag(flag: str, word: str, known: Sequence[str]) -> str:
    """The word, if it is known.

    Raises:
        UserError: with the nearest known ones.
    """
    if word in known:
        return word
    raise UserError(f"{flag}: {quote_value(word)} is not known here", hint=suggest(word, known))


def operation_flag(word: str) -> Operation:
    """``--op``; words of other benchmarks are understood, and a note says how.

    Raises:
        UserError: no operation is called so.
    """
    try:
        operation, remark = read_operation(word)
    except UserError as error:
        raise UserError(f"--op: {error.message}", hint=error.hint) from error
    _note("--op", remark)
    return operation


def sizes_flag(written: str) -> tuple[int, ...]:
    """``--sizes``, bytes; ``1M`` is understood as nccl-tests does, and a note says so.

    Raises:
        UserError: what can't be read, with how it is written.
    """
    from commtune.campaign.workload import parse_sizes  # slow, and `best` needs no ranges

    spelt, remark = read_sizes(written)
    try:
        found = parse_sizes(spelt if ".." in spelt else spelt.split(","))
    except QuantityError as error:
        raise UserError(f"--sizes: {error.message}", hint=error.hint) from error
    _note("--sizes", remark)
    return found


def bytes_flag(written: str) -> int:
    """``--bytes``, read as sizes are.

    Raises:
        UserError: with how sizes are written.
    """
    spelt, remark = read_sizes(written)
    try:
        found = parse_bytes(spelt)
    except QuantityError as error:
        raise UserError(f"--bytes {written}: {error}", hint="write 8, 64KiB or 1MiB") from error
    _note("--bytes", remark)
    return found


def _note(flag: str, remark: str) -> None:
    if remark:
        print(f"note: {flag} {remark}", file=sys.stderr)


def settings_flag(settings: Iterable[str]) -> Configuration:
    """``-x NAME=VALUE``, as often as it was given.

    Raises:
        UserError: one of them has no name, or no value.
    """
    values = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UserError(f"-x {setting}: no value", hint="write -x NAME=VALUE")
        values[name] = value
    return Configuration(values)


def seconds_flag(flag: str, written: str) -> float:
    """A time from the command line.

    Raises:
        UserError: it is none, or not above 0.
    """
    try:
        found = parse_seconds(written)
    except QuantityError as error:
        raise UserError(f"{flag}: {error.message}", hint=error.hint) from error
    if found <= 0:
        raise UserError(f"{flag} {written}: no time at all", hint="write 30s or 5min")
    return found


def print_json(data: Any) -> None:
    """Prints plain data for programs; ``null`` stands where JSON has no word for a number."""
    print(json.dumps(without_infinities(data), indent=2, allow_nan=False))
