"""Campaigns of flags go on with the space that they were begun with, whichever fits today."""

from __future__ import annotations

from pathlib import Path

from command_line import CommandLine

_FLAGS = (
    "tune", "--mpi", "wheel:mpich", "--ranks", "2", "--sizes", "8", "--name", "kept",
    "--search", "1s", "--ablate", "100ms", "--trials", "1", "--confirm",
)  # fmt: skip


def test_a_campaign_of_flags_goes_on_with_its_space(executable: Path, tmp_path: Path) -> None:
    assert executable.exists()
    commtune = CommandLine(tmp_path)
    # As if "mpich" had been what fits when it was begun.
    commtune.succeed(*_FLAGS, "1s", "--space", "mpich")
    again = commtune.succeed(*_FLAGS, "2s")
    assert (
        "note: kept continues with space mpich, which it was started with; "
        "a new campaign would use mpich-host-allreduce"
    ) in again.err
    # Twice the time is what is proposed, where no profile is there to be used.
    doubled = "--confirm 2s --search 2s --confirm 4s\n"
    assert (doubled in again.out) == ("run --profile" not in again.out)
    assert commtune.query("SELECT name FROM campaigns") == [("kept",)]
    other = commtune(*_FLAGS, "2s", "--space", "mpich-host")
    assert other.code == 2
    assert "mpich-host" in other.err
