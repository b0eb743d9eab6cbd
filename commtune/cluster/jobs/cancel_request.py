"""The request of ``commtune cancel`` to stop: a file that controllers on any machine see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commtune.cluster.scheduler import GOES_ON
from commtune.errors import EnvironmentFault
from commtune.paths import exists
from commtune.private_files import make_private_folder


@dataclass(frozen=True)
class CancelRequest:
    """A campaign's request to stop, which is made while its file exists."""

    file: Path  # in the campaign's folder

    @classmethod
    def of(cls, campaign_folder: Path) -> CancelRequest:
        return cls(campaign_folder / "cancelled")

    def make(self) -> str:
        """Tells controllers to stop and to submit nothing more; returns an error, or ``""``."""
        try:
            make_private_folder(self.file.parent)
            self.file.touch()
        except OSError as error:
            return f"{self.file}: {error.strerror}"
        return ""

    def withdraw(self) -> None:
        """Withdraws the request, for a campaign that a person starts again."""
        self.file.unlink(missing_ok=True)

    def check(self) -> None:
        """Raises an ``EnvironmentFault`` if the campaign was cancelled."""
        if exists(self.file):
            raise EnvironmentFault("the campaign stops: 'commtune cancel' ended it", hint=GOES_ON)
