"""The fake Slurm as tests use it: what becomes of jobs, what the programs answer, and when."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from made_files import write_script
from waiting import PATIENCE_S

from fake_slurm.programs import PROGRAMS
from fake_slurm.state import Store, attempt, current, is_live, now_in, stays

if TYPE_CHECKING:
    from fake_slurm.state import Json

#: When virtual time begins, seconds since 1970.
BEGIN = 1_700_000_000.0

#: What the programs say when the controller is away.
UNREACHABLE = "Unable to contact slurm controller (connect failure)\n"
TIMED_OUT = "Socket timed out on send/recv operation\n"


@dataclass(frozen=True)
class Fate:
    """What becomes of a job.

    Attributes:
        word: Slurm's, for how it ends; any text.
        wait_s: how long it waits for its nodes; ``None``: for ever.
        run_s: how long it runs; ``None``: until its script ends, or a test says so.
        waits_for: Slurm's reason while it waits.
        reason: Slurm's reason once it is over; empty for the one that goes with the word.
        code, signal: how the script ended.
        cancelled_by: number of the user who cancelled it.
        completing_s: how long it is still COMPLETING after its end.
        run: whether its script runs really: inside of sbatch, or beside it.
        program: what runs the script.
        again: fates of further attempts, after Slurm put it back into the queue.
    """

    word: str = "COMPLETED"
    wait_s: float | None = 0.0
    run_s: float | None = 1.0
    waits_for: str = "Priority"
    reason: str = ""
    code: int = 0
    signal: int = 0
    cancelled_by: int | None = None
    completing_s: float = 0.0
    run: Literal["no", "now", "background"] = "no"
    program: Sequence[str] = ("bash",)
    again: Sequence[Fate] = field(default=())

    def document(self) -> Json:
        """As the programs read it."""
        attempts = [fate.attempt() for fate in (self, *self.again)]
        return {"attempts": attempts, "run": self.run, "program": list(self.program)}

    def attempt(self) -> Json:
        """The first attempt alone."""
        names = "word wait_s run_s waits_for reason code signal cancelled_by completing_s"
        return attempt(**{name: getattr(self, name) for name in names.split()})


class Call(NamedTuple):
    """One call of a program; ``at`` in seconds since 1970 by the fake clock."""

    program: str
    at: float
    arguments: list[str]


class FakeSlurm:
    """A cluster that isn't there.

    Attributes:
        environment: what to call its programs in.
    """

    def __init__(
        self, folder: Path, *, nodes: int = 4, fate: Fate | None = None, real_time: bool = False
    ) -> None:
        """Makes one in an empty folder.

        Args:
            fate: of jobs of which nothing else is said.
            real_time: its clock is this machine's; else it stands still until ``advance``.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._now = None if real_time else BEGIN
        self.store = Store(str(folder))
        self.store.write(
            {
                "now": self._now,
                "next_number": 1001,
                "jobs": {},
                "fates": [],
                "usual_fate": (fate or Fate()).document(),
                "answers": [],
                "accounts": "on",
                "accounts_lag_s": 0.0,
                "min_job_age_s": 300.0,
                "partitions": ["main"],
                "nodes": {f"n{number}": "idle" for number in range(1, nodes + 1)},
                "topology": "",
            }
        )
        for name in ("bin", "to-run"):
            (folder / name).mkdir()
        for program in PROGRAMS:
            self._write(program)
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment = {"PATH": path, "HOME": os.environ.get("HOME", "/root")}
        self._runner: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """From now on scripts can run in the background."""
        self._runner = subprocess.Popen(
            self._python("running", "keep_running(Store(sys.argv[1]))"),
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all scripts that still run."""
        assert self._runner
        self._runner.communicate(timeout=PATIENCE_S)

    # What the test decides beforehand.

    def next(self, *fates: Fate) -> None:
        """What becomes of the jobs that are submitted next, in their order."""
        with self.store.changing() as state:
            state["fates"] += [fate.document() for fate in fates]

    def always(self, fate: Fate) -> None:
        """What becomes of jobs of which nothing else is said."""
        with self.store.changing() as state:
            state["usual_fate"] = fate.document()

    def answers(
        self,
        program: str,
        text: str,
        *,
        status: int = 1,
        times: int = 1,
        acts: bool = False,
        hang_s: float = 0.0,
    ) -> None:
        """The next calls of a program (``*``: of any) say this.

        Args:
            acts: it does what it was called for all the same.
            hang_s: it takes so long to say it, after it did what it does; real seconds.
        """
        answer = {"program": program, "text": text, "status": status}
        with self.store.changing() as state:
            state["answers"].append({**answer, "times": times, "acts": acts, "hang_s": hang_s})

    def accounts(self, how: Literal["on", "off", "down"], *, lag_s: float = 0.0) -> None:
        """Whether accounts are kept, and how far they are behind."""
        with self.store.changing() as state:
            state["accounts"], state["accounts_lag_s"] = how, lag_s

    def describe_network(self, topology: str) -> None:
        """What ``scontrol show topology`` prints."""
        with self.store.changing() as state:
            state["topology"] = topology

    # What happens.

    def advance(self, seconds: float) -> float:
        """Lets time pass; returns what time it is then, seconds since 1970."""
        with self.store.changing() as state:
            state["now"] += seconds
            self._now = float(state["now"])
        return self._now

    @property
    def now(self) -> float:
        """The time, seconds since 1970."""
        return time.time() if self._now is None else self._now

    def end(self, job: str, fate: Fate) -> None:
        """A job that runs ends now, by the words of a fate; with ``again`` it is put back."""
        with self.store.changing() as state:
            self._end(state, state["jobs"][job], fate)

    def start(self, job: str) -> None:
        """A job that waits starts now."""
        with self.store.changing() as state:
            one, now = state["jobs"][job], now_in(state)
            earlier = [stay.ended for stay in stays(one, now) if stay.ended is not None]
            begin = earlier[-1] if earlier else one["submitted"]
            current(one, now)["wait_s"] = now - begin

    def fail_node(self, name: str) -> list[str]:
        """A node dies, and the jobs on it; returns their numbers."""
        with self.store.changing() as state:
            state["nodes"][name], now = "down*", now_in(state)
            lost = [
                job
                for job in state["jobs"].values()
                if (last := stays(job, now)[-1]).word == "RUNNING" and name in last.nodes
            ]
            for job in lost:
                self._end(state, job, Fate("NODE_FAIL"))
        return [str(job["number"]) for job in lost]

    def restore_node(self, name: str) -> None:
        """The node is back."""
        with self.store.changing() as state:
            state["nodes"][name] = "idle"

    def forget(self, job: str, *, programs: Iterable[str] = ("squeue", "sacct")) -> None:
        """These programs no longer know a job."""
        with self.store.changing() as state:
            state["jobs"][job]["hidden"] = list(programs)

    def foreign_job(self, name: str, *, user: int = 4711) -> str:
        """A job that another user, or this one by hand, has submitted; returns its number."""
        with self.store.changing() as state:
            number = state["next_number"]
            state["next_number"] += 1
            state["jobs"][str(number)] = {
                "number": number,
                "name": name,
                "user": user,
                "node_count": 1,
                "submitted": now_in(state),
                "cancelled": None,
                "hidden": [],
                "attempts": [attempt(run_s=None, nodes=["n1"])],
            }
        return str(number)

    # What can be seen.

    @property
    def jobs(self) -> dict[str, Json]:
        """All jobs by their numbers, as the state file has them."""
        with self.store.reading() as state:
            found: dict[str, Json] = state["jobs"]
        return found

    @property
    def living(self) -> list[str]:
        """Numbers of jobs that wait or run, not those of others."""
        with self.store.reading() as state:
            now = now_in(state)
            return [
                number
                for number, job in state["jobs"].items()
                if is_live(job, now) and job["user"] == os.getuid()
            ]

    def calls(self, *programs: str) -> list[Call]:
        """Calls of these programs, or of all, in their order."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        made = [Call(*ast.literal_eval(line)) for line in lines]
        return [call for call in made if not programs or call.program in programs]

    def _end(self, state: Json, job: Json, fate: Fate) -> None:
        now = now_in(state)
        begun = len(stays(job, now))
        before = job["attempts"][begun - 1]
        kept = {name: before[name] for name in ("wait_s", "nodes") if name in before}
        ended = {**fate.attempt(), **kept, "ended": now}
        again = [{**one.attempt(), "nodes": kept.get("nodes", [])} for one in fate.again]
        job["attempts"] = [*job["attempts"][: begun - 1], ended, *again]

    def _write(self, program: str) -> None:
        command = self._python(
            "programs", f"sys.exit(main({program!r}, sys.argv[2:], sys.argv[1]))"
        )
        write_script(self.folder / "bin" / program, f'exec {shlex.join(command)} "$@"')

    def _python(self, module: str, statement: str) -> list[str]:
        """A Python that starts quickly: without site packages, with modules that are compiled."""
        tests = str(Path(__file__).parents[1])
        code = f"import sys; sys.path.insert(0, {tests!r}); from fake_slurm.{module} import *"
        return [sys.executable, "-S", "-E", "-c", f"{code}; {statement}", str(self.folder)]
