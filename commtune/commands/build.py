"""``commtune build``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commtune import wiring
from commtune.commands import text
from commtune.errors import UserError
from commtune.kernels.toolchains import Toolchain
from commtune.model import GpuKind, MpiInstallation
from commtune.nearest import quoted, suggestion
from commtune.wiring import gpus

_GPUS = ("auto", *GpuKind)


def run(
    mpi: str, gpu: str, architectures: Sequence[str], log: Path | None, *, json_output: bool
) -> None:
    """Builds the benchmark, unless that was done before, and prints what is in it."""
    if gpu not in _GPUS:
        raise UserError(f"--gpu: {quoted(gpu)} is not known here", hint=suggestion(gpu, _GPUS))
    if architectures and gpu == GpuKind.NONE:
        raise UserError("--arch is for GPUs, and --gpu none asks for none", hint="leave one out")
    found = wiring.find(mpi)
    toolchain, why = gpus.toolchain_of(gpu, architectures)
    executable, built = wiring.build_for(found, toolchain, log)
    waived = gpus.waived(toolchain, why, built)
    if json_output:
        print(json.dumps(_plain(found, toolchain, executable, built, waived), indent=2))
        return
    print(f"{found.flavour} {found.version}, {found.compiler}")
    for line in _gpu_lines(toolchain):
        print(line)
    print(f"{executable}\n")
    rows = [(name, _state(name, waived)) for name in built]
    print(text.columns(("backend", "state"), rows))


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
    return f"waived: {waived[backend]}" if backend in waived else "built"


def _plain(
    mpi: MpiInstallation,
    toolchain: Toolchain | None,
    executable: Path,
    built: Mapping[str, str],
    waived: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "mpi": {
            "flavour": str(mpi.flavour),
            "version": mpi.version,
            "compiler": str(mpi.compiler),
        },
        "gpu": toolchain.plain() if toolchain else None,
        "executable": str(executable),
        "backends": [name for name in built if name not in waived],
        "waived": dict(waived),
    }
