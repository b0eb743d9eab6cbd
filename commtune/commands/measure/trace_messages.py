"""``commtune trace-messages``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from commtune.commands.options import JsonOption, print_json


def trace_messages_command(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    mpi: Annotated[str, typer.Option(help="the program's MPI, as for tune")] = "auto",
    nccl: Annotated[bool, typer.Option("--nccl", help="those of NCCL or RCCL, not MPI's")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="write a campaign that tunes them: FILE.yaml"),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Count a program's collectives by size: trace-messages -- mpiexec -n 2 ./program."""
    from commtune.app.measure import message_campaign as messages  # help does without it

    if output is not None:
        messages.check_new_files(output)
    if nccl:
        found = messages.count_nccl_messages(command_line)
    else:
        found = messages.count_messages(command_line, mpi)
    print(found.output, end="", file=sys.stderr)
    if output is not None:
        files: tuple[Path, ...]
        if nccl:
            files = (messages.write_nccl_campaign(output, found, command_line),)
        else:
            files = messages.write_campaign(output, found, command_line, mpi)
        print("wrote", *files, file=sys.stderr)
    if json_output:
        print_json(
            [
                {"operation": operation, "ranks": ranks, "messages": dict(sorted(calls.items()))}
                for (operation, ranks), calls in found.calls.items()
            ]
        )
        return
    for (operation, ranks), calls in found.calls.items():
        print(f"# {operation}, {ranks} ranks: {sum(calls.values()):,} calls\n{_key(calls)}")


def _key(calls: Mapping[int, int]) -> str:
    """As the campaign file has it; sizes in bytes."""
    return "messages: {" + ", ".join(f"{size}: {n}" for size, n in sorted(calls.items())) + "}"
