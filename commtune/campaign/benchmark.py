"""Reads the section ``benchmark`` of a campaign file: a pattern in Python, or a command."""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from commtune.campaign.schema import BenchmarkPart, CampaignFile
from commtune.campaign.workload import RANKS_WORDS
from commtune.documents.files import read_file, resolve_path
from commtune.documents.nearest import find_nearest, quote_value
from commtune.documents.yaml_document import Document
from commtune.errors import CampaignError
from commtune.model import BATCHED, PYTHON_BACKENDS, Backend, Estimand, Operation, OwnBenchmark
from commtune.paths import is_file

#: Placeholders in a command, replaced for each run (see ``kernels.adapters.program``).
_PLACEHOLDER = re.compile(r"\{[a-z_]*\}")
_KNOWN_PLACEHOLDERS = ("{sizes}", "{smallest}", "{largest}", "{ranks}", "{run_id}", "{json}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 50
#: Backends that a command may declare: unknown, or NCCL or RCCL. The latter binds its profiles to
#: the library's version, the GPUs and the protected variables.
_OF_COMMANDS = (Backend.COMMAND, Backend.XCCL)
#: Suffixes of scripts, which are arguments of an interpreter.
_OF_SCRIPTS = (".py", ".sh", ".pl", ".jl", ".rb", ".R", ".lua", ".js")
#: Programs whose option -m takes a module.
_PYTHON = re.compile(r"python|pypy|torchrun")


def with_benchmark(document: Document, file: CampaignFile) -> CampaignFile:
    """Returns the file with the operation and backend that its own benchmark implies."""
    workload, part = file.workload, file.benchmark
    if part is None:
        if workload.backend is Backend.COMMAND:
            raise document.error(
                "the backend command needs a command",
                ("workload", "backend"),
                hint="add `benchmark: {command: [...], output: ...}`",
            )
        if workload.operation.is_own:
            raise document.error(
                f"{workload.operation} needs a benchmark of your own, and the file names none",
                ("workload", "operation"),
                hint="add `benchmark: {python: FILE.py:CLASS}`, or name an operation",
            )
        _check_plain(document, file)
        return file
    if bool(part.python) == bool(part.command):
        raise document.error(
            "a benchmark of your own is either a pattern in Python or a command",
            ("benchmark",),
            hint="write `python: FILE.py:CLASS`, or `command: [...]` with `output: ...`",
        )
    update = (
        _of_pattern(document, file, part) if part.python else _of_command(document, file, part)
    )
    changed = file.model_copy(update={"workload": workload.model_copy(update=update)})
    _check_plain(document, changed)
    return changed


def own_benchmark(document: Document, file: CampaignFile, folder: Path) -> OwnBenchmark | None:
    """Returns the user's own benchmark; ``None`` if the file has none.

    Raises:
        DocumentError: its file or program doesn't exist, or the file lacks the pattern.
    """
    part = file.benchmark
    if part is None:
        return None
    if part.command:
        uses_scheduler = bool(file.slurm or file.pbs or file.system)
        _check_program(document, part, folder, uses_scheduler=uses_scheduler)
        command, where = tuple(part.command), str(folder.resolve())
        return OwnBenchmark(command=command, output=part.output, folder=where)
    written, kind = _split(part.python)
    with document.placing("benchmark", "python"):
        path = Path(os.path.realpath(resolve_path(written, folder)))
        if not is_file(path):
            raise document.error(
                f"there is no pattern file {path}",
                ("benchmark", "python"),
                hint="paths start at the campaign file's folder; write FILE.py:CLASS",
            )
    _check_pattern_file(path, kind)
    return OwnBenchmark(pattern=f"{path}:{kind}" if kind else str(path))


def found_words(own: OwnBenchmark | None, *, uses_scheduler: bool) -> str:
    """Returns a remark on which program PATH gives for a command.

    Empty for a path, and for jobs, which find it by their own PATH.
    """
    if own is None or not own.command or "/" in own.command[0] or uses_scheduler:
        return ""
    return f"the command's {own.command[0]} is {shutil.which(own.command[0])}, found on your PATH"


def _split(written: str) -> tuple[str, str]:
    path, colon, kind = written.partition(".py:")
    return (path + ".py", kind) if colon else (written, "")


def _of_pattern(
    document: Document, file: CampaignFile, part: BenchmarkPart
) -> dict[str, Operation | Backend]:
    given = file.workload.model_fields_set
    if "operation" in given:
        raise document.error(
            "a pattern is an operation of its own",
            ("workload", "operation"),
            hint="remove it; `name` below `benchmark` gives it another name",
        )
    if "backend" in given and file.workload.backend not in PYTHON_BACKENDS:
        raise document.error(
            f"a pattern in Python does not run on the backend {file.workload.backend}",
            ("workload", "backend"),
            hint=f"write {' or '.join(PYTHON_BACKENDS)}, or remove it",
        )
    if part.output:
        raise document.error(
            "a pattern needs no output format",
            ("benchmark", "output"),
            hint="remove it; it is for commands",
        )
    path, kind = _split(part.python)
    backend = file.workload.backend if "backend" in given else Backend.PYTHON_HOST
    return {"operation": _named(document, part, kind or Path(path).stem), "backend": backend}


def _of_command(
    document: Document, file: CampaignFile, part: BenchmarkPart
) -> dict[str, Operation | Backend]:
    given = file.workload.model_fields_set
    if not part.output:
        raise document.error(
            "the format of the command's output is missing",
            ("benchmark",),
            hint="add output: nccl-tests, nccl-tests-in-place, osu, imb or json-line",
        )
    if "backend" in given and file.workload.backend not in _OF_COMMANDS:
        raise document.error(
            f"a command has no backend {file.workload.backend}",
            ("workload", "backend"),
            hint="remove it: the command itself decides; or write xccl for one on NCCL or RCCL",
        )
    for word in part.command:
        for found in _PLACEHOLDER.findall(word):
            if found not in _KNOWN_PLACEHOLDERS:
                raise document.error(
                    f"{found} is not a placeholder of commands",
                    ("benchmark", "command"),
                    hint=f"known: {', '.join(_KNOWN_PLACEHOLDERS)}",
                )
    is_named = "backend" in given
    backend = file.workload.backend if is_named else Backend.COMMAND
    update: dict[str, Operation | Backend] = {"backend": backend}
    if "operation" not in given:
        update["operation"] = _named(document, part, _name_of(part.command))
    return update


def _name_of(command: Sequence[str]) -> str:
    """Returns a name for a command: the script or module among its words, else the program."""
    # `python train.py` and `python other.py` are different benchmarks.
    is_python = False
    for before, word in pairwise(command):
        is_python = is_python or _PYTHON.match(Path(before).name) is not None
        # Other programs have an option -m of their own: OSU's takes sizes.
        if (before == "-m" and is_python) or Path(word).suffix in _OF_SCRIPTS:
            return Path(word).name
    return Path(command[0]).stem


def _named(document: Document, part: BenchmarkPart, name: str) -> Operation:
    if part.name:
        try:
            return Operation(f"own:{part.name}")
        except ValueError as error:
            raise document.error(
                f"{quote_value(part.name)} can't name a benchmark",
                ("benchmark", "name"),
                hint="use letters, digits and . _ -, 58 at most; begin with a letter or digit",
            ) from error
    tidy = _NOT_IN_NAMES.sub("-", name).lstrip("._-")[:_LONGEST_NAME]
    return Operation(f"own:{tidy or 'benchmark'}")


def _check_program(
    document: Document, part: BenchmarkPart, folder: Path, *, uses_scheduler: bool
) -> None:
    program = part.command[0]
    with document.placing("benchmark", "command"):
        found = is_file(folder / program) if "/" in program else shutil.which(program)
    # On a cluster, environment modules may provide it where jobs run.
    if not found and not uses_scheduler:
        raise document.error(
            f"there is no program {quote_value(program)}",
            ("benchmark", "command"),
            hint="commands are started in the campaign file's folder; write a path, or put it "
            "on PATH",
        )


def _check_plain(document: Document, file: CampaignFile) -> None:
    """Refuses keys that only some benchmarks support."""
    workload = file.workload
    command = file.benchmark if file.benchmark and file.benchmark.command else None
    is_command = command is not None
    if workload.ranks < 2 and not is_command:
        raise document.error(
            f"{workload.ranks} is out of range",
            ("workload", "ranks"),
            hint=RANKS_WORDS,
            named="workload.ranks",
        )
    if workload.backend.is_native and not is_command:
        return
    if file.timing.mode == BATCHED:
        what = "a command" if is_command else f"the backend {workload.backend}"
        raise document.error(
            f"{what} has no batched mode",
            ("timing", "mode"),
            hint="remove it",
        )
    if command and file.estimand is Estimand.P95 and command.output != "json-line":
        raise document.error(
            "the command prints no time of each operation, of which p95 is the 95th percentile",
            ("estimand",),
            hint="remove it, or print `times_s` with `output: json-line`",
        )
    if is_command and file.guard_operations:
        raise document.error(
            "a command can't have guard operations", ("guard_operations",), hint="remove them"
        )
    if file.aggressor is not None:
        raise document.error(
            "an aggressor works with the native benchmark only, and this is "
            + ("a command" if is_command else workload.backend),
            ("aggressor",),
            hint="remove it",
        )


def _check_pattern_file(path: Path, kind: str) -> None:
    """Checks that a file is valid Python and mentions the class, without running it.

    Other errors appear when the benchmark imports it.

    Args:
        kind: name of the class; empty for the only one of the file.

    Raises:
        CampaignError: the check fails; with the file and, if known, the line.
    """
    try:
        text = read_file(path)
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise CampaignError(
            f"not valid Python: {error.msg}" + (f": {line[:60]}" if line else ""),
            file=path,
            line=error.lineno,
            hint="fix the benchmark's file first",
        ) from error
    except OSError as error:
        raise CampaignError(f"it can't be read: {error.strerror}", file=path) from error
    except (ValueError, RecursionError, MemoryError):
        return  # Python reports it when the file is imported
    if kind.encode() not in text and b"import *" not in text:
        names = [one.name for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
        near = find_nearest(kind, names)
        there = f"nearest: {near}" if near else f"classes there: {', '.join(names) or 'none'}"
        raise CampaignError(f"there is no class {quote_value(kind)}", file=path, hint=there)
