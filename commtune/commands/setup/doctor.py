"""``commtune doctor``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict

from commtune.cluster.machine.description import Machine, describe_machine
from commtune.cluster.machine.doctor import Check, Status, collect_checks, examine_machine
from commtune.cluster.mpi.discovery import find_mpi
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

_STYLES = {Status.OK: "green", Status.MISSING: "bold red", Status.WARNING: "yellow"}
#: Wider than any line: what is not a terminal, such as grep, gets each finding in one line.
_UNCUT = 10_000


def doctor_command(db: DbOption = None, json_output: JsonOption = False) -> None:
    """Check this machine: what is there, what is missing, and how to install it."""
    machine, mpi = describe_machine(), _default_mpi()

    def of_variables() -> Iterable[Check]:
        found = installed_versions(mpi, _xccl(machine)) | versions_below(mpi, os.environ)
        return check_environment(os.environ, found)

    general = examine_machine(database=sqlite_path(database_url(db)))
    variables = collect_checks("environment", of_variables)
    backends = collect_checks("backend", lambda: check_backends(machine, mpi))
    checks = [*general, *variables, *backends]
    if json_output:
        print(json.dumps([asdict(check) for check in checks], indent=2))
        return
    _print_checks(checks)
    if lines := fix_commands([*general, *backends], variables, os.environ):
        print("\n".join(["\nTo fix:", *(f"  {line}" for line in lines)]))


def _print_checks(checks: Iterable[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("area", "state", "what", box=None, pad_edge=False, header_style="")
    for check in checks:
        table.add_row(check.area, Text(check.status, _STYLES[check.status]), Text(check.what))
    console = Console(width=None if sys.stdout.isatty() else _UNCUT, highlight=False)
    with console.capture() as printed:
        console.print(table)
    # Rich fills every line up to the longest one.
    print("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _default_mpi() -> MpiInstallation | None:
    """The one that campaigns take; that there is none, or that it is closed, is a check's."""
    try:
        return find_mpi("auto")
    except (CommtuneError, OSError):
        return None


def _xccl(machine: Machine) -> tuple[str, str] | None:
    """Name and version of NCCL or RCCL, where there are GPUs for it."""
    toolchain = toolchain_of("auto", ())[0] if machine.gpus else None
    found = toolchain.xccl if toolchain else None
    return (found.name, found.version) if found else None
