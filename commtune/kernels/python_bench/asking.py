"""``python -m commtune.kernels.twin.asking``: what an MPI loads, asked in one process of it.

Starts MPI without a launcher, and prints the versions of the libraries that are loaded then. It
needs neither mpi4py nor a compiler.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from commtune.kernels.python_bench.libraries import communication_libraries, library_versions

#: What is printed begins with it: MPI libraries print things of their own.
SIGN = "commtune-versions: "
_PATTERNS = ("libmpi.so*", "libmpich.so*", "libmpi_cray.so*", "libmpi_gnu*.so*")


def main(libmpi: str) -> int:
    """Asks the first MPI library that can be loaded.

    Args:
        libmpi: libraries and folders of them, separated by ':'.
    """
    for path in _candidates(libmpi):
        try:
            # Open MPI's components look for its symbols among everybody's.
            library = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
        except OSError:
            continue
        if library.MPI_Init(None, None) != 0:
            return 1
        versions = library_versions(communication_libraries())
        print(f"\n{SIGN}{json.dumps(versions)}", flush=True)
        library.MPI_Finalize()
        return 0
    return 1


def _candidates(libmpi: str) -> Iterator[str]:
    for named in libmpi.split(os.pathsep):
        folder = Path(named)
        if not folder.is_absolute() or not folder.is_dir():
            yield named
            continue
        for pattern in _PATTERNS:
            yield from map(str, sorted(folder.glob(pattern)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
