"""The command line: declares the commands, and turns errors into messages and exit codes.

Each command has a module in ``commtune/commands/`` that is imported only to run the command or to
show its help, so that ``commtune best`` answers in a tenth of a second.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from commtune.db.damage import ON_DAMAGE, WHAT_TO_DO, Damage
from commtune.documents.nearest import find_nearest
from commtune.errors import CommtuneError, UserError, explain_os_error
from commtune.interrupts import signals_interrupt
from commtune.progress import ON_STEP
from commtune.streams import drop_output, flush_output, plain_streams, underlying_stream

#: The most damaged rows that are reported; ``commtune db check`` lists all.
_MOST_DAMAGE = 10

#: The threads of the BLAS that NumPy and SciPy bring.
_BLAS_VARIABLE = "OPENBLAS_NUM_THREADS"

#: Threshold of Python's garbage collector: allocations less releases that start a collection.
_NEW_OBJECTS = 200_000

#: Context settings of each command and group, since click doesn't inherit them.
_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


#: Commands by heading, in the order of the help, with their modules below ``commtune.commands``.
#: The function is named after the command: ``tune_command``. Commands of two words form a group,
#: which is listed under the heading.
_COMMANDS = {
    "Tune": {
        "tune": "campaigns.tune",
        "status": "campaigns.status",
        "show": "campaigns.manage",
        "rename": "campaigns.manage",
        "delete": "campaigns.manage",
        "init": "campaigns.init",
        "submit": "campaigns.jobs",
        "cancel": "campaigns.jobs",
        "record": "campaigns.record",
        "bundle create": "campaigns.bundle",
        "bundle inspect": "campaigns.bundle",
        "bundle merge": "campaigns.bundle",
    },
    "Use": {
        "best": "profiles.best",
        "profiles": "campaigns.manage",
        "export": "profiles.use",
        "run": "profiles.use",
        "verify": "profiles.verify",
        "install": "profiles.install",
        "uninstall": "profiles.install",
    },
    "Inspect": {
        "results": "campaigns.results",
        "export-study": "campaigns.results",
        "report": "profiles.report",
        "plot": "profiles.report",
        "serve": "profiles.serve",
        "bench": "measure.bench",
        "compare": "measure.compare",
        "trace": "measure.trace",
        "trace-messages": "measure.trace_messages",
    },
    "Reference": {
        "findings list": "reference.findings",
        "findings reproduce": "reference.findings",
        "spaces list": "reference.spaces_list",
        "spaces show": "reference.spaces",
        "spaces explain": "reference.explain",
        "spaces validate": "reference.spaces",
        "systems list": "reference.systems",
        "systems show": "reference.systems",
        "systems reference-settings": "reference.system_settings",
        "systems validate": "reference.systems",
        "systems detect": "reference.system_detect",
        "systems new": "reference.system_new",
    },
    "Set-up": {
        "doctor": "setup.doctor",
        "build": "setup.build",
        "mpi list": "setup.mpi",
        "mpi install": "setup.mpi",
        "db path": "setup.database",
        "db upgrade": "setup.database",
        "db check": "setup.database",
        "db repair": "setup.database",
        "db backup": "setup.database",
        "db prune": "setup.database",
    },
}

#: Groups of commands with their help texts.
_GROUPS = {
    "bundle": "Campaigns in one file: made for another site, or taken from it.",
    "findings": "Published results for the described systems, and campaigns that repeat them.",
    "spaces": "Search spaces and their variables.",
    "systems": "Descriptions of machines and the settings that they recommend.",
    "mpi": "Find MPI libraries, or install them from wheels.",
    "db": "The database of campaigns: location, schema, damage, copies, size.",
}


def _function_of(command: str) -> str:
    return f"{command.replace(' ', '_').replace('-', '_')}_command"


def _summary(command: str, module: str) -> str:
    """Returns the summary of a command: the first paragraph of its docstring."""
    # The file is parsed and not imported, since imports for a list of all commands take a second.
    file = Path(__file__).parent / "commands" / f"{module.replace('.', '/')}.py"
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == _function_of(command):
            return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    raise LookupError(f"{file} does not declare {command}")


def _load(command: str, module: str) -> TyperCommand:
    application = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    # Imported modules are never garbage, so fewer collections save time. This includes modules
    # that a command imports while it runs.
    gc.set_threshold(_NEW_OBJECTS)
    declared = getattr(import_module(f"commtune.commands.{module}"), _function_of(command))
    gc.freeze()
    application.command(command.split()[-1], context_settings=_HELP)(declared)
    loaded = typer.main.get_command(application)
    assert isinstance(loaded, TyperCommand)
    return loaded


class _LazyGroup(TyperGroup):
    """A group of commands that are listed in a table and imported when called.

    Attributes:
        prefix: the first word of the commands' full names, with a space: ``"spaces "``.
        modules: the module of each command.
        headings: the names of commands and groups under each heading.
    """

    prefix = ""
    modules: dict[str, str]
    headings: dict[str, list[str]]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1
            sys.exit(141)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [name for names in self.headings.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in self.commands and cmd_name in self.modules:
            self.commands[cmd_name] = _load(self.prefix + cmd_name, self.modules[cmd_name])
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            near = find_nearest(args[0], self.list_commands(ctx))
            ctx.fail(f"No such command '{args[0]}'." + (f" Nearest: {near}" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for heading, names in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self._summary_of(name)) for name in names])

    def _summary_of(self, name: str) -> str:
        if name in self.modules:
            return _summary(self.prefix + name, self.modules[name])
        return self.commands[name].help or ""


def _group(name: str, modules: dict[str, str]) -> TyperGroup:
    group = _LazyGroup(
        name=name,
        help=_GROUPS[name],
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=_HELP,
    )
    group.prefix = f"{name} "
    group.modules = {
        full.removeprefix(group.prefix): module
        for full, module in modules.items()
        if full.startswith(group.prefix)
    }
    group.headings = {"Commands": list(group.modules)}
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
    """Returns the application with all commands."""
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
    top.modules = {name: module for names in _COMMANDS.values() for name, module in names.items()}
    top.headings = {
        heading: list(dict.fromkeys(name.split()[0] for name in names))
        for heading, names in _COMMANDS.items()
    }
    top.commands.update({name: _group(name, top.modules) for name in _GROUPS})
    return top


def main() -> NoReturn:
    """Entry point: runs the command and turns errors into messages and exit codes."""
    if _BLAS_VARIABLE not in os.environ:
        # Threads would spin for longer than they compute, a twentieth of a second each at their
        # start. Programs that commtune starts get ``os.environ``, which this does not change.
        os.putenv(_BLAS_VARIABLE, "1")
    with plain_streams():
        # In a copied context, so that ON_STEP and ON_DAMAGE of a Python caller stay as they are.
        copy_context().run(_end_in_words)


def _end_in_words() -> NoReturn:
    try:
        ON_STEP.set(_print_step)
        ON_DAMAGE.set(_Damaged().tell)
        with signals_interrupt():
            _run()
    except CommtuneError as error:
        _fail(error)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader has closed the pipe (| head)
        drop_output(sys.stdout)
        sys.exit(141)
    except OSError as error:
        drop_output(sys.stdout)
        _fail(explain_os_error(error))
    except UnicodeEncodeError as error:  # only names of files may have arbitrary bytes
        _fail(UserError(f"{ascii(error.object)[:80]} is not UTF-8 text", hint="write it in UTF-8"))
    except Exception as error:
        _usage_or_bug(error)


def _run() -> NoReturn:
    try:
        # An interrupted command returns its exit code, other commands return None.
        sys.exit(make_app()(standalone_mode=False, prog_name="commtune"))
    finally:
        flush_output()


@dataclass
class _Damaged:
    """Reports damaged rows of the database that are left out: each once, at most ten."""

    told: set[Damage] = field(default_factory=set)

    def tell(self, damage: Damage) -> None:
        if damage in self.told or len(self.told) > _MOST_DAMAGE:
            return
        self.told.add(damage)
        is_last = len(self.told) > _MOST_DAMAGE
        print("note: more is damaged" if is_last else f"note: left out as damaged: {damage}",
              file=sys.stderr)  # fmt: skip
        if len(self.told) == 1:
            print(f"  {WHAT_TO_DO}", file=sys.stderr)


def _print_step(text: str, done: int, total: int) -> None:
    """Prints progress to standard error: a counter on a terminal, else only the first step."""
    if not sys.stderr.isatty():
        if not total:
            print(text, file=sys.stderr, flush=True)
        return
    count = f": {done} of {total}" if total else ""
    # The last step clears the line for further output.
    line = "" if total and done == total else f"{text}{count}"
    print(f"\r\x1b[K{line}", end="", file=underlying_stream(sys.stderr), flush=True)


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
