"""Counts the collectives of a program, and writes a campaign with the same proportions."""

from __future__ import annotations

import keyword
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from commtune import process
from commtune.campaign.campaign_name import check_campaign_name
from commtune.cluster.tracing.nccl_calls import count_calls, logging_calls
from commtune.documents.files import write_file
from commtune.errors import UserError
from commtune.export.document import one_line
from commtune.formatting import format_count, format_ranks
from commtune.kernels.build_steps import scratch_folder
from commtune.kernels.library_builds import COUNTS_FOLDER, build_message_counter
from commtune.kernels.python_bench.layout import CALLS
from commtune.model import Backend, Operation
from commtune.paths import exists
from commtune.wiring import benchmark_setup, space_fitting
from commtune.wiring.user_folders import cache_folder

#: The time limit of a program, seconds: a week.
_LIMIT_S = 7 * 24 * 3600.0


@dataclass(frozen=True)
class MessageCounts:
    """The collectives of a program.

    Attributes:
        calls: number of calls by size (bytes), by operation and ranks of the communicator.
    """

    output: str
    calls: Mapping[tuple[str, int], Mapping[int, int]]


def count_messages(command: Sequence[str], mpi: str) -> MessageCounts:
    """Runs a program to its end, and counts its MPI collectives.

    Args:
        command: such as ``mpiexec -n 4 ./solver``; the launcher is that of the MPI.

    Raises:
        UserError: the program fails, or calls no collective of that MPI.
        BuildFailed: the preloaded library that counts doesn't compile.
    """
    found = benchmark_setup.find_named_mpi(mpi)
    cache = cache_folder()
    library = build_message_counter(found, cache)
    preloaded = " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    # Not in /tmp, because only the user's cache may be shared by all nodes.
    with scratch_folder(cache) as folder:
        path = [str(found.launcher.parent), os.environ.get("PATH", os.defpath)]
        own = {
            **found.environment,
            "PATH": os.pathsep.join(path),
            "LD_PRELOAD": preloaded,
            COUNTS_FOLDER: str(folder),
        }
        output = _run_to_its_end(command, own)
        calls = _sum_up(folder)
    if not calls:
        raise UserError(
            f"no collective of {found.flavour} {found.version} was counted: the program called "
            "none, did not end MPI, or uses another MPI",
            hint="name the program's MPI: --mpi path, wheel:NAME or PREFIX",
        )
    return MessageCounts(output, calls)


def count_nccl_messages(command: Sequence[str]) -> MessageCounts:
    """Runs a program to its end, and counts its collectives of NCCL or RCCL from the logs.

    Raises:
        UserError: the program fails, or calls none.
    """
    with scratch_folder(cache_folder()) as folder:
        output = _run_to_its_end(command, logging_calls(folder))
        calls = count_calls(_lines_of(folder))
    if not calls:
        raise UserError(
            "no collective of NCCL was counted: the program called none, or sets NCCL_DEBUG itself"
        )
    return MessageCounts(output, calls)


def _run_to_its_end(command: Sequence[str], own: Mapping[str, str]) -> str:
    """Runs a program with additional variables ``own``, and returns its output."""
    done = process.run_process(
        command, environment={**os.environ, **own}, timeout_s=_LIMIT_S, whole_output=True
    )
    if not done.ok:
        how = f"by signal {done.signal}" if done.signal else f"with exit code {done.exit_code}"
        raise UserError(f"{command[0]} ended {how}:\n{done.output.strip()}".rstrip(":\n"))
    return done.output


def _lines_of(folder: Path) -> Iterator[str]:
    for file in sorted(folder.iterdir()):
        with file.open(errors="replace") as opened:
            yield from opened


def _sum_up(folder: Path) -> dict[tuple[str, int], Counter[int]]:
    calls: dict[tuple[str, int], Counter[int]] = {}
    for file in sorted(folder.iterdir()):
        for line in file.read_text().splitlines():
            operation, ranks, size, number = line.split()
            calls.setdefault((operation, int(ranks)), Counter())[int(size)] += int(number)
    return dict(sorted(calls.items()))


#: The most sizes of a campaign; of more, similar ones are merged.
_MOST_SIZES = 16
#: An element of the benchmark's messages, bytes.
_ELEMENT = 4
#: The most calls of an operation in one execution of the pattern.
_MOST_CALLS = 100
_PATTERN = '''\
"""What a program called on {where}, as commtune trace-messages counted it:

    {command}

Calls stand in proportion. One that is rarer than 1 in 100 counts as 1 in 100.
"""

import math

from commtune import Pattern

#: By size (bytes): each operation, and how often it is called in one execution.
CALLS = {{
{calls}
}}


class {name}(Pattern):
    """All calls of a size, one after the other; between two sizes, those of the nearer one."""

    def define(self) -> None:
        nearest = min(CALLS, key=lambda size: abs(math.log(size / self.size)))
        for operation, times in CALLS[nearest].items():
            self.call(operation, self.size, times)
'''
_REMARKS = """\
# One execution of a size makes all of its calls ({pattern}). Guard operations are what else a
# program may do: measured under what is recommended, against the default.
"""
_NCCL_REMARKS = """\
# Tuned is the operation that moves most bytes; the others are guards. The space for AMD's GPUs is
# rccl. On several nodes add 'nodes' to the workload, and how jobs are started.
"""


def write_campaign(
    file: Path, counts: MessageCounts, command: Sequence[str], mpi: str
) -> tuple[Path, Path]:
    """Writes a campaign file, and beside it the pattern that the campaign measures.

    It has only the calls on communicators with the most ranks, as all runs have as many ranks.

    Args:
        mpi: the MPI, as the campaign file is to name it.

    Raises:
        UserError: as for ``check_new_files``; or a path is wrong.
        EnvironmentFault: the file can't be written.
    """
    pattern = check_new_files(file)
    ranks, calls = _of_most_ranks(counts)
    by_size = _group_sizes(calls)
    name = _class_name(file.stem)
    write_file(pattern, _pattern_text(name, by_size, format_ranks(ranks, 1), _show(command)))
    found = benchmark_setup.find_named_mpi(mpi)
    operation = Operation(f"own:{name}")
    campaign = {
        "space": space_fitting.preset_for(found, operation, Backend.PYTHON_HOST),
        "mpi": mpi,
        "benchmark": {"python": f"{pattern.name}:{name}"},
        "workload": {"ranks": ranks, "sizes": list(by_size)},
        "messages": {size: _executions(of_size) for size, of_size in by_size.items()},
        "guard_operations": _guards(counts),
    }
    _write(file, counts, command, _REMARKS.format(pattern=pattern.name), campaign)
    return file, pattern


def write_nccl_campaign(file: Path, counts: MessageCounts, command: Sequence[str]) -> Path:
    """Writes a campaign of the operation that moves most bytes, with the others as guards.

    Operations are measured separately: the benchmark has no mix of NCCL's operations.

    Raises:
        UserError: as for ``check_new_files``; or its path is wrong.
        EnvironmentFault: the file can't be written.
    """
    check_new_files(file)
    ranks, own = _of_most_ranks(counts)
    main = max(own, key=lambda operation: sum(size * n for size, n in own[operation].items()))
    sizes = {size: calls.total() for size, calls in _group_sizes({main: own[main]}).items()}
    workload = {"operation": main, "backend": "xccl", "ranks": ranks, "sizes": list(sizes)}
    guards = [operation for operation in own if operation != main]
    campaign = {
        "space": "nccl",
        "workload": workload,
        "messages": sizes,
        "guard_operations": guards,
    }
    _write(file, counts, command, _NCCL_REMARKS, campaign)
    return file


def _of_most_ranks(counts: MessageCounts) -> tuple[int, dict[str, Mapping[int, int]]]:
    """Returns the most ranks of a communicator, and the calls on those with as many."""
    most = max(ranks for _, ranks in counts.calls)
    return most, {op: calls for (op, ranks), calls in counts.calls.items() if ranks == most}


def _write(
    file: Path,
    counts: MessageCounts,
    command: Sequence[str],
    remarks: str,
    campaign: Mapping[str, Any],
) -> None:
    head = (
        f"# What a program calls, as commtune trace-messages counted it:\n#   {_show(command)}\n"
    )
    left_out = "".join(_left_out(counts, campaign["workload"]["ranks"]))
    whole = {"campaign": 1, "name": file.stem, **campaign}
    body = yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=99)
    write_file(file, f"{head}{remarks}{left_out}{body}")


def _show(command: Sequence[str]) -> str:
    return one_line(shlex.join(command))


def check_new_files(file: Path) -> Path:
    """Returns the pattern's file for a new campaign file.

    Raises:
        UserError: one of both exists already, or the name is not valid for a campaign.
    """
    pattern = file.with_suffix(".py")
    if file.suffix not in (".yaml", ".yml"):
        raise UserError(f"{file} is to be a campaign file", hint="end its name in .yaml")
    for path in (file, pattern):
        if exists(path):
            raise UserError(f"{path} is there already", hint="name another file: --output FILE")
    check_campaign_name(file.stem)
    return pattern


def _class_name(stem: str) -> str:
    name = "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", stem))
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"Of{name}"


def _group_sizes(calls: Mapping[str, Mapping[int, int]]) -> dict[int, Counter[str]]:
    """Returns the calls of each operation by size (bytes), of many sizes by powers of two."""
    sizes = {size for of_one in calls.values() for size in of_one}
    is_many = len(sizes) > _MOST_SIZES
    found: dict[int, Counter[str]] = {}
    for operation, of_one in calls.items():
        for size, number in of_one.items():
            least = max(_ELEMENT, size)
            taken = 2 ** round(math.log2(least)) if is_many else least
            found.setdefault(taken, Counter())[operation] += number
    return dict(sorted(found.items()))


def _times(calls: Counter[str]) -> dict[str, int]:
    """Returns the calls in one execution of the pattern, in the program's proportions."""
    divisor = max(math.gcd(*calls.values()), max(calls.values()) / _MOST_CALLS)
    return {operation: max(1, round(n / divisor)) for operation, n in sorted(calls.items())}


def _executions(calls: Counter[str]) -> int:
    """Returns the number of executions of the pattern for the program's number of calls."""
    return max(1, round(calls.total() / sum(_times(calls).values())))


def _guards(counts: MessageCounts) -> list[str]:
    """Returns guard operations: ping-pong, and a collective that the program doesn't call."""
    called = {operation for operation, _ in counts.calls}
    return ["ping-pong", *[one for one in CALLS if one not in called][:1]]


def _pattern_text(name: str, by_size: Mapping[int, Counter[str]], where: str, command: str) -> str:
    lines = []
    for size, calls in by_size.items():
        words = ", ".join(f'"{operation}": {n}' for operation, n in _times(calls).items())
        lines.append(f"    {size}: {{{words}}},")
    return _PATTERN.format(
        where=where,
        command=command.replace("\\", "\\\\").replace('"""', '""\\"'),
        calls="\n".join(lines),
        name=name,
    )


def _left_out(counts: MessageCounts, ranks: int) -> list[str]:
    return [
        f"# Not in it: {operation}, {format_count(n, 'rank')}: {sum(calls.values()):,} calls.\n"
        for (operation, n), calls in counts.calls.items()
        if n != ranks
    ]
