"""GPUs of this machine: which there are, and which of them are ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commtune import process
from commtune.errors import MissingComponent, UserError

_LIMIT_S = 20.0
#: What each vendor's runtime looks at, to see only some of the GPUs.
_VISIBLE = {
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}


@dataclass(frozen=True)
class Gpu:
    """A GPU. ``model`` as the driver names it: ``NVIDIA H200``, or ``gfx90a`` for AMD."""

    vendor: str
    model: str
    driver: str


def ask_nvidia() -> list[Gpu]:
    """What nvidia-smi lists, for containers that don't show the driver's files; else nothing."""
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    query = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = process.run_process(
        query, environment=os.environ, timeout_s=_LIMIT_S, whole_output=True
    )
    return _parse_nvidia_smi(done.output) if done.ok else []


def _parse_nvidia_smi(text: str) -> list[Gpu]:
    """Reads ``nvidia-smi --query-gpu=name,driver_version --format=csv,noheader``."""
    pairs = (line.rpartition(",") for line in text.splitlines())
    return [Gpu("nvidia", n.strip(), d.strip()) for n, comma, d in pairs if comma]


def _count_visible(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> int:
    """How many of these GPUs a program sees that is started in an environment."""
    count = len(gpus)
    for name in _VISIBLE[gpus[0].vendor] if gpus else ():
        if name in environment:
            count = min(count, _named(environment[name]))
    return count


def _named(listed: str) -> int:
    """How many devices a list names; it ends at the first that is none (-1, NoDevFiles)."""
    words = [word.strip() for word in listed.split(",")]
    good = [word.isdigit() or word.startswith(("GPU-", "MIG-")) for word in words]
    return good.index(False) if False in good else len(good)


def require_gpus(gpus: Sequence[Gpu], environment: Mapping[str, str], ranks: int) -> None:
    """Makes sure that each rank has a GPU of its own.

    Raises:
        MissingComponent: there is none.
        UserError: there are fewer than ranks.
    """
    if not gpus:
        raise MissingComponent(
            "no GPU is found on this machine",
            hint="look at 'nvidia-smi' or 'rocminfo'; without GPUs, use the backend mpi-host",
        )
    seen = _count_visible(gpus, environment)
    if ranks > seen:
        of = f" of {len(gpus)}" if seen < len(gpus) else ""
        narrowed = [n for n in _VISIBLE[gpus[0].vendor] if n in environment] if of else []
        raise UserError(
            f"{ranks} ranks need {ranks} GPUs, one each, and {seen}{of} can be used here"
            + "".join(f" ({name}={environment[name]})" for name in narrowed),
            hint=f"ask for at most {seen} ranks" if seen > 1 else "look at 'commtune doctor'",
        )
