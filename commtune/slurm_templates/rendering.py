"""Renders job scripts from templates; those in a user's own folder override the shipped ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.runtime import BlockReference, Context

from commtune.documents.nearest import quote_value
from commtune.errors import UserError
from commtune.model import PROTECTED_NAMES, JobScheduler
from commtune.paths import is_folder
from commtune.slurm_templates import quoting
from commtune.slurm_templates.background_command import BackgroundCommand
from commtune.slurm_templates.quoting import NO_CODE, QuotedText, ShellCode
from commtune.slurm_templates.template_check import check_template

_SHIPPED = "commtune.slurm_templates"


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options that a campaign's request and its jobs have in common; empty or 0 if unset."""

    scheduler: JobScheduler = JobScheduler.SLURM
    #: account, partition, qos, constraint, reservation, network, gres, memory: values of the
    #: options of these names (memory: of ``--mem``, for a node). ``partition`` is PBS's queue.
    account: str = ""
    partition: str = ""
    qos: str = ""
    constraint: str = ""
    reservation: str = ""
    network: str = ""
    gres: str = ""
    memory: str = ""
    #: place, resources: of PBS: value of ``-l place``, and further options ``-l``.
    place: str = ""
    resources: tuple[str, ...] = ()
    gpus_per_node: int = 0
    cpus_per_rank: int = 0
    modules: tuple[str, ...] = ()
    #: before, after: shell code that a user wrote.
    before: ShellCode = NO_CODE
    after: ShellCode = NO_CODE
    mail_user: str = ""  # recipient of mails about the end or failure of an allocation


@dataclass(frozen=True)
class Job(JobOptions):
    """The options and the environment of a job."""

    name: str  # contains our key, by which the job is found again
    nodes: int
    ranks_per_node: int
    time_s: float  # time limit; Slurm's is in whole minutes, rounded up
    output: str  # file for the script's own output
    exclude: str = ""
    comment: str = ""
    select: str = ""  # value of ``-l select`` of a PBS job
    exclusive: bool = False
    #: The most switches of Slurm's topology that the nodes may be on. Slurm waits for them up to
    #: the site's max_switch_wait, and then starts the job anyway.
    switches: int = 0
    #: Seconds before the time limit at which an allocation's controller gets SIGUSR1.
    warn_s: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)  # of the whole job


#: Fields of a job that become values of options.
_OPTIONS = (
    "name", "nodes", "ranks_per_node", "output", "account", "partition", "qos", "constraint",
    "reservation", "network", "memory", "gres", "exclude", "comment", "gpus_per_node",
    "cpus_per_rank", "switches", "warn_s", "mail_user", "select", "place",
)  # fmt: skip
#: slurmctld's limits in characters, for most options and for those that differ.
_LONGEST_TEXT = 1024
_LONGEST = {"exclude": 65536, "output": 4096}
_NEEDED = ("name", "output")


@dataclass(frozen=True)
class Step:
    """A launch in a block's job."""

    command: tuple[str, ...]  # launcher, program and arguments, one word each
    output: str  # file for its output
    #: File for the line ``STATUS BEGIN END``, written atomically: the exit status, and when it
    #: began and ended, seconds since 1970.
    exit_file: str
    #: The variables of this launch, beside the job's.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Time limit, seconds. The status is then 124, or 137 after SIGKILL; it is 125 if the command
    #: beside it did not start.
    time_limit_s: float = field(kw_only=True)
    #: A background command beside it. Its output is in the file ``OUTPUT.beside``, whose last line
    #: says how long it ran (see ``Presence``).
    beside: BackgroundCommand | None = None


def render_block(
    job: Job,
    steps: tuple[Step, ...],
    place: str | Path,
    folder: Path | None = None,
    places: tuple[str, ...] = (),
) -> str:
    """Returns the script of a job that makes the runs of one block, one after the other.

    The script makes the folder ``PLACE/started``, and measures nothing if that exists: of two jobs
    for one block only the first counts. It writes the scheduler's variables as ``NAME=VALUE`` to
    ``PLACE/nodes``, and at its end the exit file ``PLACE/finished``: 0 if all steps were made.

    Args:
        place: the block's folder, which must exist when the job runs.
        folder: the user's own templates; each can extend the shipped one as ``commtune/NAME``.
        places: command of a step that prints each node's position, for ``PLACE/places``.

    Returns:
        The script, in ASCII; write it as bytes or with ``newline="\\n"``.

    Raises:
        UserError: a name or value can't be quoted, or a template is wrong; with the place.
    """
    for step in steps:
        _check_environment(step.environment)
        if not 0 < step.time_limit_s < math.inf:
            raise UserError(
                f"{step.time_limit_s} is not a time limit", hint="give seconds above 0"
            )
    return _render(
        "block.sh.j2", job, folder, {"steps": steps, "place": str(place), "places": places}
    )


def render_allocation(job: Job, command: tuple[str, ...], folder: Path | None = None) -> str:
    """Returns the script of a job that runs a controller (``command``); see `render_block`."""
    return _render("allocation.sh.j2", job, folder, {"command": command})


def _render(name: str, job: Job, folder: Path | None, further: Mapping[str, Any]) -> str:
    _check_environment(job.environment)
    _check_options(job)
    if folder is not None and not is_folder(folder):
        raise UserError(f"no folder of templates at '{folder}'", hint="check the path")
    try:
        text = _environment(folder).get_template(name).render(job=job, **further)
    except jinja2.TemplateSyntaxError as e:
        raise UserError(
            f"template {e.name}:{e.lineno}: {e.message}", hint="see the template language's manual"
        ) from e
    except jinja2.TemplateNotFound as e:
        raise UserError(
            f"no template is called '{e.name}'", hint="shipped ones are commtune/NAME"
        ) from e
    except jinja2.UndefinedError as e:
        raise UserError(
            f"template {name}: {e.message}",
            hint="a template knows job, and steps and place, or command",
        ) from e
    except UserError:
        raise
    except Exception as e:  # a template is a user's program, and can fail in any way
        raise UserError(
            f"template {name}: {type(e).__name__}: {e}", hint="see the template language's manual"
        ) from e
    if not text.isascii():
        raise UserError(
            f"template {name}: text beyond ASCII", hint="such text may stand in values only"
        )
    return text


def _check_environment(environment: Mapping[str, str]) -> None:
    """Refuses variables that a script can't set unchanged.

    Raises:
        UserError: a variable's name is invalid, or its value isn't text or contains NUL.
    """
    for name, value in environment.items():
        quoting.check_variable(name)
        try:
            quoting.quote_word(value)
        except UserError as e:
            raise UserError(f"{name}: {e.message}", hint=e.hint) from e
        if not isinstance(value, str):
            raise UserError(f"{name}: {quote_value(value)} is not text", hint="put it in quotes")


def _check_options(job: Job) -> None:
    """Refuses options of a job that sbatch would misread; empty text and 0 are unset options.

    Raises:
        UserError: ``quote_directive`` refuses a value, or it is too long; with the option's name.
    """
    for name in ("nodes", "ranks_per_node"):
        number = getattr(job, name)
        if not isinstance(number, int) or number == 0:
            raise UserError(f"{name}: {number} is not a number of them", hint="give 1 or more")
    for name in _OPTIONS:
        value = getattr(job, name)
        try:
            if value not in ("", 0) or name in _NEEDED:
                quoting.quote_directive(value)
            if len(str(value)) > (most := _LONGEST.get(name, _LONGEST_TEXT)):
                raise UserError(
                    f"{quote_value(str(value))} has {len(str(value))} characters, and {most} is "
                    "the most",
                    hint="choose something shorter",
                )
        except UserError as e:
            raise UserError(f"{name}: {e.message}", hint=e.hint) from e


@cache
def _environment(folder: Path | None) -> jinja2.Environment:
    # Cached, as compiling templates takes longer than everything else that we do for a job; Jinja
    # itself reloads changed files.
    shipped = jinja2.PackageLoader(_SHIPPED)
    own = [jinja2.FileSystemLoader(folder)] if folder else []
    environment = jinja2.Environment(
        loader=_Checked([*own, shipped, jinja2.PrefixLoader({"commtune": shipped})]),
        undefined=jinja2.StrictUndefined,
        finalize=_quote_value,
        autoescape=False,  # `finalize` quotes for the shell; HTML escapes would not
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.context_class = _Context
    environment.filters.update(quoting.FILTERS)
    environment.globals["guard_names"] = PROTECTED_NAMES
    return environment


def _quote_value(value: object) -> str:
    """Quotes a value of a template; Jinja calls this for each."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises, with the name
    return value if isinstance(value, QuotedText) else quoting.quote_word(value)


class _Parent(BlockReference):
    """The overridden block of `super()`, whose text is quoted already."""

    def __call__(self) -> QuotedText:
        return QuotedText(super().__call__())


class _Context(Context):
    def super(
        self, name: str, current: Callable[[Context], Iterator[str]]
    ) -> BlockReference | jinja2.Undefined:
        found = super().super(name, current)
        if isinstance(found, jinja2.Undefined):
            return found
        return _Parent(found.name, found._context, found._stack, found._depth)


class _Checked(jinja2.ChoiceLoader):
    """A loader that checks every template that it reads."""

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, file, uptodate = super().get_source(environment, template)
        check_template(file or template, source, environment)
        return source, file, uptodate

    # ChoiceLoader's own method would call the inner loaders, without the check.
    load = jinja2.BaseLoader.load
