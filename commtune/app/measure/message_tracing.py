"""How many messages of which operation and size a program sends, counted while it runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commtune import process
from commtune.cluster.tracing.nccl_calls import count_calls, logging_calls
from commtune.errors import UserError
from commtune.kernels.build_steps import scratch_folder
from commtune.kernels.message_counter import COUNTS_FOLDER, build_message_counter
from commtune.wiring import benchmark_setup
from commtune.wiring.user_folders import Folders

#: Seconds that a program may take: a week.
_LIMIT_S = 7 * 24 * 3600.0


@dataclass(frozen=True)
class MessageCounts:
    """What a program sent.

    Attributes:
        output: what it printed.
        calls: how many calls of each size (bytes), by operation and ranks of the communicator.
    """

    output: str
    calls: Mapping[tuple[str, int], Mapping[int, int]]


def count_messages(command: Sequence[str], mpi: str) -> MessageCounts:
    """Runs a program to its end, and counts its MPI collectives.

    Args:
        command: such as ``mpiexec -n 4 ./solver``; the launcher is that of the MPI.

    Raises:
        UserError: the program fails, or calls no collective of that MPI.
        BuildFailed: the library that counts doesn't compile.
    """
    found = benchmark_setup.find_named_mpi(mpi)
    cache = Folders.of_user().cache
    library = build_message_counter(found, cache)
    preloaded = " ".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    # Not in /tmp: the user's cache is the same folder on all nodes, where homes are shared.
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
    """Runs a program to its end, and counts its collectives of NCCL or RCCL, by their logs.

    Raises:
        UserError: the program fails, or calls none.
    """
    with scratch_folder(Folders.of_user().cache) as folder:
        output = _run_to_its_end(command, logging_calls(folder))
        calls = count_calls(_lines_of(folder))
    if not calls:
        raise UserError(
            "no collective of NCCL was counted: the program called none, or sets NCCL_DEBUG itself"
        )
    return MessageCounts(output, calls)


def _run_to_its_end(command: Sequence[str], own: Mapping[str, str]) -> str:
    """What the program prints, under variables of its own beside ours."""
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
