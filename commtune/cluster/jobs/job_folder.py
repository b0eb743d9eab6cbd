"""The folder of a job: its script, and what it leaves behind. Reading it changes nothing.

::

    script.sh     what the scheduler runs
    note          for a controller that adopts the job
    database      the database's URL, for the controller in an allocation; nobody else may read it
    started/      made by the first job with this script; a second one measures nothing
    nodes         which nodes it has, as the job itself sees it
    0.out 0.exit  output and exit of the first run, and so on
    waited        seconds that the script waited for the scheduler to answer
    finished      how the script ended
    job.out       what the script itself printed

On a shared file system files may show up later than the job's end is known.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commtune.errors import EnvironmentFault
from commtune.private_files import make_private_folder

_EXIT = re.compile(r"(\d{1,3}) (\d{9,11}\.\d{1,6}) (\d{9,11}\.\d{1,6})\s*", re.ASCII)
_NOTE = re.compile(r"(\d+\.\d+) (\d+\.\d+)\s*", re.ASCII)
_TAIL_BYTES = 4000
#: More is not a step's output but a program gone mad.
_WHOLE_BYTES = 16 * 2**20


@dataclass(frozen=True)
class ExitRecord:
    status: int  # exit status, 0 to 255
    #: began_at, ended_at: seconds since 1970, by the clock of the job's first node.
    began_at: float
    ended_at: float

    @property
    def wall_s(self) -> float:
        """How long it took, seconds."""
        return max(0.0, self.ended_at - self.began_at)


@dataclass(frozen=True)
class ControllerNote:
    """What the controller that made a job has to tell the one that adopts it."""

    limit_s: float = 0.0  # seconds that each run may take
    expected_s: float = 0.0  # seconds that the job will likely have its nodes


@dataclass(frozen=True)
class JobFolder:
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

    def note(self) -> ControllerNote:
        """What was written with the script; all 0 where it can't be read."""
        found = _NOTE.fullmatch(read_start(self.path / "note", _TAIL_BYTES))
        return ControllerNote(float(found[1]), float(found[2])) if found else ControllerNote()

    def write_script(self, text: str, note: ControllerNote, database: str = "") -> None:
        """Writes the script, whole or not at all, and what is beside it.

        Args:
            note: for who adopts the job.
            database: its URL, for a controller in the job.

        Raises:
            EnvironmentFault: the folder can't be written to.
        """
        try:
            make_private_folder(self.path)
            (self.path / "note").write_text(f"{note.limit_s:.3f} {note.expected_s:.3f}\n")
            if database:
                self.database.touch(mode=0o600)  # before there is a password in it
                self.database.write_text(f"{database}\n")
            part = self.script.with_suffix(".part")
            part.touch(mode=0o700)
            with part.open("wb") as file:
                file.write(text.encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.script)
        except OSError as error:
            raise EnvironmentFault(
                f"the job's folder can't be written: {self.path}: {error.strerror}",
                hint="check its permissions and free space, or set XDG_DATA_HOME elsewhere",
            ) from error

    def finished(self) -> ExitRecord | None:
        """How the script ended; ``None`` as long as it has not, or was cut short."""
        # A network file system asks its server again for a folder that is opened.
        with suppress(OSError), os.scandir(self.path):
            pass
        return self._ending(self.path / "finished")

    def ending(self, position: int) -> ExitRecord | None:
        """How a run ended; ``None`` where it has not, or never began."""
        return self._ending(self.step_exit(position))

    def waited_s(self) -> float:
        """Seconds that the job did nothing, as the scheduler gave no answer."""
        said = read_start(self.path / "waited", _TAIL_BYTES).strip()
        return float(said) if said.isdecimal() else 0.0

    def job_number(self) -> str:
        """The scheduler's number of the job that began here; empty before it began."""
        said = self._variables()
        # PBS adds its server's name.
        return said.get("SLURM_JOB_ID") or said.get("PBS_JOBID", "").partition(".")[0]

    def node_list(self) -> str:
        """Names of the job's nodes in short form, as the job itself saw them; empty before."""
        said = self._variables()
        return said.get("SLURM_JOB_NODELIST") or said.get("PBS_NODES", "")

    def places(self) -> str:
        """What the job's nodes said of where they stand; see ``StepLauncher.read_places``."""
        return read_start(self.path / "places")

    def _variables(self) -> dict[str, str]:
        """What the job said of itself: variables by name, written by the template of blocks."""
        lines = read_start(self.path / "nodes").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def _ending(self, file: Path) -> ExitRecord | None:
        found = _EXIT.fullmatch(read_start(file, _TAIL_BYTES))
        return ExitRecord(int(found[1]), float(found[2]), float(found[3])) if found else None


def read_tail(file: Path) -> str:
    """The last 4,000 bytes of what a program printed; empty where there is nothing."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def read_start(file: Path, most: int = _WHOLE_BYTES) -> str:
    """All of a file, up to 16 MiB; empty where there is nothing."""
    try:
        with file.open("rb") as stream:
            return stream.read(most).decode(errors="replace")
    except OSError:
        return ""
