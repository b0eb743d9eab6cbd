"""``commtune doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict

from commtune.app.setup.doctor import Check, Status, diagnose_machine
from commtune.commands.options import DbOption, JsonOption
from commtune.streams import escape_text, unescaped

_STYLES = {Status.OK: "green", Status.MISSING: "bold red", Status.WARNING: "yellow"}
#: Wider than any line: what is not a terminal, such as grep, gets each finding in one line.
_UNCUT = 10_000


def doctor_command(db: DbOption = None, json_output: JsonOption = False) -> None:
    """Check this machine: what is installed, what is missing, and how to fix it."""
    found = diagnose_machine(db)
    if json_output:
        print(json.dumps([asdict(check) for check in found.checks], indent=2))
        return
    _print_checks(found.checks)
    if found.fixes:
        print("\n".join(["\nTo fix:", *(f"  {line}" for line in found.fixes)]))


def _print_checks(checks: Iterable[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("area", "state", "what", box=None, pad_edge=False, header_style="")
    for check in checks:
        said = Text(escape_text(check.what))
        table.add_row(check.area, Text(check.status, _STYLES[check.status]), said)
    console = Console(width=None if sys.stdout.isatty() else _UNCUT, highlight=False)
    with console.capture() as printed:
        console.print(table)
    # Rich fills every line up to the longest one.
    lines = (line.rstrip() for line in printed.get().splitlines())
    print("\n".join(lines), file=unescaped(sys.stdout))
