"""What an exporter is given: a profile, and what a reader must know of where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from commtune.model import Profile


@dataclass(frozen=True)
class ExportDocument:
    """A profile with its origin.

    Attributes:
        campaign: name of the campaign that the profile came from.
        system, fingerprint: name and key of the machine that it was measured on.
        stack: library versions and the like, for a person; may have several lines.
        created: when the profile was made, ISO 8601.
        commtune_version: version that measured it.
        pinned: variables that were set in every run, the default's too; exported as well, because
            the speedup was seen with them.
        unset: variables of the space that the profile leaves unset. They are named in the file,
            and never unset by it: a user's variable is the user's.
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
    """

    profile: Profile
    campaign: str
    system: str
    fingerprint: str
    stack: str
    created: str
    commtune_version: str
    pinned: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    level: float | None = None

    def variables(self) -> dict[str, str]:
        """All that the file sets: pinned ones first, then the profile's."""
        own = self.profile.configuration
        pinned = {name: value for name, value in self.pinned.items() if name not in own}
        return {**dict(sorted(pinned.items())), **own}
