"""Builds the library that counts a program's messages, with a cache."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from commtune.kernels.build_steps import (
    BuildLog,
    BuildSteps,
    digest_of,
    require_private,
    scratch_folder,
)
from commtune.model import MpiInstallation, content_key
from commtune.paths import is_file
from commtune.private_files import make_private_folder

#: The environment variable with the folder to which each process writes its counts.
COUNTS_FOLDER = "COMMTUNE_MESSAGES"
_SOURCES = Path(__file__).parent / "message_counts"
_LIBRARY = "libcommtune-messages.so"


def build_message_counter(mpi: MpiInstallation, cache: Path) -> Path:
    """Returns the library for an MPI; builds it if the cache doesn't have it.

    Raises:
        BuildFailed: it doesn't compile; with the end of the compiler's output.
        EnvironmentFault: the cache can't be written, or is full.
    """
    sources = sorted(_SOURCES.glob("*.cpp"))
    machine = [platform.machine(), *platform.libc_ver()]
    what = [digest_of(_SOURCES, sources), str(mpi.compiler), mpi.version, *machine]
    library = cache / f"messages-{content_key({'built of': what})}" / _LIBRARY
    if is_file(library):
        require_private(library, "the counter of messages")
        return library
    with scratch_folder(cache) as scratch:
        environment = {**os.environ, **mpi.environment}
        steps = BuildSteps(
            scratch, environment, BuildLog(), what="the counter of messages", words="compiling"
        )
        options = ["-std=c++17", "-O2", "-fPIC", "-shared", *map(str, sources)]
        # By its rpath, the library finds MPI for programs that load MPI later, such as Python.
        rpath = f"-Wl,-rpath,{mpi.prefix / 'lib'}"
        steps.run([str(mpi.compiler), *options, "-o", str(scratch / _LIBRARY), rpath])
        make_private_folder(library.parent)
        (scratch / _LIBRARY).replace(library)
    return library
