"""Checking files, as ``spaces validate`` and ``systems validate`` do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from commtune.commands.options import print_json
from commtune.errors import CommtuneError, explain_os_error


def validate_files(
    files: Sequence[Path], check: Callable[[Path], str], *, json_output: bool
) -> None:
    """Checks files, and prints of each what is wrong with it; exits with 2 if one is wrong.

    Args:
        check: raises what is wrong with a file, and tells what is to be said of a right one.
    """
    results = []
    for file in files:
        try:
            remark = check(file)
        except (CommtuneError, OSError) as caught:
            error = explain_os_error(caught) if isinstance(caught, OSError) else caught
            said = {"message": error.message, "hint": error.hint}
            results.append({"file": str(file), "ok": False, **said})
            if not json_output:
                hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
                print(f"{error.message}{hint}", file=sys.stderr)
        else:
            results.append({"file": str(file), "ok": True})
            if not json_output:
                print(f"{file}: ok{remark}")
    if json_output:
        print_json(results)
    if not all(result["ok"] for result in results):
        # As for any other error of the one who asks (``errors.UserError``).
        sys.exit(2)
