"""``commtune build``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from commtune import formatting as text
from commtune.app.setup.installation import Build, build_benchmark, build_tuner
from commtune.commands.options import JsonOption, print_json
from commtune.documents.nearest import require_known
from commtune.model import GpuKind


def build_command(
    mpi: Annotated[str, typer.Option(help="which MPI, as for tune")] = "auto",
    gpu: Annotated[str, typer.Option(help="auto, none, cuda or hip")] = "auto",
    arch: Annotated[
        list[str] | None,
        typer.Option(help="GPU architecture to build for, such as 90 or gfx90a; may be repeated"),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="file for the output of CMake and the compilers")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="rebuild, even if it is already built")
    ] = False,
    tuner: Annotated[
        bool, typer.Option("--tuner", help="build NCCL's tuner plugin instead of the benchmark")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Build the benchmark; list its backends, and why others are missing."""
    if tuner:
        library = build_tuner(log, again=again)
        if json_output:
            print_json({"tuner": str(library)})
        else:
            print(_tuner_lines(library))
        return
    require_known("--gpu", gpu, ("auto", *GpuKind))
    found = build_benchmark(mpi, gpu, arch or (), log, again=again)
    if json_output:
        print_json(_plain(found))
    else:
        print("\n".join(_lines(found)))


def _tuner_lines(library: Path) -> str:
    return (
        f"{library}\n\nTo use it, on all ranks:\n"
        f"  export NCCL_TUNER_PLUGIN={shlex.quote(str(library))}\n"
        "  export COMMTUNE_TUNER_FILE=FILE   # of commtune export --format nccl-tuner\n"
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING shows which rules are taken."
    )


def _lines(build: Build) -> Iterator[str]:
    mpi, built = build.mpi, build.built
    yield f"{mpi.flavour} {mpi.version}, {mpi.compiler}"
    yield from _gpu_lines(build)
    yield f"{built.executable}"
    if not built.is_new:
        yield "Nothing was compiled: it is already built. --again rebuilds it."
    rows = [(name, _state(name, build.waived)) for name in build.backends]
    yield f"\n{text.format_table(('backend', 'state'), rows)}"
    if build.log is not None and build.toolchain is not None and build.waived:
        yield f"\nOutput of CMake and the compilers: {build.log}"


def _gpu_lines(build: Build) -> list[str]:
    if (toolchain := build.toolchain) is None:
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


def _plain(build: Build) -> dict[str, Any]:
    built, of_mpi = build.built, ("flavour", "version", "compiler")
    return {
        "mpi": {name: str(getattr(build.mpi, name)) for name in of_mpi},
        "gpu": build.toolchain.plain() if build.toolchain else None,
        "executable": str(built.executable),
        "compiled": built.is_new,
        "log": str(build.log) if build.log else None,
        "backends": [name for name in build.backends if name not in build.waived],
        "waived": dict(build.waived),
    }
