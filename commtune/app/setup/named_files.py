"""Checks that communication libraries can use the files that environment variables name.

Most libraries silently ignore an invalid file, and the program runs as if it were not set.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from commtune.cluster.machine.doctor import Check, Status
from commtune.errors import UserError
from commtune.kernels.library_builds import PLUGIN_VARIABLE, find_plugin_name
from commtune.model.configuration import Changes
from commtune.spaces.preset_choice import is_version_in

_SILENT = "is ignored without a word"


@dataclass(frozen=True)
class _Named:
    """A variable that names a file.

    Attributes:
        fate: the library's reaction to an unusable file, for messages.
        fault: returns what is wrong with a file's text; empty if nothing is.
        switches: variables that make the library read the file, with their value.
        forcing: pattern of variables that force an algorithm, and override the file.
        library, forced_in: the library, and its versions in which they do.
    """

    variable: str
    fate: str
    fault: Callable[[str], str] | None = None
    switches: Mapping[str, str] = field(default_factory=dict)
    forcing: str = ""
    library: str = ""
    forced_in: str = ""


def _find_open_mpi_fault(text: str) -> str:
    """Checks the counts in the classic format, or JSON, the format of Open MPI 6."""
    if text.lstrip().startswith("{"):
        return _find_json_fault(text)
    words = iter(re.sub(r"#.*", "", text).split())
    try:
        first = next(words)
        columns = 5 if (is_versioned := first.startswith("rule-file-version-")) else 4
        for _ in range(int(next(words) if is_versioned else first)):
            next(words)  # the collective
            for _ in range(int(next(words))):
                next(words)  # ranks
                for _ in range(int(next(words)) * columns):
                    int(next(words))
    except StopIteration:
        return "is cut off"
    except ValueError as error:
        return f"has a word where a number belongs ({error})"
    return ""


def _find_json_fault(text: str, beginning: str = "") -> str:
    """Checks JSON with comment lines (``//``), whose keys all start with ``beginning``."""
    try:
        tree = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))
    except ValueError as error:
        return f"is cut off or no JSON ({error})"
    if not isinstance(tree, dict) or not tree:
        return "has no rules"
    wrong = ", ".join(key for key in tree if not key.startswith(beginning))
    return wrong and f"has keys that begin otherwise than {beginning}: {wrong}"


def _find_row_fault(text: str) -> str:
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    told = re.search(r"^# rules: (\d+)$", text, flags=re.M)
    if not rows:
        return "has no rows"
    if (told and len(rows) != int(told[1])) or any(row.count(",") < 7 for row in rows):
        return "is cut off"
    return ""


_MPICH = "ends the program in MPI_Init"
_NAMED = (
    _Named(
        "OMPI_MCA_coll_tuned_dynamic_rules_filename",
        _SILENT,
        _find_open_mpi_fault,
        {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
        r"OMPI_MCA_coll_tuned_\w+_algorithm",
        "openmpi",
        ">=5",
    ),
    *(
        _Named(f"MPIR_CVAR_{of}COLL_SELECTION_TUNING_JSON_FILE", _MPICH, _find_json_fault)
        for of in ("", "CH4_", "CH4_POSIX_")
    ),
    _Named(
        "I_MPI_TUNING",
        _SILENT,
        partial(_find_json_fault, beginning="coll="),
        forcing=r"I_MPI_ADJUST_\w+",
    ),
    _Named("I_MPI_TUNING_BIN", _SILENT),
    _Named("COMMTUNE_TUNER_FILE", "ends NCCL's start", _find_row_fault),
    _Named("NCCL_TUNER_CONFIG_FILE", "is left out with a line in NCCL's log", _find_row_fault),
    _Named("NCCL_CONF_FILE", _SILENT),
)
#: What Open MPI reads as true. It takes TRUE, on and enable for false.
_TRUE = frozenset({"1", "true", "yes", "t", "y", "enabled"})


def check_named_files(
    environment: Mapping[str, str], versions: Mapping[str, str]
) -> Iterator[Check]:
    """Yields a warning for each file that the environment names, but a library would not use.

    Args:
        versions: versions of installed libraries, by their names in the catalogue.
    """
    for named in _NAMED:
        if value := environment.get(named.variable):
            yield from _check(named, value, environment, versions)
    yield from _check_plugin(environment)


def _check(
    named: _Named, value: str, environment: Mapping[str, str], versions: Mapping[str, str]
) -> Iterator[Check]:
    file, undo = Path(value), Changes({named.variable: None})
    what, mend = _find_fault(named, file, versions)
    if what:
        yield _warn(f"{named.variable}={value} {what}; such a file {named.fate}", mend or undo)
        return
    if not file.is_absolute():
        right = Changes({named.variable: str(file.absolute())})
        yield _warn(f"{named.variable}={value} is read from the folder of each process", right)
    for name, wanted in named.switches.items():
        if environment.get(name) not in _TRUE:
            now = f"is {environment[name]}" if name in environment else "is not set"
            keep = Changes({named.variable: value, name: wanted})
            yield _warn(f"{named.variable}={value} is not read: {name} {now}", keep)
    forced = sorted(name for name in environment if re.fullmatch(named.forcing, name))
    here = versions.get(named.library)
    if forced and (here is None or is_version_in(here, named.forced_in)):
        names = ", ".join(forced)
        what = f"{named.variable}={value} is not asked: {names} chooses for all sizes"
        yield _warn(what, Changes(dict.fromkeys(forced)))


def _find_fault(named: _Named, file: Path, versions: Mapping[str, str]) -> tuple[str, str]:
    """Returns why a file can't be used, and a command that fixes it, if known."""
    try:
        text = file.read_bytes().decode(errors="replace")
    except PermissionError:
        return "can't be read by you", shlex.join(["chmod", "u+r", str(file)])
    except OSError as error:
        return f"can't be read: {error.strerror}", ""
    if not text.strip():
        return "is empty", ""
    if named.fault is None:
        return "", ""
    from commtune.export.rules.rule_file import FIRST_LINE  # slow; few environments name files

    own = FIRST_LINE.match(text)
    if fault := named.fault(text):
        again = ["commtune", "export", own[1], "--format", own[2], "-o", str(file)] if own else []
        return fault, shlex.join(again)
    if "\r\n" in text:
        return "has line ends of Windows", shlex.join(["sed", "-i", r"s/\r$//", str(file)])
    return (_find_version_fault(own[2], text, versions) if own else ""), ""


def _find_version_fault(name: str, text: str, versions: Mapping[str, str]) -> str:
    from commtune.export.rules import RULE_FORMATS  # as above

    format = RULE_FORMATS.get(name)
    here = versions.get(format.library) if format else None
    measured = re.search(r"; measured with (\S+)$", text, flags=re.M)
    if format is None or here is None or measured is None:
        return ""
    if format.release_bound and here != measured[1]:
        return f"is for {format.library} {measured[1]} only; here is {here}"
    if not is_version_in(here, format.versions):
        return f"is for {format.library} {format.versions}; here is {here}"
    return ""


def _check_plugin(environment: Mapping[str, str]) -> Iterator[Check]:
    """Checks that NCCL finds its plugin, without which it silently ignores the rules."""
    named = environment.get(PLUGIN_VARIABLE)
    build = "commtune build --tuner"  # prints what to export
    if named:
        try:
            find_plugin_name(named, environment)
        except UserError as error:
            yield _warn(f"{error.message}; NCCL goes on without it", build)
    elif "COMMTUNE_TUNER_FILE" in environment:
        yield _warn(f"COMMTUNE_TUNER_FILE is read by no one: {PLUGIN_VARIABLE} is not set", build)


def _warn(what: str, mend: str | Changes) -> Check:
    return Check("files", Status.WARNING, what, mend)
