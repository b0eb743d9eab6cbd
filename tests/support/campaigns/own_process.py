"""The command line without a process of its own, and what all refusals have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from command_line import CommandLine, Said

from commtune.cli import main


def refused(said: Said, code: int = 2) -> str:
    """What was said on refusal; the same for all of them."""
    assert said.code == code, said
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) <= 24
    assert max(len(line) for line in said.err.splitlines()) < 400
    assert said.out == ""
    return said.err


@dataclass(frozen=True)
class OwnProcess(CommandLine):
    """The command line inside this process: a start a second apart would be a minute in all."""

    monkeypatch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)
    capture: pytest.CaptureFixture[str] | None = None

    def __call__(self, *arguments: str) -> Said:
        assert self.capture is not None
        with self.monkeypatch.context() as patched:
            patched.setattr("sys.argv", ["commtune", *arguments])
            patched.chdir(self.folder)
            for name, value in self.environment().items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = self.capture.readouterr()
        return Said(int(ended.value.code or 0), out, err)
