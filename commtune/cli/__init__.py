"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from commtune.cli.app import app
from commtune.commands.signals import signals_interrupt
from commtune.errors import CommtuneError

# Importing these gives the application its commands, in the order of the help.
# isort: off
from commtune.cli import campaigns  # noqa: F401
from commtune.cli import answers  # noqa: F401
from commtune.cli import measuring  # noqa: F401
from commtune.cli import catalogues  # noqa: F401
# isort: on

__all__ = ["app", "main"]


def main() -> NoReturn:
    """Entry point: runs the command and turns errors into messages and exit codes."""
    try:
        with signals_interrupt():
            # What was interrupted comes back with its exit code, other commands with nothing.
            sys.exit(app(standalone_mode=False, prog_name="commtune"))
    except CommtuneError as error:
        _fail(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (| head); Python would complain at exit when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        _usage_or_bug(error)


def _fail(error: CommtuneError) -> NoReturn:
    print(f"commtune: {error.message}", file=sys.stderr)
    for line in error.hint.splitlines():
        print(f"  {line}", file=sys.stderr)
    sys.exit(error.exit_code)


def _usage_or_bug(error: Exception) -> NoReturn:
    show: Callable[[], None] | None = getattr(error, "show", None)  # click's usage errors
    if show is None:
        raise error
    show()
    sys.exit(getattr(error, "exit_code", 2))
