"""What the fake Slurm knows, and where its jobs stand at a time: the file is the whole of it.

A job is a list of attempts; each says how long it waits, how long it runs and how it ends. So
where a job stands follows from the time alone, also at an earlier time (for accounts that lag).
"""

# Every call of a program pays for what is imported, most of all for pathlib, json and re.
# ruff: noqa: PTH105, PTH123

from __future__ import annotations

import fcntl
import marshal
import math
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import TextIOWrapper
    from typing import Any

    Json = dict[str, Any]


class Store:
    """The file, one process at a time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def reading(self) -> _Held:
        """The state, which nobody changes meanwhile."""
        return _Held(self, writes=False)

    def changing(self) -> _Held:
        """The state; what is changed is written back."""
        return _Held(self, writes=True)

    def read(self) -> Json:
        """The state as it was put down last."""
        with open(f"{self.folder}/state", "rb") as file:
            state: Json = marshal.loads(file.read())
        return state

    def write(self, state: Json) -> None:
        """Puts a state down, all of it or nothing."""
        part = f"{self.folder}/state.part"
        with open(part, "wb") as file:
            file.write(marshal.dumps(state))
        os.replace(part, f"{self.folder}/state")

    def note_call(self, program: str, arguments: list[str], now: float) -> None:
        """Remembers that a program was called; outside of the state, which would grow."""
        with open(f"{self.folder}/calls", "a") as calls:
            calls.write(ascii((program, now, arguments)) + "\n")


class _Held:
    """The state while it is held."""

    def __init__(self, store: Store, *, writes: bool) -> None:
        self.store = store
        self.writes = writes
        self.state: Json = {}
        self.lock: TextIOWrapper | None = None

    def __enter__(self) -> Json:
        self.lock = open(f"{self.store.folder}/lock", "a")  # until __exit__
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.state = self.store.read()
        return self.state

    def __exit__(self, kind: object, *_: object) -> None:
        assert self.lock
        with self.lock:
            if self.writes and kind is None:
                self.store.write(self.state)


def now_in(state: Json) -> float:
    """Seconds since 1970 by the fake Slurm's clock."""
    return time.time() if state["now"] is None else float(state["now"])


class Stay:
    """Where one attempt of a job stands.

    Attributes:
        word: Slurm's.
        started, ended: seconds since 1970, or ``None``.
        code, signal: how its script ended.
        cancelled_by: number of a user.
    """

    def __init__(self, word: str, reason: str = "None", **more: Any) -> None:
        self.word = word
        self.reason = reason
        self.started: float | None = more.get("started")
        self.ended: float | None = more.get("ended")
        self.nodes: list[str] = more.get("nodes", [])
        self.cancelled_by: int | None = more.get("by")


#: What squeue gives as the reason of a job that ended so.
_REASONS = {
    "FAILED": "NonZeroExitCode",
    "TIMEOUT": "TimeLimit",
    "NODE_FAIL": "NodeDown",
    "OUT_OF_MEMORY": "OutOfMemory",
    "DEADLINE": "DeadLine",
    "BOOT_FAIL": "NodeDown",
}


#: An attempt of which nothing is said: it starts at once, runs a second and ends well.
USUAL: Json = {
    "wait_s": 0.0,
    "run_s": 1.0,
    "word": "COMPLETED",
    "reason": "",
    "waits_for": "Priority",
    "code": 0,
    "signal": 0,
    "cancelled_by": None,
    "completing_s": 0.0,
    "ended": None,
    "nodes": [],
}


def attempt(**changes: Any) -> Json:
    """An attempt; only what is not as usual is kept."""
    return {name: value for name, value in changes.items() if value != USUAL[name]}


def stays(job: Json, now: float) -> list[Stay]:
    """All attempts that a job has begun by a time, the last one being where it stands."""
    found: list[Stay] = []
    begin = float(job["submitted"])
    for one in job["attempts"]:
        stay = _stay(job, {**USUAL, **one}, begin, now)
        found.append(stay)
        if stay.ended is None or stay.word == "CANCELLED":
            break
        begin = stay.ended
    return found


def _stay(job: Json, one: Json, begin: float, now: float) -> Stay:
    cut, by = job["cancelled"] or (math.inf, None)
    start = math.inf if one["wait_s"] is None else begin + one["wait_s"]
    if cut <= min(start, now):
        return Stay("CANCELLED", ended=cut, by=by)
    if now < start:
        return Stay("PENDING", one["waits_for"])
    nodes, end = one["nodes"], _ending(one, start)
    if cut <= min(end, now):
        return Stay("CANCELLED", started=start, ended=cut, nodes=nodes, signal=15, by=by)
    if now < end:
        return Stay("RUNNING", started=start, nodes=nodes)
    word = "COMPLETING" if now < end + one["completing_s"] else one["word"]
    how = {"code": one["code"], "signal": one["signal"], "by": one["cancelled_by"]}
    reason = one["reason"] or _REASONS.get(word, "None")
    return Stay(word, reason, started=start, ended=end, nodes=nodes, **how)


def _ending(one: Json, start: float) -> float:
    """When an attempt ends that began then; infinite while nobody knows."""
    if one["ended"] is not None:
        return float(one["ended"])
    return math.inf if one["run_s"] is None else start + float(one["run_s"])


def current(job: Json, now: float) -> Json:
    """The attempt that a job is in."""
    found: Json = job["attempts"][len(stays(job, now)) - 1]
    return found


def is_live(job: Json, now: float) -> bool:
    """Whether a job waits or runs."""
    last = stays(job, now)[-1]
    return last.ended is None or last.word == "COMPLETING"
