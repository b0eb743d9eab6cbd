"""A recording in progress: lines in a file beside the packed one, flushed after every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commtune.errors import EnvironmentFault
from commtune.replay.recording import (
    Grid,
    RecordedRun,
    head_lines,
    load_grid,
    pack_lines,
    run_line,
)

_HEAD_LINES = 2


@dataclass
class Recorder:
    """The two files of a recording; the packed one appears when all is recorded.

    Attributes:
        out: the packed recording.
    """

    out: Path
    _sizes: tuple[int, ...] = ()

    @property
    def part(self) -> Path:
        """The file with what was recorded so far."""
        return self.out.with_name(f"{self.out.name}.part")

    @property
    def known(self) -> Path:
        """The file that earlier sessions left."""
        return self.part if self.part.exists() else self.out

    def load(self) -> Grid | None:
        """What earlier sessions recorded, if any; a line that was cut short is dropped.

        Raises:
            UserError: there is a file that is no recording.
        """
        if not self.part.exists():
            return load_grid(self.out) if self.out.exists() else None
        content = self.part.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole.count(b"\n") <= _HEAD_LINES:
            return None
        if whole != content:
            with _writing(self.part), self.part.open("r+b") as file:
                file.truncate(len(whole))
        return load_grid(self.part)

    def begin(self, grid: Grid) -> None:
        """Begins with what is known; what earlier sessions left is there until it is replaced."""
        self._sizes = grid.header.workload.sizes
        beside = self.part.with_name(f"{self.part.name}.new")
        with _writing(self.part):
            try:
                beside.write_text("".join(recording_lines(grid)), encoding="utf-8")
                beside.replace(self.part)
            finally:
                beside.unlink(missing_ok=True)

    def add(self, run: RecordedRun) -> None:
        """Adds a run."""
        with _writing(self.part), self.part.open("a", encoding="utf-8") as file:
            file.write(run_line(run, self._sizes))

    def finish(self) -> None:
        """Packs the recording, and takes the file beside it away."""
        packed = pack_lines(recording_lines(load_grid(self.part)))
        with _writing(self.out):
            self.out.write_bytes(packed)
            self.part.unlink()


def recording_lines(grid: Grid) -> list[str]:
    """All lines of a recording."""
    head = head_lines(grid.header, grid.configurations)
    return [*head, *(run_line(run, grid.header.workload.sizes) for run in grid.runs)]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"can't write {path}: {error.strerror}", hint="check your rights and the room there"
        ) from error
