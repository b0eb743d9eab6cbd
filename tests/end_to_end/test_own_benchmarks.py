"""Campaigns with a pattern in Python and with a command, on a real MPI, from file to profile."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT, CommandLine
from components import require_component
from made_files import write_script
from rule_campaigns import stated
from step_program import MODES_SPACE, STEP_CAMPAIGN, STEP_PROGRAM
from stores import opened_store
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.mpi.discovery import find_mpi

#: MPICH through sockets instead of shared memory.
_SPACE = """\
space: 1
name: sockets
library: mpich
parameters:
  - {name: MPIR_CVAR_NOLOCAL, kind: choice, values: ["1"]}
"""
_PATTERN = """\
campaign: 1
name: shift
space: ./space.yaml
mpi: wheel:mpich
benchmark: {python: shift.py:Shift}
workload: {ranks: 2, sizes: [8, 64KiB]}
timing: {max_samples: 10, time_cap: 2ms}
first: [{MPIR_CVAR_NOLOCAL: "1"}]  # whatever is left of the budget
budget: {search: 1s, ablation: 100ms, confirmation: 100ms, trials: 1}
run_time_limit: 60s
"""
_SHIFT = """\
from commtune.kernels.python_bench import Pattern

class Shift(Pattern):
    def define(self):
        for rank in range(self.ranks):
            self.add(rank, (rank + 1) % self.ranks, self.size)
"""


@pytest.fixture(scope="module")
def shifted(executable: Path, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:  # noqa: ARG001  # built before
    """A folder with a pattern in Python, and a campaign that tried a value, with its profile."""
    require_component("mpi4py", _has_mpi4py())
    line = CommandLine(tmp_path_factory.mktemp("shifted"))
    line.write(_SHIFT, "shift.py")
    line.write(_SPACE, "space.yaml")
    line.write(_PATTERN)
    line.succeed("tune", "campaign.yaml", "--json")
    profile = stated("own:Shift", 8, 65536, {"MPIR_CVAR_NOLOCAL": "1"})
    with opened_store(line.database) as store:
        ((campaign_id,),) = line.query("SELECT id FROM campaigns")
        store.save_profiles(campaign_id, [replace(profile, backend="python-host", ranks=2)])
    return line


def test_a_pattern_from_file_to_stored_runs(shifted: CommandLine) -> None:
    outcomes = dict(shifted.query("SELECT outcome, count(*) FROM runs GROUP BY outcome"))
    assert set(outcomes) == {"ok"}
    (stored,) = {row[0] for row in shifted.query("SELECT DISTINCT operation FROM runs")}
    assert stored == "own:Shift"
    header = json.loads(shifted.query("SELECT header FROM runs")[0][0])
    assert header["backend"] == "python-host"
    # What ranks saw is compared with what was asked for, as with the native benchmark.
    seen = {
        json.loads(row[0])["rank_info"][1]["environment"].get("MPIR_CVAR_NOLOCAL")
        for row in shifted.query("SELECT header FROM runs")
    }
    assert seen == {None, "1"}
    best = shifted.succeed("best", "--op", "own:Shift", "--bytes", "8")
    assert "own:Shift" in best.out


def test_a_changed_pattern_is_another_question(shifted: CommandLine) -> None:
    shifted.write(_SHIFT.replace("+ 1", "- 1"), "shift.py")
    said = shifted("tune", "campaign.yaml")
    shifted.write(_SHIFT, "shift.py")
    assert said.code == 2
    assert "benchmark.sources" in said.err


#: For tests that ask how runs begin and end, and not how fast they are.
_SHORT_CAMPAIGN = STEP_CAMPAIGN.replace(
    "confirmation: 5s, trials: 4", "confirmation: 1s, trials: 1"
)


@pytest.fixture
def stepping(commtune: CommandLine) -> CommandLine:
    """A folder with a program whose speed depends on a variable, and its campaign."""
    commtune.write(STEP_PROGRAM, "step.sh")
    commtune.write(MODES_SPACE, "space.yaml")
    commtune.write(STEP_CAMPAIGN)
    return commtune


@pytest.fixture
def without_mpi(stepping: CommandLine) -> CommandLine:
    """The same where no MPI can be found: a folder of few programs is all of PATH."""
    folder = stepping.folder / "programs"
    folder.mkdir()
    for name in ("sh", "date", "tail", "cut", "env"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return replace(stepping, extra={"PATH": str(folder), "COMMTUNE_MPI_PATH": ""})


def test_a_command_of_one_rank_needs_no_mpi(without_mpi: CommandLine) -> None:
    without_mpi.write(
        _SHORT_CAMPAIGN.replace("mpi: wheel:mpich\n", "").replace("ranks: 2", "ranks: 1")
    )
    without_mpi.succeed("tune", "campaign.yaml")
    outcomes = {row[0] for row in without_mpi.query("SELECT outcome FROM runs")}
    assert "ok" in outcomes
    (stack,) = {row[0] for row in without_mpi.query("SELECT text FROM stacks")}
    assert stack == "no MPI"


def test_a_command_of_several_ranks_needs_a_launcher_and_no_compiler(
    without_mpi: CommandLine,
) -> None:
    without_mpi.write(_SHORT_CAMPAIGN.replace("mpi: wheel:mpich\n", ""))
    refused = without_mpi("tune", "campaign.yaml")
    assert refused.code == 3
    assert "2 ranks need an MPI launcher (mpiexec), and none is on PATH" in refused.err
    mpich = find_mpi("wheel:mpich")
    write_script(without_mpi.folder / "programs" / "mpiexec", f'exec {mpich.launcher} "$@"')
    without_mpi.succeed("tune", "campaign.yaml")
    outcomes = {row[0] for row in without_mpi.query("SELECT outcome FROM runs")}
    assert "ok" in outcomes


def test_a_first_mistake_costs_nothing(stepping: CommandLine) -> None:
    """What failed keeps its runs under another name; the corrected file goes by its own."""
    stepping.write(_SHORT_CAMPAIGN)
    stepping.write("echo no such thing; exit 7", "step.sh")
    failed = stepping("tune", "campaign.yaml")
    assert failed.code == 3
    assert "failed three times in a row" in failed.err
    assert "commtune bench" not in failed.err  # which has no commands
    by_hand = failed.err.partition("run it by hand: ")[2].strip()
    assert by_hand.startswith(f"cd {stepping.folder} && ")
    assert by_hand.endswith(" -n 2 sh step.sh by-hand")
    stepping.write(STEP_PROGRAM, "step.sh")
    said = stepping.succeed("tune", "campaign.yaml")
    words = said.out + said.err
    assert "campaign step had no successful run so far, and starts over" in words
    assert "benchmark.files.step.sh" in words
    names = {row[0] for row in stepping.query("SELECT name FROM campaigns")}
    assert names == {"step", "step.1"}
    # From now on, another script is another question.
    stepping.write(STEP_PROGRAM + "# edited\n", "step.sh")
    refused = stepping("tune", "campaign.yaml")
    assert refused.code == 2
    assert "benchmark.files.step.sh" in refused.err


def test_a_pattern_that_fails_is_run_by_hand(commtune: CommandLine) -> None:
    require_component("mpi4py", _has_mpi4py())
    commtune.write(_SHIFT.replace("self.size)", "self.length)"), "shift.py")
    commtune.write(_SPACE, "space.yaml")
    commtune.write(_PATTERN)
    failed = commtune("tune", "campaign.yaml")
    assert failed.code == 3
    by_hand = failed.err.partition("run it by hand: ")[2].strip()
    ended = process.run_process(
        ["sh", "-c", by_hand],
        environment=dict(os.environ),
        timeout_s=PATIENCE_S,
        whole_output=True,
    )
    assert "no attribute 'length'" in ended.output


def test_a_command_is_tuned_for_and_its_profile_verified(stepping: CommandLine) -> None:
    stepping.write("[ ! -e gone ] || exit 9\n" + STEP_PROGRAM, "step.sh")
    stepping.write(STEP_CAMPAIGN.replace("confirmation: 5s", "confirmation: 1s"))
    stepping.succeed("tune", "campaign.yaml", "--json")
    outcomes = {row[0] for row in stepping.query("SELECT outcome FROM runs")}
    assert outcomes == {"ok", "failed", "wrong-result"}
    best = stepping.succeed(
        "best", "--op", "own:step", "--bytes", "1", "--backend", "command", "--json"
    )
    (answer,) = json.loads(best.out)
    assert answer["configuration"] == {"MYLIB_MODE": "fast"}
    assert answer["verdict"] == "faster"
    name = f"step/{answer['name']}"
    said = stepping("verify", name, "--time", "1s")
    assert said.code == 0, said.out + said.err
    stepping.succeed("report", "step", "--output", "report.html")
    page = (stepping.folder / "report.html").read_text()
    assert "own:step, 2 ranks" in page
    assert "nothing shows whether settings reached them" in page
    stepping.write("", "gone")
    failed = stepping("verify", name, "--time", "1min")
    assert failed.code == 3
    assert "commtune bench" not in failed.err
    assert failed.err.strip().endswith(" -n 2 sh step.sh by-hand")


def test_the_example_is_the_one_in_the_guide() -> None:
    guide = (ROOT / "docs" / "own-benchmark.md").read_text()
    example = (ROOT / "examples" / "halo.py").read_text()
    begin = guide.index("class Halo(Pattern):")
    body = guide[begin : guide.index("```", begin)]
    assert body in example


def _has_mpi4py() -> bool:
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None


def test_the_benchmark_in_python_does_not_need_a_compiler(commtune: CommandLine) -> None:
    require_component("mpi4py", _has_mpi4py())
    said = commtune(
        "bench", "--op", "ring", "--backend", "python-host", "--sizes", "8,1KiB", "--mpi",
        "wheel:mpich",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "python-host" in said.out
