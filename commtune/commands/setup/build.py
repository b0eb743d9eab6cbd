"""``commtune build``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from commtune import formatting as text
from commtune.commands.options import JsonOption
from commtune.documents.nearest import quote_value, suggest
from commtune.errors import UserError
from commtune.kernels.build import BuiltBenchmark
from commtune.kernels.toolchains import Toolchain
from commtune.model import GpuKind, MpiInstallation
from commtune.wiring import benchmark_setup, gpu_toolchains

_GPUS = ("auto", *GpuKind)


@dataclass(frozen=True)
class _Answer:
    """What is told of a build: all backends, and why some are waived."""

    mpi: MpiInstallation
    toolchain: Toolchain | None
    built: BuiltBenchmark
    backends: Sequence[str]
    waived: Mapping[str, str]

    @property
    def log(self) -> Path | None:
        """Where what the compilers said is kept."""
        return self.built.log if self.built.log.is_file() else None


def build_command(
    mpi: Annotated[str, typer.Option(help="which MPI, as for tune")] = "auto",
    gpu: Annotated[str, typer.Option(help="auto, none, cuda or hip")] = "auto",
    arch: Annotated[
        list[str] | None,
        typer.Option(help="architecture of GPUs to build for, such as 90 or gfx90a; repeatable"),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="file for what CMake and compilers say")] = None,
    again: Annotated[bool, typer.Option("--again", help="build, even if it was before")] = False,
    json_output: JsonOption = False,
) -> None:
    """Build the benchmark; say which backends it has, and why others are missing."""
    if gpu not in _GPUS:
        raise UserError(f"--gpu: {quote_value(gpu)} is not known here", hint=suggest(gpu, _GPUS))
    if arch and gpu == GpuKind.NONE:
        raise UserError("--arch is for GPUs, and --gpu none asks for none", hint="leave one out")
    found = benchmark_setup.find_named_mpi(mpi)
    toolchain, why = gpu_toolchains.find_user_toolchain(gpu, tuple(arch or ()))
    built, backends = benchmark_setup.build_for(found, toolchain, log, again=again)
    waived = gpu_toolchains.waived_backends(toolchain, why, backends)
    answer = _Answer(found, toolchain, built, tuple(backends), waived)
    if json_output:
        print(json.dumps(_plain(answer), indent=2))
    else:
        print("\n".join(_lines(answer)))


def _lines(answer: _Answer) -> Iterator[str]:
    mpi, built = answer.mpi, answer.built
    yield f"{mpi.flavour} {mpi.version}, {mpi.compiler}"
    yield from _gpu_lines(answer.toolchain)
    yield f"{built.executable}"
    if not built.is_new:
        yield "Nothing was compiled: it was built before. --again builds it anew."
    rows = [(name, _state(name, answer.waived)) for name in answer.backends]
    yield f"\n{text.format_table(('backend', 'state'), rows)}"
    if answer.log is not None and answer.toolchain is not None and answer.waived:
        yield f"\nWhat CMake and the compilers said: {answer.log}"


def _gpu_lines(toolchain: Toolchain | None) -> list[str]:
    if toolchain is None:
        return []
    kind, xccl = str(toolchain.kind).upper(), toolchain.xccl
    lines = [
        f"{kind} {toolchain.version}, {toolchain.compiler}, "
        f"for {', '.join(toolchain.architectures)}"
    ]
    return [*lines, f"{xccl.name} {xccl.version}, {xccl.library}"] if xccl else lines


def _state(backend: str, waived: Mapping[str, str]) -> str:
    """A reason is told once, of the first that has it."""
    if backend not in waived:
        return "built"
    first = next(name for name, reason in waived.items() if reason == waived[backend])
    return f"waived: {waived[backend]}" if first == backend else f"waived, as {first}"


def _plain(answer: _Answer) -> dict[str, Any]:
    mpi, built = answer.mpi, answer.built
    return {
        "mpi": {
            "flavour": str(mpi.flavour),
            "version": mpi.version,
            "compiler": str(mpi.compiler),
        },
        "gpu": answer.toolchain.plain() if answer.toolchain else None,
        "executable": str(built.executable),
        "compiled": built.is_new,
        "log": str(answer.log) if answer.log else None,
        "backends": [name for name in answer.backends if name not in answer.waived],
        "waived": dict(answer.waived),
    }
