"""Rules of libraries that neither log algorithms nor count messages, seen by a debugger.

Of Intel MPI and Open MPI it sees the functions of algorithms, in rank 0. MPICH's library has no
names of them; there it sees how much rank 0 sends at a time, which goes through UCX if MPICH
takes each rank for a node of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from components import require_component
from rule_campaigns import KIB, make, ruled
from waiting import PATIENCE_S

from commtune import process
from commtune.app.profiles.rule_files import find_library, read_rules
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.model import DEFAULT, Configuration, MpiInstallation

_HERE = Path(__file__).parent
_RANKS = 4
#: By library: a word in the names of functions, the names, and registers of arguments.
_SEEN = {
    "intel-mpi": ("MPIR_{}_intra", r"\w+(?<!_check)", ""),
    "openmpi": ("ompi_coll_base_{}_intra", r"\w+", ""),
    "mpich": ("ucp_tag_send_nbx", r"\w+", "rdx"),
}
_CVAR = "MPIR_CVAR_{}_INTRA_ALGORITHM".format
_INTEL = "I_MPI_ADJUST_{}".format
_OPERATIONS = {"broadcast": "bcast", "allgather": "allgather", "alltoall": "alltoall"}
_WORDS = {
    ("intel-mpi", "broadcast"): ("1", "3"),
    ("intel-mpi", "allgather"): ("2", "3"),
    ("intel-mpi", "alltoall"): ("1", "3"),
    ("openmpi 4.1", "broadcast"): ("scatter_allgather", "split_binary_tree"),
    ("openmpi 4.1", "allgather"): ("ring", "linear"),
    ("openmpi 4.1", "alltoall"): ("modified_bruck", "linear_sync"),
    ("openmpi", "allgather"): ("ring", "linear"),
    ("openmpi", "alltoall"): ("modified_bruck", "linear_sync"),
    ("mpich", "broadcast"): ("scatter_ring_allgather", "scatter_recursive_doubling_allgather"),
    ("mpich", "allgather"): ("ring", "brucks"),
    ("mpich", "alltoall"): ("brucks", "pairwise"),
}
#: Debugs rank 0, and starts the others as they are.
_RANK_0 = """\
case $PMI_RANK$OMPI_COMM_WORLD_RANK in
0) exec gdb -nx -q -batch -x "$0" --args "$@";;
*) exec "$@";;
esac
"""


def _settings(library: str, operation: str, word: str) -> Mapping[str, str]:
    collective = _OPERATIONS[operation]
    if library == "openmpi":
        return ruled(collective, word)
    name = _CVAR if library == "mpich" else _INTEL
    return {name(collective.upper()): word}


def _program(mpi: MpiInstallation, folder: Path) -> Path:
    program = folder / "collectives"
    built = process.run_process(
        [mpi.compiler, "-O1", _HERE / "collectives_by_size.cpp", "-o", program],
        environment=base_environment(os.environ, mpi),
        timeout_s=PATIENCE_S,
    )
    assert built.ok, built.output
    return program


class _Debugged:
    def __init__(self, library: str, operation: str, mpi: MpiInstallation, folder: Path) -> None:
        self._library, self._operation, self._mpi = library, operation, mpi
        self._folder, self._program = folder, _program(mpi, folder)

    def see(self, settings: Mapping[str, str], sizes: list[int]) -> dict[int, list[str]]:
        """What rank 0 entered, by size."""
        file = self._folder / "seen"
        file.unlink(missing_ok=True)
        word, names, registers = _SEEN[self._library]
        collective = _OPERATIONS[self._operation]
        if self._library == "intel-mpi":
            collective = collective.capitalize()
        program = [self._program, self._operation, *map(str, sizes)]
        command = local_launcher(self._mpi, bound=False).command(
            _RANKS,
            ["sh", "-c", _RANK_0, str(_HERE / "stop_at_functions.py"), *map(str, program)],
            300.0,
        )
        run = process.run_process(
            command,
            environment={
                **base_environment(os.environ, self._mpi),
                "COMMTUNE_WORD": word.format(collective),
                "COMMTUNE_FUNCTIONS": names,
                "COMMTUNE_REGISTERS": registers,
                "COMMTUNE_SEEN": str(file),
                "MPIR_CVAR_NOLOCAL": "1",
                **settings,
            },
            timeout_s=300,
        )
        found: dict[int, list[str]] = {}
        for line in file.read_text().splitlines():
            if line.startswith("size "):
                found[int(line.split()[1])] = entered = []
            elif found:
                entered.append(line)
        assert list(found) == sizes, run.output
        return found


@pytest.mark.parametrize(("library", "operation"), _WORDS)
def test_rules_are_executed_on_both_sides_of_every_border(
    library: str, operation: str, tmp_path: Path
) -> None:
    require_component("gdb", shutil.which("gdb") is not None)
    name = ""
    words = _WORDS[library, operation]
    if library == "openmpi 4.1":
        name, library = "/usr/bin/mpicxx.openmpi", "openmpi"
        require_component("openmpi 4.1 (libopenmpi-dev)", Path(name).exists())
    small, large = (Configuration(_settings(library, operation, word)) for word in words)
    made = make(library, tmp_path, operation, _RANKS, name, (small, large))
    rules = read_rules(made.file, db=made.database)
    replaces = rules.format.replaces_table
    below, above = (small, large) if replaces else (DEFAULT, DEFAULT)
    one = 1 if operation == "broadcast" else _RANKS  # else a total of blocks
    expected = {
        KIB: below,
        2 * KIB - one: below,
        2 * KIB: small,
        4 * KIB: small,
        8 * KIB: small,
        8 * KIB + one: large,
        16 * KIB: large,
        16 * KIB + one: above,
        64 * KIB: above,
    }
    debugged = _Debugged(library, operation, find_library(rules.stored, None), tmp_path)
    sizes = [*expected]
    by_file = debugged.see(rules.load(made.file), sizes)
    by_variables = {one: debugged.see(one, sizes) for one in set(expected.values())}
    for size, settings in expected.items():
        assert by_file[size] == by_variables[settings][size], size
        assert by_file[size]
    assert (by_file[2 * KIB - one] == by_file[2 * KIB]) is replaces
    assert by_file[8 * KIB] != by_file[8 * KIB + one]
