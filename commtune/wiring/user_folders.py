"""The folders of a user's data and built benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class Folders:
    data: Path  # campaigns' record files, and the database unless it is elsewhere
    cache: Path  # built benchmarks; may be deleted at any time

    @classmethod
    def of_user(cls) -> Folders:
        return cls(
            platformdirs.user_data_path("commtune"), platformdirs.user_cache_path("commtune")
        )

    def runs(self, campaign: str) -> Path:
        return self.data / "campaigns" / campaign / "runs"
