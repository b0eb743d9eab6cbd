"""The communication libraries that this process has loaded; as src/records/libraries.cpp."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from commtune.paths import is_folder

#: Beginnings and parts of file names.
_STEMS = (
    "libmpi", "libpmpi", "libopen-pal", "libopen-rte", "libpmi", "libprrte", "libuc", "libfabric",
    "libefa", "libibverbs", "librdma", "libpsm", "libcxi", "libxpmem", "libhcoll", "libsharp",
    "libmpcp", "libnuma", "libhwloc",
)  # fmt: skip
_PARTS = ("-fi.so", "libnccl", "librccl", "libcuda")
#: Libraries that tell their version: the catalogue's name of each, by the stem of its file, and
#: the function that says it. Behind the stem is the suffix, or what a wheel adds to a name.
_ASKED = {
    "libfabric": ("libfabric", "fi_version"),
    "libucc": ("ucc", "ucc_get_version_string"),
    "libucp": ("ucx", "ucp_get_version_string"),
}
_FILE = re.compile(rf"({'|'.join(_ASKED)})[.-]")


def communication_libraries() -> list[str]:
    """Paths of the communication libraries that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(None, 5)[5] for line in lines if "/" in line)
    return [path for path in paths if _communicates(path.rpartition("/")[2])]


def library_versions(paths: Sequence[str]) -> dict[str, str]:
    """What those of the loaded libraries that can tell their version say of it, by their names."""
    found: dict[str, set[str]] = {}
    for path in paths:
        if match := _FILE.match(path.rpartition("/")[2]):
            name, function = _ASKED[match[1]]
            if version := _version(path, function):
                found.setdefault(name, set()).add(version)
    # Of one that is loaded twice, in different versions, nobody knows which reads a variable.
    return {name: min(said) for name, said in sorted(found.items()) if len(said) == 1}


def _communicates(name: str) -> bool:
    return name.startswith(_STEMS) or any(part in name for part in _PARTS)


def _version(path: str, function: str) -> str:
    """The version of a library; empty where it isn't loaded, or doesn't say."""
    try:
        ask = getattr(ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY), function)
    except (OSError, AttributeError):
        return ""
    if function == "fi_version":
        ask.restype = ctypes.c_uint32
        packed = int(ask())
        return f"{packed >> 16}.{packed & 0xFFFF}"
    ask.restype = ctypes.c_char_p
    said: bytes | None = ask()
    return said.decode("ascii", "replace") if said else ""


# ``python -m commtune.kernels.python_bench.libraries LIBMPI`` starts an MPI without a launcher,
# and prints the versions of what is loaded then. It needs neither mpi4py nor a compiler.

#: What is printed begins with it: MPI libraries print things of their own.
VERSIONS_SIGN = "commtune-versions: "
_PATTERNS = ("libmpi.so*", "libmpich.so*", "libmpi_cray.so*", "libmpi_gnu*.so*")


def _main(libmpi: str) -> int:
    """Asks the first MPI library that can be loaded, of libraries and folders separated by ':'."""
    for path in _candidates(libmpi):
        try:
            # Open MPI's components look for its symbols among everybody's.
            library = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_GLOBAL)
        except OSError:
            continue
        if library.MPI_Init(None, None) != 0:
            return 1
        versions = library_versions(communication_libraries())
        print(f"\n{VERSIONS_SIGN}{json.dumps(versions)}", flush=True)
        library.MPI_Finalize()
        return 0
    return 1


def _candidates(libmpi: str) -> Iterator[str]:
    for named in libmpi.split(os.pathsep):
        folder = Path(named)
        if not folder.is_absolute() or not is_folder(folder):
            yield named
            continue
        for pattern in _PATTERNS:
            yield from map(str, sorted(folder.glob(pattern)))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
