"""Reports the progress of long work other than measuring, such as a build."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

#: Called with the work in words, the number of steps done, and of all steps; 0 and 0 at its start.
_OnStep = Callable[[str, int, int], None]

# A context variable rather than an argument, since any use case may need a build. The command line
# prints progress; users of the Python API get none unless they set this.
ON_STEP: ContextVar[_OnStep] = ContextVar("ON_STEP", default=lambda *_: None)
