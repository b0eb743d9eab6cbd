"""What tests do to a cluster, whichever scheduler it has, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

#: Words for jobs that are there no longer; of faults as well.
_OVER = {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT"}


@dataclass(frozen=True)
class Seen:
    """A job of the campaign as the queue shows it, in Slurm's words."""

    number: str
    key: str
    word: str

    @property
    def is_over(self) -> bool:
        return self.word in _OVER


class Cluster(Protocol):
    """What is done to a cluster under campaigns; ``tidy`` undoes it after the test."""

    folder: Path

    def stop_controller(self) -> None:
        """Ends the scheduler's server; jobs that run go on."""

    def start_controller(self) -> None:
        """Starts it again, with all that it knew."""

    def pause_controller(self) -> None:
        """From now on it takes questions, and answers them when it goes on."""

    def resume_controller(self) -> None:
        """It goes on, also with what it was asked meanwhile."""

    def drain_node(self, name: str) -> None:
        """A node gets no more jobs."""

    def on_nodes(self, command: str) -> None:
        """Types a command on all nodes, as root."""

    def limit_submissions(self, most: int | None) -> None:
        """The most jobs that a user may have waiting and running; ``None`` for no limit."""

    def refuse_submissions(self, on: bool = True) -> None:
        """Whether it takes no jobs now; those there stay."""

    def count_submissions(self) -> int:
        """How many jobs somebody tried to submit."""

    def submit_foreign(self, name: str) -> str:
        """Submits a job of this name that is no campaign's; returns its number."""

    def is_there(self, job: str) -> bool:
        """Whether a job waits or runs."""

    def hold(self, job: str) -> None:
        """A job doesn't start until somebody releases it."""

    def release(self, job: str) -> None:
        """A job that is held may start."""

    def reach_time_limit(self, job: str) -> None:
        """A running job's time is over."""

    def cancel(self, job: str) -> None:
        """Somebody else ends a job."""


@dataclass(frozen=True)
class Words:
    """What commtune says of a scheduler, where that differs; ``{}`` is a job's number."""

    name: str
    submitter: str  # the program that submits
    submit: str  # the method that calls it
    silent: str  # why there is no answer
    refuses: str
    is_full: str
    is_held: str
    over_time: str  # how a job ended whose time was over
    cancelled: str  # how one ended that somebody cancelled
    steps_need_it: bool  # whether no run of an allocation starts while it gives no answer
    asks_server: str  # what a person types to see whether it answers
    submits_by_tmp: str  # what is said where /tmp is full; empty if what submits needs none of it
    lost_answer: str  # what the program says where the server's answer is lost
    answer_is_lost: str  # a part of what is said of that
