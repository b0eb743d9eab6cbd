"""A night of a campaign on Slurm in compressed time, with what may befall it, and what must hold.

    .venv/bin/python benchmarks/slurm/night.py [--jobs 30] [--minutes 3]

Needs root, as ``make slurm-demo`` does, and MPICH in ``.mpi``. One job at a time may be with Slurm
(MaxSubmitJobs=1), so each is requeued for the next one. Two nodes have clocks that are a minute
fast and a minute slow. In the course of the night slurmctld and slurmdbd are away for a while, a
node dies under the controller, another one under a step, and the disk fills and is cleaned.

A run is a program that sleeps for 5 s, so that the night leaves the machine to others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "tests/support"), str(_ROOT / "tests/support/slurm")]

from command_line import CommandLine  # noqa: E402
from other_clock import build_clock  # noqa: E402
from slurm_cluster import Cluster, running_cluster  # noqa: E402

_CAMPAIGN = """\
campaign: 1
name: night
space: ./space.yaml
mpi: wheel:mpich
benchmark: {{command: [sh, run.sh], output: json-line, name: run}}
workload: {{nodes: 2, ranks: 2, sizes: [1]}}
budget: {{search: {search:.0f}s, ablation: {ablation:.0f}s, confirmation: {confirmation:.0f}s}}
run_time_limit: 8s
slurm:
  time: {minutes}min
  before: |
    case $SLURMD_NODENAME in
      n1) export LD_PRELOAD={fast};;
      n2) export LD_PRELOAD={slow};;
    esac
"""
_SPACE = """\
space: 1
name: night
library: mylib
parameters:
  - {name: MYLIB_MODE, kind: choice, values: [a, b, c, d, e]}
  - {name: MYLIB_SIZE, kind: bytes, range: [4KiB, 1MiB]}
  - {name: MYLIB_PATHS, kind: integer, range: [1, 8]}
"""
#: The time depends on one variable, and on chance.
_RUN = """\
sleep 5
case ${MYLIB_MODE:-unset} in c) time=1.7 ;; *) time=2.0 ;; esac
echo "{\\"bytes\\": 1, \\"time_s\\": $time$(date +%N | cut -c5-9)e-3}"
"""
_DISK_MIB = 48
#: Seconds that daemons are away, nodes dead and the disk full.
_AWAY_S = 15.0
#: A job that has run for so long has made a run, seconds.
_SETTLED_S = 20.0
#: Seconds without a job after which none will follow.
_BROKEN_S = 60.0
#: What a job keeps of its time to end cleanly and for a block that no longer fits, seconds.
_KEPT_S = 62.0
_SCREEN_LINES = 24


@dataclass
class Night:
    """The campaign of a night, and what befalls it."""

    cluster: Cluster
    line: CommandLine
    faults: list[tuple[int, Callable[[Night], None]]]  # with the attempt that they come in
    number: str = ""  # of its job
    seen: Counter[str] = field(default_factory=Counter)

    def pass_by(self) -> None:
        """Lets the night pass: until the campaign is done, or no job of it is there."""
        absent_since = None
        while not self._is_done():
            there = self._state()
            attempt, word, ran_s = there or (0, "", 0.0)
            if not there:
                absent_since = absent_since or time.monotonic()
                if time.monotonic() - absent_since > _BROKEN_S:
                    return
            else:
                absent_since = None
            if self.faults and word == "RUNNING" and ran_s > _SETTLED_S:
                planned, fault = self.faults[0]
                if attempt >= planned:
                    self.faults.pop(0)
                    self.tell(f"job {self.number}, attempt {attempt}: {fault.__doc__}")
                    fault(self)
            time.sleep(1)

    def tell(self, words: str) -> None:
        """Prints a line with the time."""
        print(f"{time.strftime('%H:%M:%S')} {words}", flush=True)

    def _state(self) -> tuple[int, str, float] | None:
        """The job's attempt from 1, Slurm's word for it, and the seconds that it has run."""
        question = ("squeue", "--noheader", "--format=%i %T %M", "--user=root")
        for text in self.cluster.call(*question).splitlines():
            self.number, word, ran = text.split()
            shown = self.cluster.call("scontrol", "show", "job", self.number)
            restarts = int(shown.partition("Restarts=")[2].split()[0])
            parts = [int(part) for part in ran.replace("-", ":").split(":")]
            return restarts + 1, word, float(sum(60**i * p for i, p in enumerate(parts[::-1])))
        return None

    def _is_done(self) -> bool:
        return self.line.query("SELECT finished IS NULL FROM campaigns") == [(0,)]

    def nodes(self) -> list[str]:
        """The job's nodes; the controller is on the first."""
        listed = self.cluster.call("squeue", "--noheader", "--format=%N", f"--jobs={self.number}")
        return self.cluster.call("scontrol", "show", "hostnames", listed.strip()).split()


def _controllers_node_dies(night: Night) -> None:
    """the node that the controller is on dies, and is back later"""
    _node_dies(night, 0)


def _other_node_dies(night: Night) -> None:
    """the other node dies, and is back later"""
    _node_dies(night, 1)


def _node_dies(night: Night, which: int) -> None:
    node = night.nodes()[which]
    night.cluster.fail_node(node)
    time.sleep(_AWAY_S)
    night.cluster.restore_node(node)


def _slurmctld_restarts(night: Night) -> None:
    """slurmctld is away for a while"""
    night.cluster.stop_controller()
    time.sleep(_AWAY_S)
    night.cluster.start_controller()


def _slurmdbd_restarts(night: Night) -> None:
    """slurmdbd is away for a while"""
    night.cluster.stop_accounting()
    time.sleep(_AWAY_S)
    night.cluster.start_accounting()


def _disk_fills(night: Night) -> None:
    """the disk of the campaign's data fills, and is cleaned later"""
    file = night.line.folder / "data" / "full"
    with suppress(OSError), file.open("wb", buffering=0) as full:
        while full.write(bytes(4096)):
            pass
    time.sleep(_AWAY_S)
    file.unlink()


_FAULTS = (
    _controllers_node_dies,
    _slurmctld_restarts,
    _slurmdbd_restarts,
    _other_node_dies,
    _disk_fills,
)


@dataclass(frozen=True)
class Accounts:
    """What sacct has of a night, in seconds times nodes."""

    states: Counter[str]  # of the job's attempts
    allocated_s: float
    in_steps_s: float
    #: What is in no step, of all attempts, not times nodes: before the first step of each, between
    #: steps, and after the last one.
    start_s: float
    between_s: float
    end_s: float

    @classmethod
    def of(cls, cluster: Cluster) -> Accounts:
        """Asks sacct, once it knows the end of everything."""
        asked = ("sacct", "--duplicates", "--noheader", "--parsable2", "--user=root")
        columns, seconds = "--format=JobIDRaw,State,Start,End,NNodes", {"SLURM_TIME_FORMAT": "%s"}
        while "RUNNING" in (said := cluster.call(*asked, columns, environment=seconds)):
            time.sleep(1)
        states: Counter[str] = Counter()
        allocated_s = in_steps_s = start_s = between_s = end_s = 0.0
        idle_since = ends = 0.0
        for text in said.splitlines():  # steps follow their attempt
            number, state, *times, nodes = text.split("|")
            began, ended = map(float, times)
            if number.isdigit():
                end_s += ends - idle_since
                idle_since, ends = began, ended  # a step whose node died is closed later
                states[state.split()[0]] += 1
                allocated_s += int(nodes) * (ended - began)
            elif number.rpartition(".")[2].isdigit():
                gap_s = began - idle_since
                start_s, between_s = (
                    (start_s + gap_s, between_s)
                    if number.endswith(".0")
                    else (start_s, between_s + gap_s)
                )
                idle_since = min(ended, ends)
                in_steps_s += int(nodes) * (min(ended, ends) - began)
        end_s += ends - idle_since
        return cls(states, allocated_s, in_steps_s, start_s, between_s, end_s)


def _findings(night: Night) -> Iterator[tuple[bool, str]]:
    """What must hold in the morning: whether it does, and the figure."""
    line, accounts = night.line, Accounts.of(night.cluster)
    yield night._is_done(), "the campaign is finished"
    runs = line.query("SELECT run_id, state, outcome FROM runs")
    outcomes = Counter(outcome for *_, outcome in runs)
    yield (
        {state for _, state, _ in runs} == {"stored"},
        f"{len(runs)} runs, all stored: {dict(outcomes)}",
    )
    lost = {"interrupted", "cancelled", "node-failure", "never-started"}
    yield set(outcomes) <= {"ok", *lost}, "no configuration is blamed"
    measured = line.query("SELECT count(*), count(DISTINCT run_id) FROM measurements")
    yield measured == [(outcomes["ok"],) * 2], f"{measured[0][0]} measurements, one of each run"
    kinds = line.query("SELECT count(*), count(DISTINCT block || ' ' || position) FROM runs")
    yield kinds[0][0] == kinds[0][1], "no run was made twice"
    share = accounts.in_steps_s / accounts.allocated_s
    ((run_s,),) = line.query("SELECT sum(wall_s) FROM runs WHERE outcome = 'ok'")
    yield (
        share >= 0.95,
        f"{share:.1%} of {accounts.allocated_s / 2:.0f} allocated s in steps, "
        f"{2 * run_s / accounts.allocated_s:.1%} in runs that are results; "
        f"in none: {accounts.start_s:.0f} s before the first of an attempt, "
        f"{accounts.between_s:.0f} s between steps, {accounts.end_s:.0f} s after the last",
    )
    ((hours,),) = line.query("SELECT sum(node_hours) FROM jobs")
    off = hours / (accounts.allocated_s / 3600) - 1
    yield abs(off) <= 0.02, f"{hours:.4f} node-hours, {off:+.2%} of sacct's"
    left = night.cluster.call("squeue", "--noheader", "--format=%i").split()
    booked = line.query("SELECT key FROM jobs WHERE stage != 'over'")
    yield not left and not booked, f"no job left; sacct: {dict(accounts.states)}"
    yield line.query("SELECT * FROM locks") == [], "nobody holds the campaign"
    told = line("status", "--since", "12h").out + "\n" + line("status").out
    print(told)
    yield len(told.splitlines()) <= _SCREEN_LINES, "its summary fits a screen"


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A disk for the campaign's data that can be filled; there before nodes are."""
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "none", str(folder)], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _write(folder: Path, jobs: int, minutes: int) -> None:
    """Writes the files of a campaign that needs so many jobs of this length."""
    whole_s = jobs * (60 * minutes - _KEPT_S)
    text = _CAMPAIGN.format(
        search=0.7 * whole_s,
        ablation=0.05 * whole_s,
        confirmation=0.25 * whole_s,
        minutes=minutes,
        fast=build_clock(folder, ahead_s=60),
        slow=build_clock(folder, ahead_s=-60),
    )
    (folder / "campaign.yaml").write_text(text)
    (folder / "space.yaml").write_text(_SPACE)
    (folder / "run.sh").write_text(_RUN)


def main() -> int:
    """Lets the night pass; prints what happened, and what holds in the morning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=30, help="jobs that it needs [30]")
    parser.add_argument("--minutes", type=int, default=3, help="length of a job [3]")
    given = parser.parse_args()
    step = max(1, given.jobs // (len(_FAULTS) + 1))
    planned = range(1, step * len(_FAULTS) + 1, step)
    with tempfile.TemporaryDirectory() as name, _small_disk(Path(name) / "data"):
        folder = Path(name)
        _write(folder, given.jobs, given.minutes)
        with running_cluster() as cluster:
            cluster.limit_submissions(1)
            line = CommandLine(folder, {"SLURM_CONF": cluster.environment["SLURM_CONF"]})
            night = Night(cluster, line, list(zip(planned, _FAULTS, strict=True)))
            said = line("submit", "campaign.yaml")
            night.tell(f"submitted: {said.out}{said.err}")
            try:
                night.pass_by()
            finally:
                for output in folder.glob("data/commtune/campaigns/*/jobs/*/job.out"):
                    print(output.read_text())
            night.tell("morning")
            found = list(_findings(night))
    for holds, what in found:
        print(f"{'holds' if holds else 'FAILS'}  {what}")
    return 0 if all(holds for holds, _ in found) and not night.faults else 1


if __name__ == "__main__":
    sys.exit(main())
