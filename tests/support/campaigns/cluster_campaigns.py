"""Campaigns on a cluster, as a person runs them, and what must hold when they are done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import stated_profiles
from clusters import Cluster, Seen, Words
from command_line import Child, CommandLine, has_footer, wait_until
from left_over import living, programs
from made_files import write_script
from small_disks import folder_on_small_disk
from stores import opened_store
from waiting import PATIENCE_S, wait_for

from commtune.model import Configuration

#: The command line that can be told where to die.
DYING = Path("tests/support/campaigns/dying.py")
#: What a run may be that was not its own fault.
_LOST = {"interrupted", "cancelled", "node-failure", "never-started"}
#: In the place of what submits: it submits the job, and its answer is lost, once.
_LOSES_ITS_ANSWER = """\
if [ -e "{folder}/lose" ]; then
  rm "{folder}/lose"
  {program} "$@" >/dev/null
  echo '{lost}' >&2
  exit 1
fi
exec {program} "$@"
"""


@dataclass(frozen=True)
class Death:
    """A point at which a process dies.

    Attributes:
        method: ``module:Class.method``; ``submit`` is the scheduler's that submits.
        when: ``before`` or ``after`` a call of it; or ``stop``: it is only stopped, before it.
        holds: what is in the call's arguments, as Python shows them.
        count: the how many-th of such calls.
        command: of ``commtune``, that dies.
    """

    method: str
    when: str = "after"
    holds: str = ""
    count: int = 1
    command: str = "tune"


@dataclass(frozen=True, kw_only=True)
class OnCluster(CommandLine):
    """``commtune`` beside a cluster, with data, cache and settings of its own."""

    cluster: Cluster
    words: ClassVar[Words]

    def on_small_disk(self, name: str = "data") -> Path:
        """Puts a folder of ours on a disk that a test can fill; returns it."""
        folder = folder_on_small_disk(self.cluster.folder, self.folder)
        (self.folder / name).symlink_to(folder)
        return folder

    def lose_answers(self) -> Path:
        """Puts a program in front that submits and may lose the answer; returns its folder."""
        path = self.environment()["PATH"]
        program = shutil.which(self.words.submitter, path=path)
        programs, lost = self.folder / "programs", self.words.lost_answer
        text = _LOSES_ITS_ANSWER.format(folder=self.folder, program=program, lost=lost)
        write_script(programs / self.words.submitter, text)
        self.extra["PATH"] = f"{programs}:{path}"
        return programs

    def lose_an_answer(self) -> None:
        """The next answer of such a program is lost."""
        (self.folder / "lose").touch()

    def jobs(self) -> list[Seen]:
        """The campaigns' jobs that the queue still knows, also those that are over."""
        folders = {folder.name for folder in self.folder.glob("data/commtune/campaigns/*/jobs/*")}
        return [job for job in self.queue() if job.key in folders]

    def lasting(self, text: str, seconds: int | str) -> str:
        """The campaign with allocations that last this long."""
        raise NotImplementedError

    def queue(self) -> list[Seen]:
        """All jobs that the scheduler still knows."""
        raise NotImplementedError

    def controller(self) -> int:
        """The process that makes runs in an allocation."""
        found = programs(f"{self.folder}/campaign.yaml")
        (number,) = (number for number, line in found.items() if not line.startswith("timeout "))
        return number

    def running(self) -> str:
        """Number of a job of the campaign that runs; empty if none does."""
        return next((job.number for job in self.jobs() if job.word == "RUNNING"), "")

    @contextlib.contextmanager
    def tuning(self) -> Iterator[Tuning]:
        """``commtune tune`` under way; ended at once if the test fails."""
        with self.start("tune", "campaign.yaml") as child:
            try:
                yield Tuning(self, child)
            except BaseException:
                child.kill()
                print(child.communicate()[1])  # what it said is shown with the failure
                raise

    def until(
        self, condition: Callable[[], object], what: str, limit_s: float = PATIENCE_S
    ) -> None:
        """Waits for a condition."""
        wait_for(condition, what, limit_s)

    def pause(self, seconds: float) -> None:
        """Lets time pass."""
        time.sleep(seconds)

    def all_over(self) -> bool:
        """Whether none of the campaign's jobs is in the queue."""
        return all(job.is_over for job in self.jobs())

    def until_over(self, limit_s: float = 2 * PATIENCE_S) -> None:
        """Waits until none of the campaign's jobs is in the queue."""
        self.until(self.all_over, "the jobs to end", limit_s)

    def dies(self, death: Death) -> None:
        """Runs a command that dies at a point, and checks that nothing was doubled by it."""
        self.order_deaths([death])
        said = self(death.command, "campaign.yaml")
        assert said.code == -signal.SIGKILL, f"{death}: {said}"
        assert self.deaths_left() == 0
        self.check_once()

    def state_gain(self, **variables: str) -> None:
        """Stores small/stated, of two nodes: a gain of 1.2 at 8 B, whatever was measured."""
        configuration = Configuration(variables)
        stated = stated_profiles.profile(
            stated_profiles.point(8, 1.1, 1.3), configuration=configuration
        )
        us = os.geteuid()
        os.seteuid(self.database.stat().st_uid)  # another user's is not opened
        try:
            with opened_store(self.database) as store:
                store.save_profiles(1, [replace(stated, name="stated", nodes=2, bytes_high=8)])
        finally:
            os.seteuid(us)

    def order_deaths(self, deaths: Sequence[Death]) -> None:
        """The next processes die at these points, one at each (see ``dying``)."""
        known = {"submit": self.words.submit}
        ordered = [
            replace(death, method=known.get(death.method, death.method)) for death in deaths
        ]
        lines = [json.dumps(asdict(death)) + "\n" for death in ordered]
        (self.folder / "die").write_text("".join(lines))

    def deaths_left(self) -> int:
        """How many of the deaths that were ordered are still to come."""
        return len((self.folder / "die").read_text().splitlines())

    def is_done(self) -> bool:
        """Whether the campaign came to its end."""
        return self.query("SELECT finished IS NULL FROM campaigns") == [(0,)]

    def printed(self) -> str:
        """What controllers in allocations said so far, one after the other."""
        files = self.folder.glob("data/commtune/campaigns/*/jobs/*/job.out")
        ordered = sorted(files, key=lambda file: file.stat().st_mtime)
        return "".join(file.read_text() for file in ordered)

    def open_jobs(self) -> set[str]:
        """Numbers of jobs that are not over in the book."""
        return {
            number for (number,) in self.query("SELECT number FROM jobs WHERE stage != 'over'")
        }

    def close_gate(self) -> None:
        """Jobs that begin from now on wait before their first run."""
        (self.folder / "gate").touch()

    def open_gate(self) -> None:
        """Jobs that wait go on."""
        (self.folder / "gate").unlink()

    def at_gate(self) -> list[str]:
        """Numbers of jobs that wait at the gate."""
        folders = self.query("SELECT number, folder FROM jobs WHERE stage = 'submitted'")
        return [
            number
            for number, folder in folders
            if (Path(folder) / "nodes").exists() and not (Path(folder) / "0.out").exists()
        ]

    def job_folder(self, number: str) -> Path:
        """Where a job's files are."""
        ((folder,),) = self.query(f"SELECT folder FROM jobs WHERE number = '{number}'")
        return Path(folder)

    def measuring(self, phase: str) -> list[str]:
        """Numbers of jobs of which a run measures now."""
        if not self.records():
            return []
        found = self.query(
            "SELECT number, jobs.folder, position, run_id FROM runs JOIN jobs ON "
            f"jobs.block = runs.block WHERE state != 'stored' AND phase = '{phase}'"
        )
        records = self.folder / "data/commtune/campaigns/small/runs"
        return [
            number
            for number, folder, position, run in found
            if number
            and (records / f"{run}.jsonl").exists()
            and not (Path(folder) / f"{position}.exit").exists()
        ]

    def finished(self) -> list[Path]:
        """The last files of jobs whose scripts came to their end."""
        return list(self.folder.glob("data/commtune/campaigns/*/jobs/*/finished"))

    def outcomes(self, where: str = "1") -> Counter[str]:
        """How many runs ended in which way."""
        return Counter(o for (o,) in self.query(f"SELECT outcome FROM runs WHERE {where}"))

    def check_confirmation(self) -> None:
        """The blocks that were asked for were made, whatever became of others."""
        whole = self.query(
            "SELECT count(*) FROM (SELECT block FROM runs WHERE phase = 'confirm' AND "
            "outcome = 'ok' GROUP BY block HAVING count(*) = 2)"
        )
        assert whole >= [(7,)]

    def check_once(self) -> None:
        """No job was handed in twice, and no block measured by two."""
        twice = {key: n for key, n in Counter(job.key for job in self.jobs()).items() if n > 1}
        assert not twice, f"jobs that are there twice: {twice}"
        if not list(self.folder.glob("data/commtune/campaigns/*/jobs/*")):
            return  # nor perhaps any table
        jobs = self.query("SELECT block, folder FROM jobs WHERE kind = 'block'")
        began = [block for block, folder in jobs if (Path(folder) / "started").exists()]
        twice = {block: n for block, n in Counter(began).items() if n > 1}
        assert not twice, f"blocks that two jobs measured: {twice}"

    def check_whole(self, *, name: str = "small", lost: bool = True, other: str = "ok") -> None:
        """Nothing is lost, doubled or left behind; the campaign is done.

        Args:
            lost: runs may have been lost to what befell their jobs.
            other: how else runs may have ended.
        """
        self.check_once()
        assert [job for job in self.jobs() if not job.is_over] == []
        assert living(str(self.folder)) == {}
        assert self.query("SELECT * FROM locks") == []
        assert self.query("SELECT finished IS NULL FROM campaigns") == [(0,)]
        assert self.query("SELECT count(*) > 0 FROM conclusions") == [(1,)]
        open_jobs = self.query("SELECT key, kind, stage FROM jobs WHERE stage != 'over'")
        assert open_jobs == []
        self.check_runs(name=name, lost=lost, other=other)

    def check_runs(self, *, name: str = "small", lost: bool = True, other: str = "ok") -> None:
        """All runs are stored, once, and as their record and exit files say."""
        outcomes = self.check_stored()
        allowed = {"ok", other, *(_LOST if lost else ())}
        said = self.query(
            "SELECT block, position, outcome, detail FROM runs WHERE outcome != 'ok'"
        )
        assert set(outcomes) <= allowed, said
        runs = self.query("SELECT run_id, outcome FROM runs")
        good = {run_id for run_id, outcome in runs if outcome == "ok"}
        whole = {file.stem for file in self.records(name) if has_footer(file)}
        assert good <= whole, "runs that are called good, and were cut short"
        assert whole <= {run_id for run_id, _ in runs}, "runs that nobody read"
        self._check_times()

    def _check_times(self) -> None:
        """A run's times are those of its own exit file."""
        found = self.query(
            "SELECT jobs.folder, position, runs.started_at, wall_s FROM runs "
            "JOIN jobs ON jobs.kind = 'block' AND jobs.block = runs.block WHERE outcome = 'ok'"
        )
        for folder, position, started_at, wall_s in found:
            _, began, ended = (Path(folder) / f"{position}.exit").read_text().split()
            assert abs(float(began) - started_at) < 1e-3, (folder, position)
            assert abs(float(ended) - float(began) - wall_s) < 1e-3, (folder, position)


@dataclass(frozen=True)
class Tuning:
    """A controller at work."""

    campaign: OnCluster
    child: Child
    heard: list[str] = field(default_factory=list)

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for a condition that must come true before the controller ends."""
        assert wait_until(lambda: bool(condition()), self.child), f"it ended before {what}"

    def until_running(self) -> str:
        """Waits until a job of it runs; returns its number."""
        self.until(self.campaign.running, "a job ran")
        return self.campaign.running()

    def until_one(self, find: Callable[[], list[str]], what: str) -> str:
        """Waits until there is one, and returns the first."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = find()
            return bool(found)

        self.until(is_there, what)
        return found[0]

    def until_measuring(self, phase: str) -> str:
        """Waits until a run of this phase measures; returns the number of its job."""
        return self.until_one(lambda: self.campaign.measuring(phase), f"a run of {phase}")

    def until_at_gate(self, phase: str) -> str:
        """Waits until a job of this phase is there and none of its runs; returns its number."""
        self.until_measuring(phase)
        self.campaign.close_gate()
        # The one that measures was through it before.
        self.until(lambda: not self.campaign.measuring(phase), "its job ended")
        return self.until_one(self.campaign.at_gate, "the next job")

    def until_said(self, words: str) -> str:
        """Waits until it says something; returns the line."""
        assert self.child.stderr
        for line in self.child.stderr:
            self.heard.append(line)
            if words in line:
                return line
        raise AssertionError(f"it never said {words!r}: {''.join(self.heard)}")

    def ended(self, code: int = 0) -> str:
        """Waits for the end, which must be this one; returns all that was said."""
        assert self.child.stderr
        # Not by communicate(), which loses what was read ahead of the last line waited for.
        rest = threading.Thread(target=self.heard.extend, args=(self.child.stderr,), daemon=True)
        rest.start()
        self.child.wait(timeout=2 * PATIENCE_S)
        rest.join(timeout=PATIENCE_S)
        err = "".join(self.heard)
        assert self.child.returncode == code, err
        assert "Traceback" not in err, err
        return err
