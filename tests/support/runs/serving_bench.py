"""A benchmark that can share launches where there is no GPU: with the backend of its own tests."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from commtune.model import MpiInstallation

_ROOT = Path(__file__).parents[3]
_KERNELS = _ROOT / "commtune" / "kernels"


def build_serving_bench(mpi: MpiInstallation) -> Path:
    """The executable; its ``xccl`` sends messages by the ranks' transport, and times mean nothing.

    Built once for each MPI; CMake sees by itself what has changed since.
    """
    key = hashlib.sha256(str(mpi.prefix).encode()).hexdigest()[:8]
    folder = _ROOT / "build" / f"serving-bench-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    tools = Path(sys.executable).parent
    environment = {**os.environ, **mpi.environment}
    settings = [
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
        "-DCOMMTUNE_BUILD_TESTS=ON",
        # As its times mean nothing, what is compiled soonest.
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
    ]
    compiler = f"-DCMAKE_CXX_COMPILER={mpi.compiler}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in (
            ["-S", str(_KERNELS), "-B", str(folder), compiler, *settings],
            ["--build", str(folder), "--target", "commtune-bench"],
        ):
            subprocess.run(
                [tools / "cmake", *words], env=environment, check=True, stdout=subprocess.DEVNULL
            )
    return folder / "commtune-bench"
