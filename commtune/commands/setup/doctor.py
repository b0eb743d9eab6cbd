"""``commtune doctor``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

import typer

from commtune.app.setup.doctor import Check, Status, diagnose_machine
from commtune.commands.options import DbOption, JsonOption, print_json
from commtune.formatting import format_table, wrap_text
from commtune.streams import escape_text, underlying_stream

_COLORS = {Status.OK: "green", Status.MISSING: "red", Status.WARNING: "yellow"}


def doctor_command(db: DbOption = None, json_output: JsonOption = False) -> None:
    """Check this machine: what is installed, what is missing, and how to fix it."""
    checks, fixes = diagnose_machine(db)
    if json_output:
        print_json([{**asdict(check), "mend": str(check.mend)} for check in checks])
        return
    _print_checks(checks)
    if fixes:
        print("\n".join(["\nTo fix:", *(f"  {line}" for line in fixes)]))


def _print_checks(checks: Sequence[Check]) -> None:
    """In a terminal with lines as wide as that; grep and its like get a finding a line."""
    rows = [(c.area, str(c.status), escape_text(" ".join(c.what.split()))) for c in checks]
    header, *lines = format_table(("area", "state", "what"), rows).splitlines()
    if sys.stdout.isatty():
        width, at = shutil.get_terminal_size().columns, header.index("what")
        wrapped = (
            wrap_text(line[at:], first=line[:at], indent=" " * at, width=width) for line in lines
        )
        lines = [_color(line, c.status) for line, c in zip(wrapped, checks, strict=True)]
    print("\n".join([header, *lines]), file=underlying_stream(sys.stdout))


def _color(line: str, status: Status) -> str:
    if "NO_COLOR" in os.environ:
        return line
    return line.replace(f" {status}", f" {typer.style(status, fg=_COLORS[status])}", 1)
