"""Writes and reads the folder of a job: its script, and the files that the job leaves.

::

    script.sh     what the scheduler runs
    note          for a controller that adopts the job
    database      the database's URL, for the controller in an allocation; nobody else may read it
    started/      made by the first job with this script; a second job then measures nothing
    nodes         the job's number and nodes, from its environment
    0.out 0.exit  output and exit record of the first run, and so on
    waited        seconds that the script waited for the scheduler to answer
    finished      exit record of the script
    job.out       output of the script itself

On a shared file system, files may appear after the scheduler says that the job is over.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commtune.private_files import writing_data

_EXIT = re.compile(r"(\d{1,3}) (\d{9,11}\.\d{1,6}) (\d{9,11}\.\d{1,6})\s*", re.ASCII)
_NOTE = re.compile(r"(\d+\.\d+) (\d+\.\d+)\s*", re.ASCII)
_TAIL_BYTES = 4000
#: The most that is read of an output; larger ones come from a program out of control.
_WHOLE_BYTES = 16 * 2**20


@dataclass(frozen=True)
class ExitRecord:
    """The exit status and the times of a run, or of the whole script."""

    status: int  # exit status, 0 to 255
    #: began_at, ended_at: seconds since 1970, by the clock of the job's first node.
    began_at: float
    ended_at: float

    @property
    def wall_s(self) -> float:
        """The wall time, seconds."""
        return max(0.0, self.ended_at - self.began_at)


@dataclass(frozen=True)
class JobFolder:
    """The folder of one job; reading it changes nothing."""

    path: Path

    @property
    def script(self) -> Path:
        return self.path / "script.sh"

    @property
    def database(self) -> Path:
        return self.path / "database"

    @property
    def output(self) -> Path:
        return self.path / "job.out"

    def step_output(self, position: int) -> Path:
        return self.path / f"{position}.out"

    def step_exit(self, position: int) -> Path:
        return self.path / f"{position}.exit"

    def note(self) -> tuple[float, float]:
        """Returns the note that was written with the script; zeros where it can't be read."""
        found = _NOTE.fullmatch(read_start(self.path / "note", _TAIL_BYTES))
        return (float(found[1]), float(found[2])) if found else (0.0, 0.0)

    def write_script(
        self, text: str, limit_s: float = 0.0, expected_s: float = 0.0, database: str = ""
    ) -> None:
        """Writes the script atomically, after the note and the file with the database's URL.

        Args:
            limit_s, expected_s: seconds that each run may take, and that the job will likely have
                its nodes: the note for a controller that adopts the job.

        Raises:
            EnvironmentFault: the folder can't be written to, or others can.
        """
        with writing_data("the job's folder can't be written", self.path):
            (self.path / "note").write_text(f"{limit_s:.3f} {expected_s:.3f}\n")
            if database:
                self.database.touch(mode=0o600)  # the URL may hold a password
                self.database.write_text(f"{database}\n")
            part = self.script.with_suffix(".part")
            part.touch(mode=0o700)
            with part.open("wb") as file:
                file.write(text.encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.script)

    def finished(self) -> ExitRecord | None:
        """Returns the script's exit record; ``None`` while it runs, or if it was killed."""
        renew_entries(self.path)
        return self._ending(self.path / "finished")

    def ending(self, position: int) -> ExitRecord | None:
        """Returns a run's exit record; ``None`` if it hasn't ended, or never began."""
        return self._ending(self.step_exit(position))

    def waited_s(self) -> float:
        """Returns the seconds that the job did nothing, as the scheduler gave no answer."""
        said = read_start(self.path / "waited", _TAIL_BYTES).strip()
        return float(said) if said.isdecimal() else 0.0

    def job_number(self) -> str:
        """Returns the scheduler's number of the job that began here; empty before it began."""
        said = self._variables()
        # PBS appends the name of its server.
        return said.get("SLURM_JOB_ID") or said.get("PBS_JOBID", "").partition(".")[0]

    def node_list(self) -> str:
        """Returns the node list of the job in short form; empty before it began."""
        said = self._variables()
        return said.get("SLURM_JOB_NODELIST") or said.get("PBS_NODES", "")

    def places(self) -> str:
        """Returns what the nodes printed of their place; see ``StepLauncher.read_places``."""
        return read_start(self.path / "places")

    def _variables(self) -> dict[str, str]:
        """Returns the variables that the block's script wrote of its job, by name."""
        lines = read_start(self.path / "nodes").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def _ending(self, file: Path) -> ExitRecord | None:
        found = _EXIT.fullmatch(read_start(file, _TAIL_BYTES))
        return ExitRecord(int(found[1]), float(found[2]), float(found[3])) if found else None


def renew_entries(folder: Path) -> None:
    """Opens the folder, which makes an NFS client revalidate its cached entries."""
    with suppress(OSError), os.scandir(folder):
        pass


def read_tail(file: Path) -> str:
    """Returns the last 4,000 bytes of a file; empty where it can't be read."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def read_start(file: Path, most: int = _WHOLE_BYTES) -> str:
    """Returns a file's first bytes, by default up to 16 MiB; empty where it can't be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(most).decode(errors="replace")
    except OSError:
        return ""
