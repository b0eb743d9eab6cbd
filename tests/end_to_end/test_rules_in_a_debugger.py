"""Rules of libraries that neither log algorithms nor count messages, seen by a debugger.

Of Intel MPI and Open MPI it sees the functions of algorithms, in rank 0. MPICH's library has no
names of them; there it sees how much rank 0 sends at a time, which goes through UCX if MPICH
takes each rank for a node of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
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
    "intel-mpi": {"broadcast": ("1", "3"), "allgather": ("2", "3"), "alltoall": ("1", "3")},
    "openmpi 4.1": {
        "broadcast": ("scatter_allgather", "split_binary_tree"),
        "allgather": ("ring", "linear"),
        "alltoall": ("modified_bruck", "linear_sync"),
    },
    "openmpi": {"allgather": ("ring", "linear"), "alltoall": ("modified_bruck", "linear_sync")},
    "mpich": {
        "broadcast": ("scatter_ring_allgather", "scatter_recursive_doubling_allgather"),
        "allgather": ("ring", "brucks"),
        "alltoall": ("brucks", "pairwise"),
    },
}
#: Debugs rank 0, and starts the others once it is that far; these wait for it, not in its way.
_RANK_0 = """\
case $PMI_RANK$OMPI_COMM_WORLD_RANK in
0) exec gdb -nx -q -batch -x "$0" --args "$@";;
*) until [ -e "$COMMTUNE_SEEN" ]; do sleep 0.1; done; exec nice "$@";;
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


#: An operation at a size.
_Call = tuple[str, int]


class _Debugged:
    def __init__(
        self, library: str, calls: Sequence[_Call], mpi: MpiInstallation, to: Path
    ) -> None:
        self._library, self._calls, self._mpi = library, calls, mpi
        self._folder, self._program = to, _program(mpi, to)

    def see(self, settings: Mapping[str, str]) -> dict[_Call, list[str]]:
        """What rank 0 entered in each call."""
        file = self._folder / "seen"
        file.unlink(missing_ok=True)
        word, names, registers = _SEEN[self._library]
        asked = {operation: _OPERATIONS[operation] for operation, _ in self._calls}
        if self._library == "intel-mpi":
            asked = {operation: name.capitalize() for operation, name in asked.items()}
        program = [str(self._program)]
        for operation in asked:
            program += [operation, *(str(size) for of, size in self._calls if of == operation)]
        command = local_launcher(self._mpi, bound=False).command(
            _RANKS, ["sh", "-c", _RANK_0, str(_HERE / "stop_at_functions.py"), *program], 300.0
        )
        run = process.run_process(
            command,
            environment={
                **base_environment(os.environ, self._mpi),
                "COMMTUNE_WORDS": " ".join({word.format(name) for name in asked.values()}),
                "COMMTUNE_FUNCTIONS": names,
                "COMMTUNE_REGISTERS": registers,
                "COMMTUNE_SEEN": str(file),
                "MPIR_CVAR_NOLOCAL": "1",
                **settings,
            },
            timeout_s=300,
        )
        _, *found = file.read_text().split("size ")
        lines = [one.splitlines() for one in found]
        assert [int(size) for size, *_ in lines] == [size for _, size in self._calls], run.output
        return {call: entered for call, (_, *entered) in zip(self._calls, lines, strict=True)}


@pytest.mark.parametrize("library", _WORDS)
def test_rules_are_executed_on_both_sides_of_every_border(library: str, tmp_path: Path) -> None:
    require_component("gdb", shutil.which("gdb") is not None)
    name = ""
    words = _WORDS[library]
    if library == "openmpi 4.1":
        name, library = "/usr/bin/mpicxx.openmpi", "openmpi"
        require_component("openmpi 4.1 (libopenmpi-dev)", Path(name).exists())
    pairs = {
        operation: (_settings(library, operation, small), _settings(library, operation, large))
        for operation, (small, large) in words.items()
    }
    first, *_ = pairs
    made = make(library, tmp_path, first, _RANKS, name, pairs[first], beside=pairs)
    rules = read_rules(made.file, db=made.database)
    assert {*rules.table.operations} == {*pairs}
    replaces = rules.format.replaces_table
    # All operations in one launch: the library has the settings of each.
    small, large = (
        Configuration({name: value for pair in pairs.values() for name, value in pair[n].items()})
        for n in (0, 1)
    )
    below, above = (small, large) if replaces else (DEFAULT, DEFAULT)
    expected: dict[_Call, Configuration] = {}
    for operation in pairs:
        one = 1 if operation == "broadcast" else _RANKS  # else a total of blocks
        of_sizes = {
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
        expected |= {(operation, size): settings for size, settings in of_sizes.items()}
    debugged = _Debugged(library, [*expected], find_library(rules.stored, None), tmp_path)
    by_file = debugged.see(rules.load(made.file))
    by_variables = {one: debugged.see(one) for one in set(expected.values())}
    for call, settings in expected.items():
        assert by_file[call] == by_variables[settings][call], call
        assert by_file[call]
    for operation in pairs:
        seen = [by_file[call] for call in expected if call[0] == operation]
        below_2, at_2, _, at_8, above_8, *_ = seen[1:]
        assert (below_2 == at_2) is replaces
        assert at_8 != above_8
