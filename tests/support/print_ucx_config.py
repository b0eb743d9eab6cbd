"""Prints the version of the UCX in a folder, and all of its variables with their defaults.

As ``ucx_info -caf``, which belongs to one build of UCX, while this takes any. Run in a process of
its own: ``print_ucx_config.py FOLDER``.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_EVERYTHING = 1 | 2 | 4 | 8  # values, titles, descriptions, hidden ones


def main(folder: Path) -> None:
    """Prints; the folder must also be where the dynamic linker looks."""
    ucp, uct, ucs = (
        ctypes.CDLL(str(folder / f"lib{part}.so.0"), ctypes.RTLD_GLOBAL)
        for part in ("ucp", "uct", "ucs")
    )
    ucp.ucp_get_version_string.restype = ctypes.c_char_p
    print("version", ucp.ucp_get_version_string().decode(), flush=True)
    # Transports are modules, loaded at the first question for them; each brings its own tables.
    components, count = ctypes.c_void_p(), ctypes.c_uint()
    uct.uct_query_components(ctypes.byref(components), ctypes.byref(count))
    c = ctypes.CDLL(None)
    tables = ctypes.c_byte.in_dll(ucs, "ucs_config_global_list")
    ucs.ucs_config_parser_print_all_opts(
        ctypes.c_void_p.in_dll(c, "stdout"), b"UCX_", _EVERYTHING, ctypes.byref(tables), None
    )
    c.fflush(None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
