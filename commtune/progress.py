"""Long work that is not measuring, such as a build, says here how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

#: What is being done, how many steps of it are done, and of how many; 0 of 0 at its beginning.
_OnStep = Callable[[str, int, int], None]

# A context variable and not an argument: a build may be needed below any use case. Users of the
# Python API hear nothing unless they set it; the command line prints.
ON_STEP: ContextVar[_OnStep] = ContextVar("ON_STEP", default=lambda *_: None)
