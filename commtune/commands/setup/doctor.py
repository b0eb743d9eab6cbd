"""``commtune doctor``."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from commtune.cluster.machine.description import Machine, describe_machine
from commtune.cluster.machine.doctor import Status, examine_machine
from commtune.cluster.mpi.discovery import find_mpi
from commtune.commands import text
from commtune.commands.options import DbOption, JsonOption
from commtune.commands.setup.environment_check import (
    check_environment,
    installed_versions,
    versions_below,
)
from commtune.commands.setup.fixes import fix_commands
from commtune.db.connection.location import database_url, sqlite_path
from commtune.errors import CommtuneError
from commtune.model import MpiInstallation
from commtune.wiring.gpu_doctor import check_backends
from commtune.wiring.gpus import toolchain_of

_BESIDE = 24  # letters that stand before what was found, at most
_MARKS = {Status.OK: "ok", Status.MISSING: "missing", Status.WARNING: "warning"}


def run(db: str | None, *, json_output: bool) -> None:
    """Prints what this machine has and lacks."""
    path = sqlite_path(database_url(db))
    machine, mpi = describe_machine(), _mpi()
    found = installed_versions(mpi, _xccl(machine)) | versions_below(mpi, os.environ)
    general, of_variables = examine_machine(database=path), [*check_environment(os.environ, found)]
    of_backends = [*check_backends(machine, mpi)]
    findings = [*general, *of_variables, *of_backends]
    if json_output:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    rows = [(finding.area, _MARKS[finding.status], finding.what) for finding in findings]
    print(text.format_table(("area", "state", "what"), [*_lines(rows)]))
    if lines := fix_commands([*general, *of_backends], of_variables, os.environ):
        print("\n".join(["\nTo mend:", *(f"  {line}" for line in lines)]))


def _mpi() -> MpiInstallation | None:
    """The one that campaigns take; that there is none was said before."""
    try:
        return find_mpi("auto")
    except CommtuneError:
        return None


def _xccl(machine: Machine) -> tuple[str, str] | None:
    """Name and version of NCCL or RCCL, where there are GPUs for it."""
    toolchain = toolchain_of("auto", ())[0] if machine.gpus else None
    found = toolchain.xccl if toolchain else None
    return (found.name, found.version) if found else None


def _lines(rows: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The rows, cut into lines that a terminal has room for; elsewhere, as for grep, whole."""
    if not sys.stdout.isatty():
        yield from rows
        return
    room = max(40, shutil.get_terminal_size().columns - _BESIDE)
    for area, state, what in rows:
        first, *rest = textwrap.wrap(what, room, break_long_words=False, break_on_hyphens=False)
        yield area, state, first
        yield from (("", "", line) for line in rest)


def doctor_command(db: DbOption = None, json_output: JsonOption = False) -> None:
    """What this machine has, what is missing, and the command that mends it."""
    run(db, json_output=json_output)
